"""What the shell offers after Tab: variables and states of the network that the command line names.

A shell must not be disturbed: whatever is wrong, nothing is offered, and nothing is said.
"""

from __future__ import annotations

import io
import os
import re
import warnings
from collections.abc import Callable, Iterable
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import Any

import typer

from tacit.io.files import read

PLAIN = re.compile(r"[\w@%+=:,./-]+")  # what a shell takes as one word, without quotation marks
MAX_BYTES = 2**22  # of a file that is read while somebody waits


def variables(ctx: typer.Context, incomplete: str) -> list[str]:
    """The variables whose names begin so."""
    return _plain(name for name in _network(ctx) if name.startswith(incomplete))


def lists(ctx: typer.Context, incomplete: str) -> list[str]:
    """The variables that may be next in a list with commas."""
    before, comma, last = incomplete.rpartition(",")
    named = before.split(",")
    return _plain(f"{before}{comma}{name}" for name in _network(ctx) if name.startswith(last) and name not in named)


def values(ctx: typer.Context, incomplete: str) -> list[str]:
    """`VARIABLE=` for every variable that may be meant; where only one is, `VARIABLE=STATE` for its states.

    So a shell never puts a space after the equals sign.
    """
    net = _network(ctx)
    name, sign, _ = incomplete.partition("=")
    meant = [name] if sign and name in net else [other for other in net if other.startswith(name) and not sign]
    if len(meant) != 1:
        return _plain(f"{name}=" for name in meant)
    states = net.states(meant[0])
    return _plain(text for state in states if (text := f"{meant[0]}={state}").startswith(incomplete))


def _network(ctx: typer.Context) -> Any:
    """The network of a command, or none."""
    try:
        path = Path(ctx.params["model"] or ctx.args[0]).expanduser()  # not a parameter yet, after an option's name
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return read(path) if path.stat().st_size <= MAX_BYTES else ()
    except Exception:
        return ()


def _plain(words: Iterable[str]) -> list[str]:
    return [word for word in words if PLAIN.fullmatch(word)]


def complete_in_bash(run: Callable[[], object]) -> None:
    """Let `run` print what it offers, as bash expects it."""
    before = _join_words()
    with redirect_stdout(io.StringIO()) as offered, suppress(SystemExit):
        run()
    for line in offered.getvalue().splitlines():
        print(line.removeprefix(before))


def _join_words() -> str:
    """Undo what bash does to `A=true`, which it passes on as three words; the part of the last word that is
    before its third.

    Bash expects what is offered without that part.
    """
    words, place = os.environ["COMP_WORDS"].split("\n"), int(os.environ["COMP_CWORD"])
    joined: list[str] = []
    for word in words[: place + 1]:
        if joined[1:] and (word == "=" or joined[-1].endswith("=")):
            joined[-1] += word
        else:
            joined.append(word)
    os.environ["COMP_WORDS"], os.environ["COMP_CWORD"] = "\n".join(joined), str(len(joined) - 1)
    return joined[-1][: len(joined[-1]) - len(words[place].removeprefix("="))]
