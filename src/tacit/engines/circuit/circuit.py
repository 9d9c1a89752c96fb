"""The circuit that a user holds: its nodes, and ways to write and run them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from tacit.base.errors import FormatError
from tacit.base.text import quote
from tacit.engines.circuit.circuit_text import brief, check, drawn_nodes, input_variable, node_line, read_text
from tacit.engines.circuit.nodes import ARRAYS, KINDS, Nodes

if TYPE_CHECKING:
    from tacit.engines.circuit.circuit_tape import CircuitTape

HEADER = {"format": "tacit-circuit", "version": 1, "kinds": list(KINDS)}
DOT_SHAPES = {"text": "plaintext", "box": "box", "ellipse": "circle"}


@dataclass(frozen=True, eq=False, repr=False)
class Circuit(Nodes):
    """Sums, products and tests of numbers and inputs. Its arrays are those of `Nodes`."""

    def tape(self) -> CircuitTape:
        """The circuit assembled for the CPU engine: worth making for more than a few rows.

        >>> from tacit import examples, compile
        >>> circuit = compile(examples.abc(), "B", ["A", "C"]).circuit()
        >>> circuit.tape().evaluate({"A": 0.8, "C": "lo"}).round(4)
        array([[0.061, 0.069]])
        """
        from tacit.engines.circuit.circuit_tape import CircuitTape  # numba takes a while to load

        self.require(self.number)
        return CircuitTape(self)

    def to_dot(self) -> str:
        """A Graphviz drawing of the circuit, leaves at the bottom."""
        lines = ["digraph circuit {", '  rankdir=BT; node [fontname="Helvetica"];']
        for i, node in enumerate(drawn_nodes(self)):
            ring = ", peripheries=2" if node.output else ""
            lines.append(f"  {i} [shape={DOT_SHAPES[node.form]}, label={quote(node.label)}{ring}];")
            lines.extend(f"  {child} -> {i};" for child in node.children)
        return "\n".join([*lines, "}"]) + "\n"

    def to_text(self) -> str:
        """One line per node; `from_text` reads it back."""
        head = f"# inputs {json.dumps({v.name: list(v.states) for v in self.inputs})}"
        lines = [node_line(self, i) for i in range(len(self))]
        return "\n".join([head, *lines, "outputs " + " ".join(f"n{i}" for i in self.outputs)]) + "\n"

    @classmethod
    def from_text(cls, lines: str) -> Self:
        """The circuit that `to_text` wrote."""
        return cls.from_dict({**HEADER, **read_text(lines)})

    def to_dict(self) -> dict[str, Any]:
        """The circuit as plain data, ready for JSON; `from_dict` reads it back."""
        data: dict[str, Any] = HEADER | {name: getattr(self, name).tolist() for name in ARRAYS}
        data["number"] = [None if np.isnan(x) else x for x in self.number.tolist()]
        data["tables"] = [list(t) for t in self.tables]
        data["inputs"] = [{"name": v.name, "states": list(v.states)} for v in self.inputs]
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The circuit that `to_dict` described."""
        if not isinstance(data, Mapping) or {key: data.get(key) for key in HEADER} != HEADER:
            raise FormatError(f"not a {HEADER['format']} of version {HEADER['version']}")
        try:
            arrays = {name: _integers(data[name]) for name in ARRAYS}
            if not ((arrays["kind"] >= 0) & (arrays["kind"] < len(KINDS))).all():
                raise ValueError("a node is of no known kind")
            arrays["kind"] = arrays["kind"].astype(np.uint8)
            circuit = cls(
                number=np.array([np.nan if x is None else float(x) for x in data["number"]], dtype=np.float64),
                tables=tuple((str(n), str(p)) for n, p in data["tables"]),
                inputs=tuple(input_variable(v["name"], v["states"]) for v in data["inputs"]),
                **arrays,
            )
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise FormatError(f"the circuit is damaged: {type(error).__name__}: {brief(error)}") from None
        check(circuit)
        return circuit


def _integers(values: Any) -> NDArray[Any]:
    array = np.array(values, dtype=None if len(values) else np.int64)
    if array.ndim != 1 or array.dtype.kind != "i":
        raise ValueError("expected a list of integers of 64 bits")
    return array.astype(np.int64)
