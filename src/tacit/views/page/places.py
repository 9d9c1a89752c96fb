"""The boxes of the explorer page: how large they are, and what `tacit.views.layout` makes of them.

The page draws what this file decides; the measures of a box travel with the layout, so that they are written once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

from tacit.model.cpt import TestingCPT
from tacit.model.model import Model
from tacit.views.layout import arrange, text_width, with_ports

MEASURES = {
    "title": 20,  # the height of the line with the name
    "row": 15,  # of a line with a state
    "gauge": 15,  # of a line with a test
    "pad": 5,  # below the last line, and at both sides
    "letters": 11.5,  # the size of the labels and numbers
    "bar": 47,  # the length of a full bar
    "number": 49,  # the width of a percentage
    "label": 110,  # the longest label that is shown in full
    "states": 12,  # so many lines are for states in a box; of more, the last one is that of all others
    "curve": 36,  # the height of the curve of a continuous variable, above its line of words
    "tests": 4,  # so many tests are shown in a box; of more, only how many hold
}
MIN_WIDTH, MAX_WIDTH = 124, 280
CURVE_WIDTH = 176  # of a box with curves, at least: their words have that length


def places(net: Model, titles: Sequence[str], states: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Boxes and edges of a network in pixels, for the titles and states that are shown.

    >>> import tacit
    >>> net = tacit.Network()
    >>> net.add("rain", cpt=[0.2, 0.8])
    >>> net.add("wet", parents=["rain"], cpt=[[0.9, 0.1], [0.05, 0.95]])
    >>> layout = places(net, ["rain", "wet"], [["yes", "no"]] * 2)
    >>> layout["width"], layout["height"], layout["boxes"]
    (157.0, 164.0, [[12.0, 12.0, 133.0, 55.0], [12.0, 97.0, 133.0, 55.0]])
    >>> layout["edges"]
    [{'from': 0, 'to': 1, 'points': [[78.5, 67.0], [78.5, 97.0]]}]
    """
    number = {name: i for i, name in enumerate(net.variables)}
    edges = [(number[parent], number[name]) for name in net.variables for parent in net.parents(name)]
    tests = [tests_of(net, name, titles, states) for name in net.variables]
    columns = [len(net.variable(name).columns) for name in net.variables]
    sizes = [size(*one) for one in zip(titles, states, tests, columns, strict=True)]
    layout = with_ports(arrange(sizes, edges), edges)
    return {
        "width": layout.width,
        "height": layout.height,
        "boxes": _numbers(layout.boxes),
        "edges": [
            {"from": tail, "to": head, "points": _numbers(points)}
            for (tail, head), points in zip(edges, layout.routes, strict=True)
        ],
        "measures": MEASURES,
    }


def tests_of(net: Model, name: str, titles: Sequence[str], states: Sequence[Sequence[str]]) -> list[str]:
    """The labels of the tests in a node's box, one for each state of its parents, or one in all if they are many."""
    if not net.cpt(name).testing:
        return []
    parents = [net.variables.index(parent) for parent in net.parents(name)]
    each = tests_per_state(net, name)
    if each * math.prod(len(states[p]) for p in parents) > MEASURES["tests"]:
        return [""]
    rows = [", ".join(row) for row in product(*([_stated(titles[p], state) for state in states[p]] for p in parents))]
    return [f"{row} ({j + 1})" if each > 1 else row for row in rows for j in range(each)]


def _stated(title: str, state: str) -> str:
    """A finding in few letters: "Age=18 – 65", "Age ≥ 65"."""
    return f"{title} {state}" if state.startswith(("< ", "≥ ")) else f"{title}={state}"


def tests_per_state(net: Model, name: str) -> int:
    """How many tests a node has for each state of its parents: one less than it has tables."""
    cpt = net.cpt(name)
    return len(cpt.tables) - 1 if isinstance(cpt, TestingCPT) else 0


def size(title: str, states: Sequence[str], tests: Sequence[str], columns: int = 0) -> tuple[float, float]:
    """The width and height of a box with states and tests, or with a curve for each column of numbers."""
    m = MEASURES
    longest = max([0.0, *map(text_width, [*states, *tests])])
    row = CURVE_WIDTH if columns else min(longest, m["label"]) + m["bar"] + m["number"] + 2 * m["pad"] + 6
    width = max(MIN_WIDTH, row, text_width(title, 1.22) + 2 * m["pad"] + 22)
    rows = m["row"] * min(len(states), m["states"]) + (m["curve"] + m["row"]) * columns
    height = m["title"] + rows + (4 + m["gauge"] * len(tests) if tests else 0) + m["pad"]
    return float(math.ceil(min(width, MAX_WIDTH))), float(height)


def _numbers(points: Sequence[Sequence[float]]) -> list[list[float]]:
    return [[round(number, 1) for number in point] for point in points]
