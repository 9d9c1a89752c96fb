"""Why a request is not answered, with the status that says so."""

from __future__ import annotations

RETRY_AFTER = 1  # seconds


class RefusedError(Exception):
    """A request that is not answered; the message goes to the client."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class BusyError(RefusedError):
    """A request that may be answered later."""

    def __init__(self, message: str) -> None:
        super().__init__(503, message)
