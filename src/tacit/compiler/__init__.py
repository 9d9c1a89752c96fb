"""The compiler: prune -> order -> eliminate -> program."""

from tacit.compiler.strategy import by_diagrams, compile_program, price, trace

__all__ = ["by_diagrams", "compile_program", "price", "trace"]
