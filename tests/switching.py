"""`engine="auto"` made to change its runner wherever it may: before every call.

What "auto" runs depends on costs; tests have few rows, and would hardly ever see it change. In all tests but those of
its choice, it takes turns instead: NumPy, the interpreter, and for some queries generated code, which takes long to
compile.
"""

import itertools
from collections.abc import Iterator

import pytest

from tacit.engines.engine import Engine, Sweep
from tacit.engines.native.auto import Auto

CHOICE = Auto.runner  # as it is
WITH_CODE = 8  # one of so many queries has generated code among its runners


class Turns:
    """Gives every engine its runners in turn."""

    def __init__(self, with_code: int = WITH_CODE) -> None:
        self._queries, self._with_code = itertools.count(), with_code

    def runner(self, engine: Auto, rows: int, *sweeps: Sweep) -> Engine:
        """The next runner."""
        return self._next(engine, code=Sweep.DESCENT not in sweeps)

    def _next(self, engine: Auto, code: bool) -> Engine:
        if engine._decides:  # there may be a tie: it must not change
            return engine.tape
        number, turns = vars(engine).setdefault("turns", (next(self._queries), itertools.count()))
        others = [engine.native] if code and number % self._with_code == 0 else []
        runners = [engine.tape, *others, engine.numpy]
        return runners[next(turns) % len(runners)]


def forced(patch: pytest.MonkeyPatch, with_code: int = WITH_CODE) -> None:
    """Make it change its runner before every call."""
    turns = Turns(with_code)
    patch.setattr(Auto, "runner", lambda self, rows, *sweeps, calls=1: turns.runner(self, rows, *sweeps))


def natural(patch: pytest.MonkeyPatch) -> None:
    """Let it choose as it does for users."""
    patch.setattr(Auto, "runner", CHOICE)


@pytest.fixture(autouse=True, scope="session")
def auto_changes_its_runner() -> Iterator[None]:
    """In all tests, unless one asks for its natural choice."""
    with pytest.MonkeyPatch.context() as patch:
        forced(patch)
        yield


@pytest.fixture
def natural_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The choice that users meet."""
    natural(monkeypatch)
