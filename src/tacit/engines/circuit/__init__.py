"""The scalar circuit: sums, products and tests, lowered from a program on demand."""

from tacit.engines.circuit.circuit import Circuit

__all__ = ["Circuit"]
