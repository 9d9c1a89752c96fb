"""The picture of the README: what a testing node changes. Writes docs/images/testing.svg."""

from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import tacit
from tacit import semantics

TARGET = Path(__file__).parent.parent / "docs" / "images" / "testing.svg"

WIDTH, HEIGHT = 900, 330
LEFT, RIGHT, TOP, BOTTOM = 400, 870, 58, 276  # the frame of the plot
INK, PALE, BLUE, RED = "#1f2328", "#59636e", "#0969da", "#cf222e"
CLASSICAL_TABLE = [[0.9, 0.1], [0.2, 0.8]]


def network(testing: bool) -> tacit.Network:
    """E -> T -> Q; the numbers are chosen to make both jumps large."""
    net = tacit.Network()
    net.add("E", cpt=[0.6, 0.4])
    cpt = tacit.TestingCPT(plus=[[0.05, 0.95], [0.05, 0.95]], minus=[[0.95, 0.05], [0.75, 0.25]], thresholds=[0.7, 0.6])
    net.add("T", parents=["E"], cpt=cpt if testing else CLASSICAL_TABLE)
    net.add("Q", parents=["T"], cpt=[[0.95, 0.05], [0.05, 0.95]])
    return net


def curve(testing: bool, inputs: NDArray[np.float64]) -> NDArray[np.float64]:
    """P*(Q = true) for each soft evidence on E."""
    return semantics.posterior(network(testing), "Q", {"E": inputs})[:, 0]


def pieces(inputs: NDArray[np.float64]) -> list[NDArray[np.intp]]:
    """The positions in `inputs`, split where the network selects another table for T."""
    net = network(testing=True)
    chosen = [tuple(semantics.select(net, {"E": x}).nodes["T"].weight) for x in inputs]
    cuts = [i + 1 for i, (a, b) in enumerate(pairwise(chosen)) if a != b]
    return np.split(np.arange(len(inputs)), cuts)


def x_of(value: float) -> float:
    return LEFT + value * (RIGHT - LEFT)


def y_of(value: float) -> float:
    return BOTTOM - value * (BOTTOM - TOP)


def text(x: float, y: float, words: str, size: int = 14, fill: str = INK, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{fill}" {more}>{words}</text>'


def line(x1: float, y1: float, x2: float, y2: float, stroke: str, more: str = "") -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{stroke}" {more}/>'


def path(xs: NDArray[np.float64], ys: NDArray[np.float64], stroke: str, more: str = "") -> str:
    points = " ".join(f"{x_of(x):.1f},{y_of(y):.1f}" for x, y in zip(xs, ys, strict=True))
    return f'<polyline points="{points}" fill="none" stroke="{stroke}" stroke-width="3" stroke-linecap="round" {more}/>'


def drawing() -> list[str]:
    """Left: the network, testing node shaded, with a word on each node."""
    notes = {
        "E": ("soft evidence goes in:", "E is true with likelihood λ"),
        "T": ("a testing node has two tables:", "the evidence selects, row by row"),
        "Q": ("the answer comes out:", "P*(Q = true)"),
    }
    parts = [text(28, 36, "a testing Bayesian network", 15, INK, 'font-weight="bold"')]
    for i, (name, (first, second)) in enumerate(notes.items()):
        x, y = 54, 90 + 90 * i
        fill = "#d0d7de" if name == "T" else "white"
        if name != "Q":
            parts.append(line(x, y + 25, x, y + 57, INK, 'stroke-width="2" marker-end="url(#head)"'))
        parts.append(f'<circle cx="{x}" cy="{y}" r="24" fill="{fill}" stroke="{INK}" stroke-width="2"/>')
        parts.append(text(x, y + 6, name, 18, INK, 'text-anchor="middle" font-style="italic"'))
        parts += [text(x + 40, y - 4, first, 13), text(x + 40, y + 14, second, 13)]
    return parts


def axes() -> list[str]:
    """The frame of the plot, its ticks and its labels."""
    centre = 'text-anchor="middle"'
    parts = [text(LEFT, 36, "its answer as a function of the evidence", 15, INK, 'font-weight="bold"')]
    for tick in (0, 0.5, 1):
        parts.append(line(LEFT, y_of(tick), RIGHT, y_of(tick), "#d0d7de" if tick else PALE))
        parts.append(text(LEFT - 10, y_of(tick) + 4, f"{tick:g}", 12, PALE, 'text-anchor="end"'))
        parts.append(text(x_of(tick), BOTTOM + 18, f"{tick:g}", 12, PALE, centre))
    parts.append(text((LEFT + RIGHT) / 2, BOTTOM + 40, "soft evidence λ on E", 13, INK, centre))
    x, y = LEFT - 34, (TOP + BOTTOM) / 2
    parts.append(text(x, y, "P*(Q = true)", 13, INK, f'{centre} transform="rotate(-90 {x} {y})"'))
    return parts


def curves() -> list[str]:
    """Both functions, the pieces of the testing one apart."""
    inputs = np.linspace(0, 1, 401)
    classical, testing = curve(False, inputs), curve(True, inputs)
    parts = [path(inputs, classical, BLUE, 'stroke-dasharray="8 6"')]
    found = pieces(inputs)
    for before, after in pairwise(found):
        cut = (inputs[before[-1]] + inputs[after[0]]) / 2
        parts.append(line(x_of(cut), TOP, x_of(cut), BOTTOM, PALE, 'stroke-dasharray="2 4"'))
    for piece in found:
        parts.append(path(inputs[piece], testing[piece], RED))
    labels = {
        (0.7, 0.6, BLUE): ("classical network:", "one smooth curve"),
        (0.335, 0.26, RED): ("testing network:", "a piece for each", "selection of rows"),
    }
    for (x, y, colour), words in labels.items():
        parts += [text(x_of(x), y_of(y) + 18 * i, row, 13, colour) for i, row in enumerate(words)]
    return parts


def svg() -> str:
    """The whole picture."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'font-family="Helvetica, Arial, sans-serif" role="img">',
        "<title>Left: the network E, T, Q, with T testing. Right: P*(Q = true) against the soft evidence on E, "
        "one smooth curve for a classical network, three pieces with jumps for the testing one.</title>",
        '<defs><marker id="head" viewBox="0 0 10 10" refX="5" refY="5" markerWidth="5" markerHeight="5" '
        f'orient="auto"><path d="M0 0L10 5L0 10z" fill="{INK}"/></marker></defs>',
        f'<rect x="1" y="1" width="{WIDTH - 2}" height="{HEIGHT - 2}" rx="14" fill="white" stroke="#d0d7de"/>',
    )
    return "\n".join([*head, *drawing(), *axes(), *curves(), "</svg>"]) + "\n"


if __name__ == "__main__":
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(svg(), encoding="utf-8")
