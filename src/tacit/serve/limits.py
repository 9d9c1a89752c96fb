"""The limits of a server: for one request, and for all of them together."""

from __future__ import annotations

from dataclasses import dataclass

from tacit.base import machine
from tacit.base.errors import TacitError


@dataclass(frozen=True)
class Limits:
    """How much a server takes on; requests beyond that are refused.

    Attributes
    ----------
    body
        Bytes of a request.
    bodies
        Bytes of all requests that are being read or wait.
    rows
        Rows of evidence in a request.
    numbers
        Numbers, or states, in an answer; also in the evidence, as a table with all rows of all its variables.
    seconds
        How long a request may wait and be worked on.
    reading
        How many seconds a client may take to send its headers, and again for the rest; also, to take more
        of the answer.
    waiting
        Requests that wait for one of the `workers`.
    workers
        Requests that are worked on at the same time; None: one for each core.
    compiled
        Queries that are kept compiled.
    connections
        Clients that are connected at the same time.
    """

    body: int = 8_000_000
    bodies: int = 64_000_000
    rows: int = 10_000
    numbers: int = 1_000_000
    seconds: float = 60.0
    reading: float = 10.0
    waiting: int = 64
    workers: int | None = None
    compiled: int = 16
    connections: int = 500

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None and not value > 0:
                raise TacitError(f"{name} is {value!r}, expected a number > 0")

    @property
    def threads(self) -> int:
        """The number of workers."""
        return self.workers or machine.threads()
