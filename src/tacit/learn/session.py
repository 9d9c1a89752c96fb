"""The loop around learning: checkpoints on the way, and the best result so far after an interrupt."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable

CHECKPOINT_EVERY = 1.0  # seconds


class Session:
    """A run of learning: `save` writes its checkpoints, if any, and `has_result` says if there is a result yet."""

    def __init__(self, name: str, save: Callable[[], None] | None, has_result: Callable[[], bool]) -> None:
        self._name, self._save, self._has_result = name, save, has_result
        self._saved = time.monotonic()

    def checkpoint(self, last: bool) -> None:
        """Save, if it is the last chance or the last time was a while ago."""
        if self._save is not None and (last or time.monotonic() - self._saved >= CHECKPOINT_EVERY):
            self._save()
            self._saved = time.monotonic()

    def run(self, learn: Callable[[], None]) -> bool:
        """Learn to the end; True if the user stopped it before."""
        try:
            learn()
        except KeyboardInterrupt:
            if not self._has_result():
                raise
            warnings.warn(f"{self._name} was interrupted; the result is the best so far", stacklevel=3)
            return True
        return False
