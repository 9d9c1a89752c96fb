"""Rectangles in noisy images, with and without knowledge: the study of Chen, Choi and Darwiche (PGM 2020), repeated.

Run by `make rectangles`, or `python -m paper.rectangles`. An image has 10 x 10 pixels and holds one rectangle and some
noise; whether the rectangle is tall or wide is to be told. A network that knows what a rectangle is, the same network
without its known numbers, and a convolutional neural network learn it from labelled images.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import tacit
from paper import cells
from tacit.base.grid import Grid

Codes = NDArray[np.int64]
Bools = NDArray[np.bool_]
Predictions = Codes  # of labels, a row each

OUT = Path("build/rectangles")
SIDE = 10  # pixels
CLEAN = 0.2  # of the images
FRESH = 5000  # images that judge
FEW = 1000  # of them judge networks of which only the structure is known: these take long
PAIRS = 10  # at most; the paper does not say how many
VERSION = 1  # of what a cell computes: cells of another version are made anew

KNOWLEDGE, RANDOM, STRUCTURE, CNN = "knowledge", "knowledge, random start", "structure only", "CNN"
START = "knowledge, nothing learned"
SIZES = (25, 100, 500)
MANY = 2000  # images to learn from where the noise is another one later
RUNS = {KNOWLEDGE: 5, RANDOM: 5, STRUCTURE: 2, CNN: 5}
SHAPES = ("wide", "tall")
BATCH, BATCHES, BETWEEN = 64, 3000, 10  # of the neural network: images, batches in all, and those between two checks


# images ---------------------------------------------------------------------------------------------------


class Rectangle(NamedTuple):
    """Where a rectangle begins, and its sides."""

    row: int
    col: int
    height: int
    width: int

    @property
    def area(self) -> int:
        """In pixels."""
        return self.height * self.width

    def of(self, image: Bools, margin: int = 0) -> Bools:
        """The part of an image where the rectangle is, and so many pixels around it: a view."""
        top, left = max(self.row - margin, 0), max(self.col - margin, 0)
        return image[top : self.row + self.height + margin, left : self.col + self.width + margin]


class Noise(NamedTuple):
    """How much is removed from the rectangle, and how many rectangles, pixels, and pairs of pixels are added."""

    removal: int = 0
    rectangles: int = 0
    pixels: int = 0
    pairs: int = 0
    vertical: bool = False


NOISES = {
    "medium": Noise(1, 5, 5),
    "horizontal": Noise(pairs=PAIRS),
    "vertical": Noise(pairs=PAIRS, vertical=True),
}


@dataclass(frozen=True)
class Images:
    """Images (n, rows, columns), True where black, and their rectangles (n, 4)."""

    black: Bools
    rectangles: Codes

    def __len__(self) -> int:
        return len(self.black)

    def take(self, which: Any) -> Images:
        """Some of the images."""
        return Images(self.black[which], self.rectangles[which])

    def labels(self, query: str) -> Codes:
        """Positions of states: a tall shape is 1, a height of one pixel is 0."""
        row, col, height, width = self.rectangles.T
        tall = (height > width).astype(np.int64)
        known: dict[str, Codes]
        known = {"row": row, "col": col, "height": height - 1, "width": width - 1, "shape": tall}
        return known[query]


@cache
def all_rectangles(side: int = SIDE) -> list[Rectangle]:
    """All that fit and are no squares.

    >>> len(all_rectangles())
    2640
    """
    starts = product(range(side), repeat=2)
    found = (
        Rectangle(row, col, height, width)
        for row, col in starts
        for height, width in product(range(1, side - row + 1), range(1, side - col + 1))
    )
    return [rectangle for rectangle in found if rectangle.height != rectangle.width]


def draw(count: int, noise: Noise, seed: Sequence[int], side: int = SIDE) -> Images:
    """Images of random rectangles, a fifth of them clean."""
    rng, known = np.random.default_rng(seed), all_rectangles(side)
    chosen = [known[i] for i in rng.integers(len(known), size=count)]
    clean = rng.permutation(count) < round(CLEAN * count)
    black = [picture(r, Noise() if c else noise, rng, side) for r, c in zip(chosen, clean, strict=True)]
    return Images(np.array(black), np.array(chosen))


def picture(rectangle: Rectangle, noise: Noise, rng: np.random.Generator, side: int = SIDE) -> Bools:
    """An image of a rectangle, with noise as in section 6 of the paper."""
    image = np.zeros((side, side), bool)
    rectangle.of(image)[:] = True
    removed = int(rng.integers(min(noise.removal, min(rectangle.height, rectangle.width) - 1) + 1))
    image.flat[some(np.flatnonzero(image), removed, rng)] = False
    left = rectangle.area - removed
    for _ in range(noise.rectangles):
        if (other := smaller(image, left / 2, rng)) is None:
            break
        other.of(image)[:] = True
    white = np.flatnonzero(~image)
    image.flat[some(white, min(noise.pixels, left - 1, len(white) // 2), rng)] = True
    for _ in range(min(noise.pairs, (left - 1) // 2)):  # as pixel noise: less than the rectangle
        if not add_pair(image, noise.vertical, rng):
            break
    return image


def some(of: Codes, count: int, rng: np.random.Generator) -> Codes:
    """So many of some numbers."""
    return rng.permutation(of)[:count]


def smaller(image: Bools, area: float, rng: np.random.Generator) -> Rectangle | None:
    """A rectangle of limited area that touches nothing black, not even by a corner; None if there is no place."""
    around = np.pad(image, 1)
    touched = np.any([np.roll(around, (i, j), (0, 1)) for i, j in product((-1, 0, 1), repeat=2)], axis=0)
    free = np.flatnonzero(~touched[1:-1, 1:-1])
    if not len(free):
        return None
    row, col = divmod(int(rng.choice(free)), image.shape[1])
    sizes = list(room(image, row, col, area))
    return sizes[rng.integers(len(sizes))]


def room(image: Bools, row: int, col: int, area: float) -> Iterator[Rectangle]:
    """Rectangles that begin at a pixel and touch nothing black."""
    most = image.shape[1] - col
    for height in range(1, image.shape[0] - row + 1):
        for width in range(1, most + 1):
            found = Rectangle(row, col, height, width)
            if found.of(image, margin=1).any():
                most = width - 1
                break
            if found.area <= area:
                yield found


def add_pair(image: Bools, vertical: bool, rng: np.random.Generator) -> bool:
    """Turn two white pixels beside each other black, if there are any."""
    white = ~(image.T if vertical else image)
    places = np.argwhere(white[:, :-1] & white[:, 1:])
    if not len(places):
        return False
    i, j = places[rng.integers(len(places))]
    (image.T if vertical else image)[i, j : j + 2] = True
    return True


@cache
def fresh(noise: str) -> Images:
    """The images that judge, the same for all."""
    return draw(FRESH, NOISES[noise], (0, 0))


# networks -------------------------------------------------------------------------------------------------


def pixel(i: int, j: int) -> str:
    """The name of a pixel."""
    return f"{i},{j}"


def network(kind: str, side: int = SIDE) -> tacit.Network:
    """What makes an image: where a rectangle begins, its sides, which rows and columns it covers, then the pixels.

    Knowledge is which sizes fit, the shape, and what is covered. Then there remain to be learned where rectangles
    begin, how large they are, and how likely a pixel is black in a row and a column that are covered, or not; that is
    the same for all pixels. It starts with equal probabilities, and 0.9 for black within a rectangle, 0.1 elsewhere;
    or at random. If only the structure is known, every node has a table of its own to learn.

    >>> known, unknown = network(RANDOM), network(STRUCTURE)
    >>> int(np.isnan(known.table("height")).sum()), unknown.table("row 3").shape
    (55, (10, 10, 2))
    """
    net = tacit.Network("rectangles")
    known, given = kind != STRUCTURE, kind in (KNOWLEDGE, START)
    start, size = np.arange(side)[:, None], np.arange(1, side + 1)
    fits = start + size <= side
    sizes = tacit.CPT(fits / fits.sum(axis=1, keepdims=True) if given else np.where(fits, np.nan, 0.0), learn=given)
    for begins, extent in (("row", "height"), ("col", "width")):
        net.add(begins, states=side, cpt=tacit.CPT(np.full(side, 1 / side), learn=True) if given else None)
        net.add(extent, [begins], side, sizes if known else None)
    tall = np.sign(size[:, None] - size) / 2 + 0.5  # one half for squares, which do not occur
    net.add("shape", ["height", "width"], SHAPES, two_states(tall) if known else None)
    for i in range(side):
        covered = two_states((start <= i) & (i < start + size))
        net.add(f"row {i}", ["row", "height"], 2, covered if known else None)
        net.add(f"col {i}", ["col", "width"], 2, covered if known else None)
    black = two_states([[0.1, 0.1], [0.1, 0.9]]).table
    pixels = tacit.CPT(black if given else np.full(black.shape, np.nan), learn=given, tie="pixel")
    for i, j in product(range(side), repeat=2):
        net.add(pixel(i, j), [f"row {i}", f"col {j}"], 2, pixels if known else None)
    return net


def two_states(second: Any) -> tacit.CPT:
    """A known table, by the probabilities of the second of two states."""
    second = np.asarray(second, float)
    return tacit.CPT(np.stack([1 - second, second], axis=-1))


@cache
def compiled(kind: str, side: int = SIDE) -> tacit.TAC:
    """The shape, given all pixels; compiled once per process."""
    pixels = [pixel(i, j) for i, j in product(range(side), repeat=2)]
    return tacit.compile(network(kind, side), "shape", hard=pixels)


def evidence(images: Images) -> dict[str, Codes]:
    """Images as evidence."""
    side = images.black.shape[1]
    return {pixel(i, j): images.black[:, i, j].astype(np.int64) for i, j in product(range(side), repeat=2)}


# classifiers ----------------------------------------------------------------------------------------------


def by_network(kind: str, images: Images, judged: Images, seed: int) -> Predictions:
    """Learn the numbers of a network; those that have a start count as five images for every row of a table."""
    tac = compiled(kind)
    how: dict[str, Any] = {
        KNOWLEDGE: {"steps": 100, "prior": (tac.network, 5.0)},
        RANDOM: {"steps": 100, "prior": 1.0},
        STRUCTURE: {"steps": 60, "prior": 0.1},
    }
    if kind != START:
        labels = np.array(SHAPES, dtype=object)[images.labels("shape")]
        tac = tacit.fit(
            tac, evidence(images), labels, loss="cross_entropy", optimizer="adam", batch=32, restarts=1, seed=seed,
            progress=False, **how[kind],
        ).tac  # fmt: skip
    return np.asarray(tac.posterior(evidence(judged)).argmax(axis=1))


def by_cnn(images: Images, judged: Images, seed: int, batches: int = BATCHES) -> Predictions:
    """Learn the neural network of the paper; a fifth of the images says which of its states is kept."""
    import torch

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    rng = np.random.default_rng(seed)
    labels, pixels = torch.tensor(images.labels("shape")), inputs(images)
    order = rng.permutation(len(images))
    held, rest = np.split(order, [len(order) // 5])
    model, loss = cnn(), torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    decay = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.95 ** (1 / 5000))
    lowest, best = float("inf"), model.state_dict()
    for batch in range(batches):
        if batch % BETWEEN == 0:
            now = float(loss(outputs(model, pixels[held]), labels[held]))
            if now < lowest:
                lowest, best = now, {name: value.clone() for name, value in model.state_dict().items()}
        rows = some(rest, BATCH, rng)
        optimizer.zero_grad()
        loss(model(pixels[rows]), labels[rows]).backward()
        optimizer.step()
        decay.step()
    model.load_state_dict(best)
    return np.asarray(outputs(model, inputs(judged)).argmax(1))


def inputs(images: Images) -> Any:
    """Images as a tensor (n, 1, rows, columns)."""
    import torch

    return torch.tensor(images.black[:, None], dtype=torch.float32)


def outputs(model: Any, pixels: Any) -> Any:
    """What a neural network says, without dropout."""
    import torch

    model.eval()
    with torch.no_grad():
        found = model(pixels)
    model.train()
    return found


def cnn() -> Any:
    """The neural network of section 5 of the paper, with its 1,642 weights."""
    from torch import nn

    layers = []
    for before, after, size in ((1, 8, 4), (8, 16, 3)):
        pad = ((size - 1) // 2, size // 2) * 2
        layers += [nn.ZeroPad2d(pad), nn.Conv2d(before, after, size), nn.ReLU(), nn.BatchNorm2d(after)]
        layers += [nn.MaxPool2d(2, ceil_mode=True), nn.Dropout(0.2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(16 * 3 * 3, len(SHAPES)))


# one cell -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """One classifier learned from one sample of images, with one noise there and maybe another where it is judged."""

    kind: str
    rows: int
    noise: str
    judged: str
    run: int

    @property
    def file(self) -> str:
        """A file name for the result."""
        kind = self.kind.replace(", ", "-").replace(" ", "-")
        return f"{kind}-{self.rows}-{self.noise}-{self.judged}-{self.run}-v{VERSION}.json"

    @property
    def effort(self) -> float:
        """Roughly seconds."""
        return {START: 5, KNOWLEDGE: 2, RANDOM: 2, CNN: 10, STRUCTURE: 30 + self.rows / 5}[self.kind]


@dataclass(frozen=True)
class Result:
    """The share of images whose shape was told, and the seconds that this took, with learning."""

    accuracy: float
    seconds: float


def compute(cell: Cell) -> Result:
    """Draw images, learn, and judge."""
    images = draw(cell.rows, NOISES[cell.noise], (1 + cell.run, cell.rows))
    judged = fresh(cell.judged).take(slice(FEW if cell.kind == STRUCTURE else FRESH))
    if cell.kind != CNN:
        compiled(cell.kind)  # is not to count
    started = time.process_time()
    by = by_cnn(images, judged, cell.run) if cell.kind == CNN else by_network(cell.kind, images, judged, cell.run)
    return Result(float((by == judged.labels("shape")).mean()), time.process_time() - started)


# the report -----------------------------------------------------------------------------------------------


def all_cells() -> list[Cell]:
    """From few images, and with another noise later; networks that take long from few images only."""
    noises = [("medium", "medium", n) for n in SIZES]
    noises += [("horizontal", "vertical", MANY), ("vertical", "horizontal", MANY)]
    start = [Cell(START, SIZES[0], judged, judged, 0) for _, judged, _ in noises[2:]]
    return start + [
        Cell(kind, rows, noise, judged, run)
        for noise, judged, rows in noises
        for kind, runs in RUNS.items()
        for run in range(runs)
        if kind != STRUCTURE or rows <= 100
    ]


def report(results: Mapping[Cell, Result]) -> Grid:
    """Accuracies in per cent, and seconds of a run."""
    groups: dict[tuple[str, ...], list[Result]] = {}
    for cell, result in results.items():
        groups.setdefault((cell.kind, str(cell.rows), cell.noise, cell.judged), []).append(result)
    body = []
    for key, found in groups.items():
        percent = [100 * result.accuracy for result in found]
        seconds = statistics.mean(result.seconds for result in found)
        figures = (f"{max(percent):.1f}", f"{statistics.mean(percent):.1f}", f"{min(percent):.1f}", f"{seconds:.1f}")
        body.append((*key, str(len(found)), *figures))
    return Grid([("", "images", "noise", "judged", "runs", "best", "mean", "worst", "s")], body, title="shape")


def study(out: Path, wanted: Sequence[Cell], workers: int) -> None:
    """Compute what is not there yet, and print the table."""
    print(report(cells.run(wanted, compute, Result, out / "cells", workers)))


if __name__ == "__main__":
    try:
        study(OUT, all_cells(), os.cpu_count() or 1)
    except KeyboardInterrupt:
        sys.exit(f"\nstopped; finished cells are in {OUT / 'cells'}: run again to go on")
