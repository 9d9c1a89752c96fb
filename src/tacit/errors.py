"""What can go wrong, as types: every error a user can cause is a `TacitError`."""

from __future__ import annotations


class TacitError(ValueError):
    """The root of all errors raised on purpose by tacit."""


class NetworkError(TacitError):
    """A network, a CPT or a name in it is not valid."""


class TableError(NetworkError):
    """A table holds a bad number.

    Raised where the table is built, when only positions are known; `Network.add` raises it again with the
    names of the node and of the parents' states.
    """

    def __init__(self, part: str, row: tuple[int, ...], problem: str) -> None:
        self.part, self.row, self.problem = part, row, problem
        place = f", parent state {row}" if row else ""
        super().__init__(f"{part}{place}: {problem}")

    def __reduce__(self) -> tuple[type[TableError], tuple[str, tuple[int, ...], str]]:
        """What pickle needs, since the arguments are not the message: errors cross process borders."""
        return type(self), (self.part, self.row, self.problem)


class UnsetError(NetworkError):
    """A number that must be learned first was asked for."""


class EvidenceError(TacitError):
    """Evidence names an unknown variable or state, or holds a bad number."""


class TooLargeError(TacitError):
    """The work asked for would not fit; raised before anything large is allocated.

    Of a query, the message has its width, the largest cluster, and the bytes that tables would need; where decision
    diagrams were tried, too, also the variable at which they gave up and the nodes that there were by then.
    """


class FormatError(TacitError):
    """A file is damaged or of an unknown kind, or a format cannot hold a network."""
