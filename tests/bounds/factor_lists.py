"""Random lists of factors, likelihoods, and sums over them with 60 digits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from hypothesis import strategies as st

from tacit.bounds.factor_list import Factor, FactorList
from tests.exact import CONTEXT, NUMBER
from tests.strategies import rngs


@st.composite
def factor_lists(draw: st.DrawFn, most: int = 5, zeros: bool = True) -> FactorList:
    """Up to `most` variables of 2 or 3 states, and factors of 0 to 3 of them; some lie between two tables."""
    count = draw(st.integers(1, most))
    names = [f"X{i}" for i in range(count)]
    cards = {name: draw(st.sampled_from([2, 2, 3])) for name in names}
    scopes = draw(st.lists(st.lists(st.sampled_from(names), max_size=3, unique=True), max_size=2 * most))
    rng, far = draw(rngs), draw(st.sampled_from([1, 1, 4, 100]))
    factors = []
    for scope in scopes:
        shape = tuple(cards[name] for name in scope)
        high = np.exp(far * rng.normal(size=shape)) * ((rng.random(shape) > 0.3) if zeros else 1.0)
        chosen = rng.random() < 0.25
        factors.append(Factor(tuple(scope), high * rng.random(shape) if chosen else high, high))
    return FactorList(cards, {name: tuple(range(cards[name])) for name in names}, tuple(factors), tuple(names))


def likelihoods(factors: FactorList, rng: np.random.Generator, rows: int = 3) -> dict[str, np.ndarray]:
    """Likelihoods of some variables, soft and hard, and now and then impossible."""
    tables = {}
    for name, card in factors.cards.items():
        kind = rng.choice(["none", "soft", "hard", "zeros"])
        table = np.eye(card)[rng.integers(card, size=rows)] if kind == "hard" else rng.random((rows, card))
        if kind == "zeros":
            table = table * (rng.random((rows, card)) < 0.7)
        if kind != "none" or not tables:  # without any, there would be one row
            tables[name] = table
    return tables


def log_sums(
    factors: FactorList, tables: Mapping[str, np.ndarray], rows: int = 3, keep: Sequence[str] = ()
) -> tuple[np.ndarray, np.ndarray]:
    """The logarithms of the sums of all products, with the low tables and with the high ones: (rows, *keep)."""
    names = list(factors.cards)
    found: list[list[np.ndarray]] = [[], []]
    for row in range(rows):
        for high in (False, True):
            product = np.full(tuple(factors.cards.values()), CONTEXT.mpf(1), dtype=object)
            for factor in factors.factors:
                product = product * _spread(factor.high if high else factor.low, factor.scope, names)
            for name, table in tables.items():
                product = product * _spread(table[row], (name,), names)
            found[high].append(product.sum(axis=tuple(i for i, name in enumerate(names) if name not in keep)))
    log = np.vectorize(lambda x: float(CONTEXT.log(x)) if x > 0 else -math.inf, otypes=[float])
    return log(np.array(found[0], dtype=object)), log(np.array(found[1], dtype=object))


def _spread(table: np.ndarray, scope: Sequence[str], names: Sequence[str]) -> np.ndarray:
    axes = [scope.index(name) for name in names if name in scope]
    shape = [table.shape[scope.index(name)] if name in scope else 1 for name in names]
    return NUMBER(np.asarray(table).transpose(axes)).reshape(shape)
