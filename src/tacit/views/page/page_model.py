"""What a page knows of a network: names, places, numbers, and the programs that it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tacit.base.errors import TacitError, TooLargeError
from tacit.base.text import large
from tacit.compiler.program import Program
from tacit.compiler.question import Question
from tacit.model.as_dict import edges_to_json
from tacit.model.model import Model
from tacit.query.ensembles.base_ensemble import AnyEnsemble
from tacit.query.query import DEFAULTS, Query, compiled
from tacit.views.edges import EdgeLook, EdgeLooks
from tacit.views.page.captions import Captions
from tacit.views.page.deciding import Deciding, with_table
from tacit.views.page.draws import check_ensemble, plain_draws
from tacit.views.page.places import places, tests_per_state
from tacit.views.page.programs import (
    PageTables,
    add_small_tables,
    plain_density,
    plain_program,
    plain_tests,
    rule_table,
    why_not_set,
)
from tacit.views.words import intervals

FORMAT = "tacit-page-1"
LIMITED = (
    "This network is so wide that the page computes with decision diagrams, in which numbers are built in. "
    "Python answers this: tac.mpe, tac.sensitivity."
)
WIDE = "This network is too wide for a page that sets variables. In Python, net.do does."
MAX_WORK = 50_000_000  # multiply-adds of one sweep: about a tenth of a second in a browser
MAX_ENTRIES = 10_000_000  # of all values together: 160 MB in a browser


def page_model(
    net: Model,
    captions: Captions,
    remote: bool = False,
    looks: EdgeLooks | None = None,
    ensemble: AnyEnsemble | None = None,
) -> dict[str, Any]:
    """All that the page reads, as plain data; the programs and large tables are left out where a server answers.

    Of an ensemble, the page has some of the networks, for intervals.
    """
    deciding = None
    if captions.decide is not None:
        if remote:
            raise TacitError("a page that asks a server does not decide; one that computes does: net.page, tacit page")
        net = with_table(net, captions.decide)
        deciding = Deciding.checked(net, captions.decide)
    net.require_numbers()
    if ensemble is not None:
        check_ensemble(net, ensemble)
    number = {name: i for i, name in enumerate(net.variables)}
    variables = [_described(net, name, number, captions, remote) for name in net.variables]
    return {
        "format": FORMAT,
        "name": net.name or captions.title or "network",
        "title": captions.title or net.name or "network",
        "query": number[captions.query or _interesting(net)],
        "state": captions.state,
        "remote": remote,
        "variables": variables,
        "layout": places(net, [own["label"] for own in variables], [own["states"] for own in variables]),
        **({} if looks is None else _edge_looks(net, looks)),
        **(_looked_at(net) if remote else _computable(net, ensemble, deciding)),
    }


def _interesting(net: Model) -> str:
    """The variable that the most others lead to, of those that a test has a say in, if there are any: the last one."""
    tested = {name for node in net.testing_nodes for name in (node, *net.descendants(node))}
    with_states = [name for name in reversed(net.variables) if not net.variable(name).continuous]
    candidates = [name for name in with_states if not tested or name in tested] or with_states or net.variables
    return max(candidates, key=lambda name: len(net.ancestors(name)))


def _described(net: Model, name: str, number: Mapping[str, int], captions: Captions, remote: bool) -> dict[str, Any]:
    density = plain_density(net, name)
    states = [] if density else [str(state) for state in net.states(name)]
    shown = {**dict(zip(states, intervals(states) or states, strict=True)), **captions.states.get(name, {})}
    bins = net.bins(name)
    return {
        "name": name,
        "label": captions.labels.get(name, name),
        "group": captions.groups.get(name),
        "card": net.variable(name).card,
        "density": density,
        "names": states,
        "states": [shown[state] for state in states],
        "bins": None if bins is None else edges_to_json(bins),
        "parents": [number[parent] for parent in net.parents(name)],
        "testing": net.cpt(name).testing,
        "tests": tests_per_state(net, name),
        "table": rule_table(net, name),
        "unsettable": None if remote else why_not_set(net, name),  # a server can
        "asked": name not in captions.never_ask,
    }


def _edge_looks(net: Model, looks: EdgeLooks) -> dict[str, Any]:
    """How sure each edge is, in the order of the layout, and what has to be explained of that."""
    pairs = [(parent, name) for name in net.variables for parent in net.parents(name)]
    return {
        "edge_looks": [_look(looks.of(pair)) for pair in pairs],
        "edge_legend": _edge_legend(looks, pairs),
    }


def _edge_legend(looks: EdgeLooks, pairs: list[tuple[str, str]]) -> list[dict[str, Any]]:
    return [{**_look(look), "text": text} for look, text in looks.legend(pairs)]


def _look(look: EdgeLook) -> dict[str, Any]:
    return {"level": look.rank, "tipped": look.tipped}


def _looked_at(net: Model) -> dict[str, Any]:
    """What the page of a server has of the numbers: small tables."""
    return {"tables": add_small_tables(net, PageTables(net)).tables, "unsettable": None, "limited": None}


def _computable(net: Model, ensemble: AnyEnsemble | None, deciding: Deciding | None) -> dict[str, Any]:
    """The program of sums, the one of maxima where it differs by more than that, that of a decision; their numbers."""
    asked, settable = _asked(net)
    if ensemble is not None and (asked.program.structured or not settable):
        raise TooLargeError(
            "this network is too wide for a page with intervals: its program has numbers built in; leave out tables="
        )
    tables = PageTables(deciding.chance.network if deciding else net)
    program, slopes = asked.program, asked.numbers()[1]
    programs = {"sum": plain_program(net, program, tables, slopes)}
    if program.structured:
        add_small_tables(net, tables)
    # where only axes of variables are summed out, maxima in place of sums find the best states
    elif any(axis not in program.owners for decision in program.decisions for axis in decision.chosen):
        best = asked.companion(replace(asked.question, best=net.variables)).program
        programs["max"] = plain_program(net, best, tables, slopes)
    draws = {} if ensemble is None else {"draws": plain_draws(net, ensemble, tables.tables)}
    decision = None
    if deciding:  # whose program comes last, since its hidden variables have tables that no other program knows
        decision, programs["decision"] = deciding.described(net, *_asked(deciding.chance.network), tables)
    return {
        "programs": programs,
        "decision": decision,
        "tests": plain_tests(net, program),
        "tables": tables.tables,
        **draws,
        "unsettable": None if settable else WIDE,
        "limited": LIMITED if program.structured else None,
    }


def _asked(net: Model) -> tuple[Query, bool]:
    """What the page computes, and whether variables can be set: then no 0 of their tables may rule anything out."""
    options, question = DEFAULTS.checked(net), Question(evidence=net.variables, every_state=True)
    try:
        general = Query(net, None, question, options, options.compile(net, question))
        _require_small(general.program)
        return general, True
    except TooLargeError:
        special = compiled(Query, net, None, net.variables)
    _require_small(special.program)
    return special, False


def _require_small(program: Program) -> None:
    """An error if a browser would take too long for one answer."""
    cost = program.cost
    work, entries = cost.multiply_adds + cost.static_multiply_adds, cost.elements + cost.static_elements
    if work > MAX_WORK or entries > MAX_ENTRIES:
        raise TooLargeError(
            f"too large for a page: one answer takes {large(work)} multiply-adds and {large(entries)} numbers in "
            f"memory (limits {large(MAX_WORK)} and {large(MAX_ENTRIES)}); `tacit serve` answers it from a server"
        )
