"""How long drawings take, and whether they can be read: edges through nodes, labels that overlap or stick out.

`python -m bench drawings alarm` draws some networks only. Labels are measured in matplotlib's own font, a wide one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from time import perf_counter
from typing import Any

import numpy as np

from bench.networks import NAMES, network
from bench.tables import Section
from tacit import Network
from tacit.drawing import draw
from tacit.views.picture import Arrow, Box, Oval, Picture, Text

SAMPLES = 200  # points of a curve that are looked at
TOUCH = 0.2  # pixels by which a line may reach into a node: where it starts and ends
SMALL, SECONDS, TREE_SECONDS = 200, 10, 5
Rectangle = tuple[float, float, float, float]  # left, top, right, bottom


@dataclass(frozen=True)
class Faults:
    """How often something in a picture is hard to read."""

    edges_through_nodes: int
    overlapping_labels: int
    labels_outside: int


def main(arguments: list[str]) -> None:
    section = Section(
        "Drawings",
        f"no faults; within {SECONDS} s up to {SMALL} nodes, trees of 2,000 nodes within {TREE_SECONDS} s",
        ["network", "nodes", "pixels", "seconds", "edges through nodes", "labels overlap", "labels outside", "verdict"],
    )
    made: dict[str, Callable[[], Network]] = {name: lambda name=name: network(name) for name in NAMES}
    made |= {"random, 200": lambda: random_network(200), "tree, 2,000": lambda: random_tree(2000)}
    made |= {"binary tree, 2,000": lambda: random_tree(2000, binary=True)}
    for name in arguments or made:
        section.add(name, *measured(made[name](), "tree" in name))
    print(section.text())


def measured(net: Network, tree: bool) -> list[str]:
    """What the drawing of one network takes, and how it comes out."""
    started = perf_counter()
    drawing = draw(net)
    assert drawing.svg
    seconds = perf_counter() - started
    found = faults(drawing.picture)
    numbers = (found.edges_through_nodes, found.overlapping_labels, found.labels_outside)
    barred = seconds <= TREE_SECONDS if tree else seconds <= SECONDS or len(net) > SMALL
    size = f"{drawing.picture.width:,.0f} x {drawing.picture.height:,.0f}"
    verdict = "ok" if barred and not any(numbers) else "MISSED"
    return [f"{len(net):,}", size, f"{seconds:.2f}", *map(str, numbers), verdict]


def random_network(count: int, seed: int = 0, most_parents: int = 3) -> Network:
    """Nodes with up to `most_parents` parents among those before them."""
    rng, net = random.Random(seed), Network()
    for i in range(count):
        chosen = rng.sample(range(i), min(i, rng.randrange(most_parents + 1)))
        net.add(f"node {i}", [f"node {j}" for j in sorted(chosen)])
    return net


def random_tree(count: int, seed: int = 0, binary: bool = False) -> Network:
    """Nodes with one parent among those before them."""
    rng, net = random.Random(seed), Network()
    for i in range(count):
        parent = (i - 1) // 2 if binary else rng.randrange(max(i, 1))
        net.add(f"node {i}", [f"node {parent}"] if i else [])
    return net


def faults(picture: Picture) -> Faults:
    """Count what makes a picture hard to read."""
    lines = _lines(picture)
    lowest, highest = lines.min(axis=1), lines.max(axis=1)
    whole = outline = Box(0, 0, picture.width, picture.height, "")
    labels, through, outside = list[Rectangle](), 0, 0
    for item in picture.items:
        if isinstance(item, Arrow) or (isinstance(item, Box) and not item.outline):
            continue
        if isinstance(item, Text):
            labels.append(extent(item))
            left, top, right, bottom = labels[-1]
            own = outline if _inside(outline, np.array([(left + right) / 2, (top + bottom) / 2]), 0.0) else whole
            outside += not _holds(own, labels[-1])
            item = Box(left, top, right - left, bottom - top, "")
        else:
            outline = item
        corners = [item.left, item.top], [item.left + item.width, item.top + item.height]
        near = (lowest < corners[1]).all(axis=1) & (highest > corners[0]).all(axis=1)
        through += int(_inside(item, lines[near], TOUCH).any(axis=1).sum())
    return Faults(through, _overlaps(labels), outside)


def extent(text: Text) -> Rectangle:
    """The box around a text in matplotlib's own font."""
    width, height, descent = _measured(text.text, text.size, text.bold)
    left = text.x - width * {"start": 0.0, "middle": 0.5, "end": 1.0}[text.anchor]
    return left, text.baseline - height + descent, left + width, text.baseline + descent


@cache
def _measured(text: str, size: float, bold: bool) -> tuple[float, float, float]:
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextToPath

    font = FontProperties(family="DejaVu Sans", size=size, weight="bold" if bold else "normal")
    width, height, descent = TextToPath().get_text_width_height_descent(text, font, False)
    return float(width), float(height), float(descent)


def _lines(picture: Picture) -> np.ndarray[Any, Any]:
    """Points along every curve: (curves, SAMPLES, 2)."""
    t = np.linspace(0, 1, SAMPLES)[:, None]
    curves = [np.zeros((0, SAMPLES, 2))]
    for arrow in picture.items:
        if isinstance(arrow, Arrow):
            starts = [start for start, _ in pairwise(arrow.points)]
            for a, (b, c, d) in zip(map(np.array, starts), map(np.array, arrow.curves), strict=True):
                curve = (1 - t) ** 3 * a + 3 * (1 - t) ** 2 * t * b + 3 * (1 - t) * t**2 * c + t**3 * d
                curves.append(curve[None])
    return np.concatenate(curves)


def _inside(outline: Oval | Box, points: np.ndarray[Any, Any], slack: float) -> np.ndarray[Any, Any]:
    """Which points lie inside an outline, further than `slack` from its border."""
    half = np.array([outline.width / 2 - slack, outline.height / 2 - slack])
    off = (points - [outline.left + outline.width / 2, outline.top + outline.height / 2]) / half
    return np.hypot(off[..., 0], off[..., 1]) < 1 if isinstance(outline, Oval) else np.abs(off).max(axis=-1) < 1


def _holds(outline: Oval | Box, label: Rectangle) -> bool:
    left, top, right, bottom = label
    return bool(_inside(outline, np.array([(left, top), (right, top), (left, bottom), (right, bottom)]), 1.0).all())


def _overlaps(labels: list[Rectangle]) -> int:
    return sum(1 for _ in _overlapping(sorted(labels)))


def _overlapping(labels: list[Rectangle]) -> Iterator[tuple[int, int]]:
    """Pairs of rectangles, sorted by their left sides, that overlap."""
    for i, one in enumerate(labels):
        for j in range(i + 1, len(labels)):
            if labels[j][0] >= one[2]:
                break
            if labels[j][1] < one[3] and one[1] < labels[j][3]:
                yield i, j
