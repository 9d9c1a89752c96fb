"""What a page knows of a network: names, places, numbers, and the programs that it runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tacit.base.errors import TooLargeError
from tacit.base.text import large
from tacit.compiler.program import Program
from tacit.model.model import Model
from tacit.query.query import Query, compiled
from tacit.views.page.captions import Captions
from tacit.views.page.places import places, tests_per_state
from tacit.views.page.programs import PageTables, plain_decisions, plain_program, plain_tests

FORMAT = "tacit-page-1"
MAX_WORK = 50_000_000  # multiply-adds of one sweep: about a tenth of a second in a browser
MAX_ENTRIES = 10_000_000  # of all values together: 160 MB in a browser


def page_model(net: Model, captions: Captions, remote: bool = False) -> dict[str, Any]:
    """All that the page reads, as plain data; the numbers and programs are left out where a server answers."""
    net.require_numbers()
    shown = _described(net, captions)
    titles, states = [own["label"] for own in shown], [own["states"] for own in shown]
    query = captions.query or _interesting(net)
    return {
        "format": FORMAT,
        "name": net.name or "network",
        "title": captions.title or net.name or "network",
        "query": net.variables.index(query),
        "remote": remote,
        "variables": shown,
        "layout": places(net, titles, states),
        **({} if remote else _computable(net)),
    }


def _interesting(net: Model) -> str:
    """The last variable that a test has a say in, or the last of all."""
    tested = {name for node in net.testing_nodes for name in (node, *net.descendants(node))}
    return next((name for name in reversed(net.variables) if name in tested), net.variables[-1])


def _described(net: Model, captions: Captions) -> list[dict[str, Any]]:
    place = {name: i for i, name in enumerate(net.variables)}
    described = []
    for name in net.variables:
        states, shown = [str(state) for state in net.states(name)], captions.states.get(name, {})
        described.append({
            "name": name,
            "label": captions.labels.get(name, name),
            "group": captions.groups.get(name),
            "names": states,
            "states": [shown.get(state, state) for state in states],
            "parents": [place[parent] for parent in net.parents(name)],
            "testing": net.cpt(name).testing,
            "tests": tests_per_state(net, name),
        })  # fmt: skip
    return described


def _computable(net: Model) -> dict[str, Any]:
    """The program of sums, the one of maxima where it differs by more than that, and their numbers."""
    asked = compiled(Query, net, None, net.variables)
    if asked.program.structured:  # numbers change on a page, so none may be built in
        asked = asked.companion(replace(asked.question, every_state=True))
    require_small(asked.program)
    tables, slopes = PageTables(net), asked.numbers()[1]
    programs = {"sum": {**plain_program(net, asked.program, tables, slopes), **plain_decisions(net, asked.program)}}
    if not _chooses_variables_only(asked.program):
        best = asked.companion(replace(asked.question, best=net.variables)).program
        programs["max"] = {**plain_program(net, best, tables, slopes), **plain_decisions(net, best)}
    return {"programs": programs, "tests": plain_tests(net, asked.program), "tables": tables.tables}


def _chooses_variables_only(program: Program) -> bool:
    """Whether no axis but those of variables is summed out: then maxima in place of sums find the best states."""
    return all(axis in program.owners for decision in program.decisions for axis in decision.chosen)


def require_small(program: Program) -> None:
    """An error where a browser would take too long for one answer."""
    cost = program.cost
    work = cost.multiply_adds + cost.static_multiply_adds
    entries = cost.elements + cost.static_elements
    if work > MAX_WORK or entries > MAX_ENTRIES:
        raise TooLargeError(
            f"too large for a page: one answer takes {large(work)} multiply-adds and {large(entries)} numbers in "
            f"memory (limits {large(MAX_WORK)} and {large(MAX_ENTRIES)}); `tacit serve` answers it from a server"
        )
