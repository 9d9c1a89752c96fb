"""Normal densities of many numbers in generated code, which does in one pass what takes NumPy eight."""

from __future__ import annotations

import math
from array import array
from typing import TYPE_CHECKING

import numpy as np

from tacit.engines.native.lanes import FunctionText, Lanes
from tacit.engines.native.readers import log_density
from tacit.evidence.density_column import LOG_SMALLEST, DensityColumn, Shares

if TYPE_CHECKING:
    from tacit.engines.native.llvm import Code

LANES = Lanes(64, 16)
CALL = ("numbers", "rows", "terms", "components", "found")
WORTH = 2**21  # densities, milliseconds of NumPy, from which on code is compiled, or loaded


class NormalCode:
    """What works out normal densities, as soon as there were enough of them to repay code; see `Shares`."""

    def __init__(self) -> None:
        self._code: Code | None = None
        self._waiting: float = WORTH

    def __call__(self, column: DensityColumn) -> Shares | None:
        assert column.density is not None, "numbers are bound before a pass"
        rows, components, terms = column.rows, column.density.components, column.normal_terms
        if terms is None or rows < LANES.rows or (code := self._after(rows * components)) is None:
            return None
        numbers, found = np.ascontiguousarray(column.values[:, 0]), np.empty((components + 2, rows))
        given, of_terms, out = (part.__array_interface__["data"][0] for part in (numbers, terms, found))
        call = array("q", [given, rows, of_terms, components, out])
        code.run(call.buffer_info()[0])
        top, low = found[components:].copy()  # which are kept longer than the shares
        return Shares(found[:components], top, low)

    def _after(self, densities: int) -> Code | None:
        """The code, if there is some by now; so many densities more are asked for."""
        if self._code is None:
            self._waiting -= densities
            if self._waiting <= 0:
                from tacit.engines.native.llvm import NoCodeError, code

                try:
                    self._code = code(normal_text(), "run")
                except NoCodeError:
                    self._waiting = math.inf
        return self._code


def normal_text() -> str:
    """The text of the function `run`, whose arguments `CALL` lists. Tops and lows are put out below the shares."""
    text = FunctionText(LANES)
    given = {}
    for i, name in enumerate(CALL):
        kind = "i64" if name in ("rows", "components") else "ptr"
        given[name] = text.let(f"load {kind}, ptr {text.place('%call', i, 'i64')}")
    last = text.let(f"sub i64 {given['rows']}, {LANES.rows}")
    top, low = (text.variable(LANES.type, "zeroinitializer") for _ in range(2))
    with text.loop("0", given["rows"], LANES.rows) as start:
        inside = text.let(f"icmp slt i64 {start}, {last}")  # the last rows are done with some of those before
        first = text.let(f"select i1 {inside}, i64 {start}, i64 {last}")
        x = text.let(f"load {LANES.type}, ptr {text.place(given['numbers'], first, 'double')}, align 8")
        known = text.compare("ord", x, x)
        text.do(f"store {LANES.type} {LANES.literal(-math.inf)}, ptr {top}")
        with text.loop("0", given["components"]) as component:
            log = text.select(known, log_density(text, x, given["terms"], component), LANES.literal(0.0))
            _store(text, log, _share(text, given, component, first))
            text.do(f"store {LANES.type} {text.largest(log, text.value(top))}, ptr {top}")
        text.do(f"store {LANES.type} {LANES.literal(0.0)}, ptr {low}")
        whole = text.value(top)
        with text.loop("0", given["components"]) as component:
            share = _share(text, given, component, first)
            less = text.sub(text.let(f"load {LANES.type}, ptr {share}, align 8"), whole)
            lower = text.compare("olt", less, text.value(low))
            text.do(f"store {LANES.type} {text.select(lower, less, text.value(low))}, ptr {low}")
            _store(text, text.exp_of_negative(less, LOG_SMALLEST), share)
        _store(text, whole, _share(text, given, given["components"], first))
        below = text.let(f"add i64 {given['components']}, 1")
        _store(text, text.value(low), _share(text, given, below, first))
    text.do("ret void")
    return text.function("define void @run(ptr %call)")


def _share(text: FunctionText, given: dict[str, str], component: str, first: str) -> str:
    before = text.let(f"mul i64 {component}, {given['rows']}")
    return text.place(given["found"], text.let(f"add i64 {before}, {first}"), "double")


def _store(text: FunctionText, value: str, place: str) -> None:
    text.do(f"store {LANES.type} {value}, ptr {place}, align 8")
