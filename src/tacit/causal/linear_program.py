"""Linear programs whose numbers may be of very different sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array, csr_array

from tacit.base.floats import Floats


def least(aim: Floats, matrix: Any, totals: Floats) -> Floats | None:
    """The numbers from 0 with the least `aim @ x` of which `matrix @ x` is `totals`; None if there are none.

    The tolerances of the solver are absolute. So each number is measured by the smallest total that it is part of, and
    each total by itself: what is rare is as exact as what is frequent.
    """
    rows = coo_array(matrix)
    possible = np.ones(len(aim), dtype=bool)
    possible[rows.col[totals[rows.row] == 0]] = False
    unit = np.full(len(aim), np.inf)
    np.minimum.at(unit, rows.col, totals[rows.row])
    unit = np.where(possible & np.isfinite(unit), unit, 0.0)
    used = totals[rows.row] > 0
    data = rows.data[used] * unit[rows.col[used]] / totals[rows.row[used]]
    scaled = csr_array((data, (rows.row[used], rows.col[used])), shape=rows.shape)
    costs = aim * unit
    answer = linprog(
        costs / (np.abs(costs).max() or 1.0), A_eq=scaled[totals > 0], b_eq=np.ones((totals > 0).sum()), method="highs"
    )
    return None if answer.x is None else np.asarray(answer.x * unit)
