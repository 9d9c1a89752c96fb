"""The circuit that a user holds: its nodes, and ways to write and run them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from tacit.engines.circuit import circuit_text
from tacit.engines.circuit.nodes import Nodes

if TYPE_CHECKING:
    from tacit.engines.circuit.circuit_tape import CircuitTape


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
        """A Graphviz drawing of the circuit."""
        return circuit_text.to_dot(self)

    def to_text(self) -> str:
        """One line per node; `from_text` reads it back."""
        return circuit_text.to_text(self)

    @classmethod
    def from_text(cls, lines: str) -> Self:
        """The circuit that `to_text` wrote."""
        return circuit_text.from_text(lines, cls)

    def to_dict(self) -> dict[str, Any]:
        """The circuit as plain data, ready for JSON; `from_dict` reads it back."""
        return circuit_text.to_dict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The circuit that `to_dict` described."""
        return circuit_text.from_dict(data, cls)
