"""Questions about what would have been, asked of a network of two worlds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from tacit.base.errors import TacitError
from tacit.model.model import Model
from tacit.model.twin import WOULD, counterpart, twin
from tacit.query.asking.options import Asked, CompileOptions, checked_query, names_of


class Counterfactual(NamedTuple):
    """The question as it is asked of a network of two worlds."""

    network: Any
    query: Asked
    evidence: Sequence[str]
    hard: Sequence[str]
    options: CompileOptions


def counterfactual(
    net: Any, query: Any, evidence: Sequence[str], hard: Sequence[str], would: Sequence[str], options: CompileOptions
) -> Counterfactual:
    """What a query would have been: that of its counterpart, where each row sets the counterparts of `would`."""
    if not isinstance(net, Model):
        raise TacitError(f"would= asks a Network what would have been, and this is a {type(net).__name__}")
    asked, set_to, done = checked_query(net, query), names_of(net, would, "would"), names_of(net, options.do, "do")
    wanted = list(net) if asked is None else [asked] if isinstance(asked, str) else [*asked]
    wanted = [net.named(name) for name in wanted]
    if asked is not None and (both := [name for name in wanted if name in set_to]):
        raise TacitError(f"the query, {both[0]!r}, is in would=, which sets it in every row; ask for another variable")
    if numbers := [name for name in set_to if net.variable(name).continuous]:
        raise TacitError(f"{numbers[0]!r} is in would=, which sets states, and it is continuous; nothing is below it")
    twins = twin(net, set_to, wanted)
    if below := [name for name in done if f"{name}{WOULD}" in twins]:
        raise TacitError(f"{below[0]!r} is in do=, and {set_to[0]!r} in would= may change it: whether it stays set in "
                         "the other world is not said; set it there, too, with would=")  # fmt: skip
    if brought := [name for name in options.per_row if f"{name}{WOULD}" in twins and name not in set_to]:
        raise TacitError(f"rows bring the table of {brought[0]!r}, which {set_to[0]!r} in would= may change: "
                         "a table does not say how chance works")  # fmt: skip
    others = tuple(counterpart(twins, name) for name in wanted)
    renamed = None if asked is None else others[0] if isinstance(asked, str) else others
    given = options.given or {}
    by_rows = [f"{name}{WOULD}" for name in set_to if f"{name}{WOULD}" not in given]
    both_worlds = replace(options, do=(*done, *by_rows))
    return Counterfactual(twins, renamed, evidence, hard, both_worlds)
