"""What a page knows of a network: names, places, numbers, and the programs that it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tacit.base.errors import TooLargeError
from tacit.base.text import large
from tacit.model.model import Model
from tacit.query.query import Query, compiled
from tacit.views.page.captions import Captions
from tacit.views.page.places import places, tests_per_state
from tacit.views.page.programs import PageTables, plain_program, plain_tests, rule_table, small_tables

FORMAT = "tacit-page-1"
MAX_WORK = 50_000_000  # multiply-adds of one sweep: about a tenth of a second in a browser
MAX_ENTRIES = 10_000_000  # of all values together: 160 MB in a browser


def page_model(net: Model, captions: Captions, remote: bool = False) -> dict[str, Any]:
    """All that the page reads, as plain data; the programs and large tables are left out where a server answers."""
    net.require_numbers()
    number = {name: i for i, name in enumerate(net.variables)}
    variables = [_described(net, name, number, captions) for name in net.variables]
    tested = {name for node in net.testing_nodes for name in (node, *net.descendants(node))}
    # the last variable that a test has a say in, or the last of all
    interesting = next((name for name in reversed(net.variables) if name in tested), net.variables[-1])
    return {
        "format": FORMAT,
        "name": net.name or "network",
        "title": captions.title or net.name or "network",
        "query": number[captions.query or interesting],
        "remote": remote,
        "variables": variables,
        "layout": places(net, [own["label"] for own in variables], [own["states"] for own in variables]),
        **({"tables": small_tables(net)} if remote else _computable(net)),
    }


def _described(net: Model, name: str, number: Mapping[str, int], captions: Captions) -> dict[str, Any]:
    states, shown = [str(state) for state in net.states(name)], captions.states.get(name, {})
    return {
        "name": name,
        "label": captions.labels.get(name, name),
        "group": captions.groups.get(name),
        "names": states,
        "states": [shown.get(state, state) for state in states],
        "parents": [number[parent] for parent in net.parents(name)],
        "testing": net.cpt(name).testing,
        "tests": tests_per_state(net, name),
        "table": rule_table(net, name),
    }


def _computable(net: Model) -> dict[str, Any]:
    """The program of sums, the one of maxima where it differs by more than that, and their numbers."""
    asked = compiled(Query, net, None, net.variables)
    if asked.program.structured:  # numbers change on a page, so none may be built in
        asked = asked.companion(replace(asked.question, every_state=True))
    program, cost = asked.program, asked.program.cost
    work, entries = cost.multiply_adds + cost.static_multiply_adds, cost.elements + cost.static_elements
    if work > MAX_WORK or entries > MAX_ENTRIES:  # a browser would take too long for one answer
        raise TooLargeError(
            f"too large for a page: one answer takes {large(work)} multiply-adds and {large(entries)} numbers in "
            f"memory (limits {large(MAX_WORK)} and {large(MAX_ENTRIES)}); `tacit serve` answers it from a server"
        )
    tables, slopes = PageTables(net), asked.numbers()[1]
    programs = {"sum": plain_program(net, program, tables, slopes)}
    # where only axes of variables are summed out, maxima in place of sums find the best states
    if any(axis not in program.owners for decision in program.decisions for axis in decision.chosen):
        best = asked.companion(replace(asked.question, best=net.variables)).program
        programs["max"] = plain_program(net, best, tables, slopes)
    return {"programs": programs, "tests": plain_tests(net, program), "tables": tables.tables}
