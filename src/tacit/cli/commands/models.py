"""Commands on a model itself: info, convert, draw and page."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from textwrap import indent
from typing import Annotated, Any

import numpy as np
import typer

import tacit
from tacit.base.atomic import write_atomically
from tacit.base.text import large, listed, plural
from tacit.cli.shared import completion
from tacit.cli.shared.arguments import (
    CaptionsFile,
    Do,
    Evidence,
    FirstQuery,
    Json,
    Model,
    check_page,
    discovery_of,
    read_network,
    stem,
)
from tacit.cli.shared.output import aligned, asked, heading, show_json
from tacit.cli.shared.values import read_evidence, read_states
from tacit.compiler.program import Cost
from tacit.model.cpt import CPT, TestingCPT
from tacit.model.densities import AnyDensity
from tacit.model.rendering import cpt_kind
from tacit.model.rules import NoisyOr
from tacit.query.ensemble import Ensemble
from tacit.query.network import Network
from tacit.views.drawing import SUFFIXES


def info(
    model: Model,
    query: Annotated[
        str | None,
        typer.Option(
            "--query",
            "-q",
            metavar="VARIABLE",
            help="Also say what this query costs.",
            autocompletion=completion.variables,
        ),
    ] = None,
    evidence: Annotated[
        list[str] | None,
        typer.Option(
            "--evidence",
            "-e",
            metavar="VARIABLE",
            help="With evidence on it. May be given many times.",
            autocompletion=completion.variables,
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Say what a network holds, and what a query on it would cost.

    \b
    Examples:
      tacit info alarm.bif
      tacit info alarm.bif -q LVFAILURE -e HISTORY -e CVP
    """
    if evidence and query is None:
        raise typer.BadParameter("-e names the evidence of a query; give -q as well")
    net = read_network(model)
    cost = None if query is None else tacit.compile(net, query, evidence or ()).cost()
    if json:
        return show_json(_info_data(net, query, cost))
    heading(net.name or str(model))
    print(indent(aligned(_summary(net)), "  "), end="\n\n")
    rows = [
        (name, listed(net.states(name)) or "numbers", listed(net.parents(name), 4) or "-", cpt_kind(net.node(name)))
        for name in net
    ]
    print(aligned([("variable", "states", "parents", "CPT"), *rows]))
    if cost is not None:
        heading(f"\n{asked(query or '', evidence or ())}")
        nodes = "not counted, very many" if cost.circuit_nodes is None else f"{cost.circuit_nodes:,}"
        costs = [
            ("width", f"{cost.width} (largest cluster: {listed(cost.cluster)})"),
            ("multiply-adds per row", large(cost.multiply_adds)),
            ("bytes per row", large(cost.bytes)),
            ("circuit nodes", nodes),
        ]
        print(indent(aligned(costs), "  "))


def convert(
    model: Model,
    output: Annotated[Path, typer.Argument(metavar="OUTPUT", help="The file to write, in the format of its suffix.")],
) -> None:
    """Write a network in another format.

    \b
    Example:
      tacit convert alarm.bif alarm.json
    """
    net = tacit.io.read(model)
    tacit.io.write(net, output)
    print(f"{output}: {net!r}")


def draw(
    model: Model,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="A .svg, .png, .pdf or .dot file. Text, if left out."),
    ] = None,
    evidence: Evidence = None,
    posteriors: Annotated[
        bool, typer.Option("--posteriors", "-p", help="Show posteriors as bars. Evidence includes this.")
    ] = False,
    nodes: Annotated[
        str | None,
        typer.Option(
            "--nodes",
            "-n",
            metavar="VARIABLES",
            help="Draw only these, with commas between.",
            autocompletion=completion.lists,
        ),
    ] = None,
    width: Annotated[
        str | None,
        typer.Option("--width", "-w", help="How wide the picture is: in centimetres, or with a unit, such as 3.3in."),
    ] = None,
    do: Do = None,
    captions: CaptionsFile = None,
) -> None:
    """Draw a network, as SVG, PNG or PDF, or for Graphviz.

    Testing nodes are shaded. PNG and PDF need matplotlib.

    \b
    Examples:
      tacit draw alarm.bif -o alarm.svg
      tacit draw alarm.bif -e CVP=HIGH -o alarm.pdf
      tacit draw alarm.bif -p --do LVFAILURE=TRUE --captions alarm.toml -o alarm.pdf
      tacit draw alarm.bif --nodes CVP,LVEDVOLUME,PCWP --width 8.5 -o part.pdf
      tacit draw alarm.bif | dot -Tpdf -o alarm.pdf
    """
    net = read_network(model)
    known = read_evidence(net, evidence or [])[0] if evidence or posteriors else None
    if output is None or output.suffix == ".dot":
        if known is not None:
            raise typer.BadParameter("posteriors are drawn into a .svg, .png or .pdf file (-o FILE)")
        if nodes is not None or width is not None or do or captions is not None:
            raise typer.BadParameter(
                "--nodes, --width, --do and --captions are for .svg, .png and .pdf files (-o FILE)"
            )
        return _write_dot(net, output)
    if output.suffix.lower() not in SUFFIXES:
        raise typer.BadParameter(f"{output}: a drawing is a .svg, .png, .pdf or .dot file")
    names = None if nodes is None else nodes.split(",")
    states = read_states(net, do or [])
    found = discovery_of(model)
    marks = {} if found is None else found.marks()
    net.plot(known, do=states, captions=captions, nodes=names, width=width, **marks).save(output)
    print(output)


def _write_dot(net: Network, output: Path | None) -> None:
    if output is None:
        return print(net.to_dot(), end="")
    write_atomically(output, lambda file: file.write(net.to_dot()))
    print(output)


def page(
    model: Model,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The .html file to write; named like MODEL, if left out."),
    ] = None,
    query: FirstQuery = None,
    captions: CaptionsFile = None,
    draws: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="An ensemble, as 'tacit estimate --draws' writes it: intervals on the bars."),
    ] = None,
    decide: Annotated[
        str | None,
        typer.Option(
            metavar="VARIABLE",
            help="Of a network with value nodes, the variable to decide: the page says which action is best.",
            autocompletion=completion.variables,
        ),
    ] = None,
) -> None:
    """Write a page to explore a network: click a state to observe it, and all posteriors follow.

    The page is one file that computes its answers itself: open it anywhere, send it to anybody.

    \b
    Examples:
      tacit page alarm.bif
      tacit page alarm.bif -o alarm.html -q LVFAILURE
      tacit page alarm.bif -o alarm.html --captions alarm.toml
      tacit page found.json --draws draws.npz
    """
    output = Path(f"{stem(model)}.html") if output is None else output
    check_page(output)
    found = discovery_of(model) if draws is None and decide is None else None
    if found is not None:
        found.page(output, captions, query)
    else:
        ensemble = None if draws is None else Ensemble.load(draws)
        read_network(model).page(output, captions, query, ensemble, decide)
    print(output)


def _summary(net: Network) -> list[tuple[str, str]]:
    counts, open_nodes = net.counts(), learned(net)
    numbers = plural(sum(open_nodes.values()), "number")
    return [
        ("nodes", f"{counts.nodes:,}"),
        ("edges", f"{counts.edges:,}"),
        ("testing nodes", f"{counts.testing_nodes:,}"),
        *([("selection", net.selection)] if counts.testing_nodes else []),
        ("parameters", f"{counts.parameters:,}"),
        ("thresholds", f"{counts.thresholds:,}"),
        ("to be learned", f"{numbers} of {listed(list(open_nodes))}" if open_nodes else "nothing"),
    ]


def _info_data(net: Network, query: str | None, cost: Cost | None) -> dict[str, Any]:
    variables = {
        name: {"states": list(net.states(name)), "parents": list(net.parents(name)), "cpt": cpt_kind(net.node(name))}
        for name in net
    }
    counts = asdict(net.counts()) | {"parameters": net.counts().parameters}
    data = {"name": net.name, "selection": net.selection, **counts, "learned": learned(net), "variables": variables}
    if cost is not None:
        data["query"] = query
        data["cost"] = asdict(cost) | {"bytes": cost.bytes}
    return data


def learned(net: Network) -> dict[str, int]:
    """The count of numbers to be learned, of each node that has any."""
    counts = {}
    for name in net:
        cpt = net.cpt(name)
        learn = (
            isinstance(cpt, CPT | TestingCPT | NoisyOr | AnyDensity) and cpt.learn
        )  # other rules know all their numbers
        counts[name] = sum(table.size if learn else int(np.isnan(table).sum()) for table in cpt.parts().values())
    return {name: count for name, count in counts.items() if count}
