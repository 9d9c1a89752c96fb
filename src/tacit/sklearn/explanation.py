"""Why a row gets its prediction, in the names and units of its features."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.base.floats import Floats
from tacit.base.grid import Grid, probability
from tacit.base.text import DIGITS, bars, in_digits, told_apart
from tacit.model.cpt import TestingCPT
from tacit.query.answers.selection import Selected
from tacit.query.network import Network
from tacit.sklearn.default import Ranks
from tacit.sklearn.table import missing
from tacit.theory.conclusions import told

MAX_SHOWN = 20  # features, and tests
REVERSED = {">=": "<=", ">": "<", "<=": ">=", "<": ">"}


@dataclass(frozen=True, eq=False)
class Feature:
    """A feature of a row, and its weight beside the others.

    Attributes
    ----------
    name, value
        The column of X, and what the row holds there.
    without
        What is predicted if only this value were missing: the probability of every class, or a number.
    weight
        Of a classifier, by how much the value raises the log-odds of every class given all others, in nats; of a
        regressor, by how much it raises the prediction.
    """

    name: str
    value: Any
    without: Floats
    weight: Floats


@dataclass(frozen=True)
class FeatureTest:
    """A test of the default network: a feature is compared with a threshold in its own units.

    `holds` is between 0 and 1 where tests are sigmoids. `distance` is how far the value is from the threshold, in
    ranks: as a share of the rows that were learned from.
    """

    feature: str
    value: float
    operator: str
    threshold: float
    holds: float
    distance: float


@dataclass(frozen=True, eq=False)
class Prediction:
    """Why a row gets its prediction. Made by `explain` of an estimator; prints as text and shows as HTML.

    Attributes
    ----------
    classes
        The classes; None for a regressor.
    predicted
        The probability of every class; or the number that is predicted, an array of one.
    features
        What each feature adds to the others, in the order of X. Missing ones add nothing, and are left out.
    tests
        The tests of the default network; none of any other.
    """

    classes: tuple[Any, ...] | None
    predicted: Floats
    features: tuple[Feature, ...]
    tests: tuple[FeatureTest, ...] = ()

    @property
    def state(self) -> int:
        """The place of the class that is predicted."""
        return int(self.predicted.argmax())

    def __str__(self) -> str:
        answer = f"prediction {self.predicted[0]:.6g}"
        if self.classes is not None:
            answer = f"P*(class)\n{bars(self.classes, self.predicted.tolist())}"
        return "\n\n".join([answer, *map(str, self._grids())])

    def _repr_html_(self) -> str:
        rows = list(enumerate(self.classes or ("prediction",)))
        answer = Grid([("", "")], [(str(label), self._number(float(self.predicted[i]))) for i, label in rows])
        return "".join(grid.html() for grid in (answer, *self._grids()))

    def _number(self, value: float) -> str:
        return f"{value:.6g}" if self.classes is None else probability(value)

    def _grids(self) -> list[Grid]:
        return [self._features()] * bool(self.features) + [self._tests()] * bool(self.tests)

    def _features(self) -> Grid:
        """The features that add most."""
        i = self.state
        telling = [one for one in self.features if told(one.weight[i]) != 0] or list(self.features)
        largest = sorted(telling, key=lambda one: -np.nan_to_num(abs(one.weight[i])))[:MAX_SHOWN]
        numbers = [(self._number(float(one.without[i])), f"{told(one.weight[i]):+.3g}") for one in largest]
        body = [(one.name, in_words(one.value), *both) for one, both in zip(largest, numbers, strict=True)]
        what = "the prediction" if self.classes is None else f"the log-odds of {self.classes[i]}"
        nats = "" if self.classes is None else " (nats)"
        hidden = len(self.features) - len(largest)
        return Grid(
            [("feature", "value", "without it", "weight" if self.classes else "difference")],
            body,
            title=f"What each feature adds to {what}, given the others{nats}",
            note=f"... and {hidden} more, which add less" if hidden > 0 else "",
        )

    def _tests(self) -> Grid:
        """The tests that were decided by the smallest distance."""
        close = sorted(self.tests, key=lambda test: test.distance)[:MAX_SHOWN]
        body = []
        for test in [test for test in self.tests if test in close]:
            holds = {1.0: "yes", 0.0: "no"}.get(test.holds, f"{test.holds:.1%}")
            body.append((f"{test.feature} {test.operator} {test.threshold:.6g}", in_words(test.value), holds))
        hidden = len(self.tests) - MAX_SHOWN
        note = f"... and {hidden} more, with values farther away" if hidden > 0 else ""
        return Grid([("test", "value", "holds")], body, note=note)


def compared(
    net: Network, selections: Mapping[str, Selected], ranks: Sequence[Ranks], names: Sequence[str], row: Floats
) -> tuple[FeatureTest, ...]:
    """The tests of the default network, for a row of features that were scaled by their ranks.

    The posterior of `E` is the rank itself, or 1 less the rank, for its second state: the test is turned around.
    """
    tests = []
    for node, selected in selections.items():
        place = int(node[1:].partition(".")[0])
        cpt, scale = net.cpt(node), ranks[place]
        assert isinstance(cpt, TestingCPT)
        if np.isnan(row[place]) or len(scale.values) < 2:
            continue
        rank = float(scale(row[place : place + 1])[0])
        for state, threshold in enumerate(cpt.thresholds.tolist()):
            operator = str(cpt.test[state])
            at = threshold if state == 0 else 1 - threshold
            tests.append(
                FeatureTest(
                    feature=names[place],
                    value=float(row[place]),
                    operator=operator if state == 0 else REVERSED[operator],
                    threshold=float(np.interp(at, scale.ranks, scale.values)),
                    holds=float(selected.weight[0, state]),
                    distance=abs(rank - at),
                )
            )
    return tuple(tests)


def in_words(value: Any, digits: int = DIGITS) -> str:
    """A value of X in words; "-" for a missing one."""
    if missing(value):
        return "-"
    return in_digits(float(value), digits) if isinstance(value, float | np.floating) else str(value)


def differing(names: Iterable[str], first: Iterable[Any], second: Iterable[Any]) -> dict[str, tuple[str, str]]:
    """The names whose values differ between two rows, and these in words, with the digits that tell them apart."""
    values = zip(names, first, second, strict=True)
    return {name: _both_in_words(one, two) for name, one, two in values if not _same(one, two)}


def _both_in_words(one: Any, two: Any) -> tuple[str, str]:
    return told_apart(lambda digits: (in_words(one, digits), in_words(two, digits)))


def _same(one: Any, two: Any) -> bool:
    return missing(two) if missing(one) else not missing(two) and bool(one == two)
