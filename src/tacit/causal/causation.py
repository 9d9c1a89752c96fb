"""The probabilities of causation: was it necessary, is it sufficient, is it both?

Exact where the network says how chance works: see `Network.mechanisms`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.base.floats import Floats
from tacit.causal.events import Causation, with_columns
from tacit.evidence.column import Evidence
from tacit.evidence.read import EvidenceLike
from tacit.model.twin import WOULD, counterpart, twin
from tacit.query.answers.answer import warn_impossible
from tacit.query.asking.options import CompileOptions
from tacit.query.network import Network
from tacit.query.query import compiled
from tacit.query.tac import TAC, compile

ELSE = ".else"  # counterparts in a third world


def necessity(net: Network, cause: Any, effect: Any, rows: EvidenceLike | None = None) -> Floats:
    """The probability of necessity, PN: would Y not have been y, had X been x' in place of x? (rows,)

    That is of rows in which X was x and Y was y; `rows` may say more, about other variables.

    Parameters
    ----------
    net
        A network in which what X may change is a function of its parents: `net.mechanisms(would=[X])` makes one.
    cause, effect
        The variable X, its state x, and x', its state instead: `("X", "x", "x'")`; and `("Y", "y")`.
    rows
        Evidence on other variables; NaN where it is impossible together with X = x and Y = y.

    >>> import tacit
    >>> net = tacit.examples.kidney_stones().mechanisms("monotone", would=["treatment"])
    >>> cause, effect = ("treatment", "A", "B"), ("recovery", "yes")
    >>> tacit.causal.necessity(net, cause, effect, {"size": ["small", "large"]}).round(3)
    array([0.069, 0.058])
    """
    question = Causation.of(net, cause, effect)
    return _changed(net, question, rows, happened=True)


def sufficiency(net: Network, cause: Any, effect: Any, rows: EvidenceLike | None = None) -> Floats:
    """The probability of sufficiency, PS: would Y have been y, had X been x in place of x'? (rows,)

    That is of rows in which X was x' and Y was not y. The parameters are those of `necessity`.

    >>> import tacit
    >>> net = tacit.examples.kidney_stones().mechanisms("monotone", would=["treatment"])
    >>> cause, effect = ("treatment", "A", "B"), ("recovery", "yes")
    >>> tacit.causal.sufficiency(net, cause, effect, {"size": ["small", "large"]}).round(3)
    array([0.483, 0.136])
    """
    question = Causation.of(net, cause, effect)
    return _changed(net, question, rows, happened=False)


def both(net: Network, cause: Any, effect: Any, rows: EvidenceLike | None = None) -> Floats:
    """The probability of necessity and sufficiency, PNS: would Y be y with X = x, and not with X = x'? (rows,)

    `rows` may have evidence on all variables. The other parameters are those of `necessity`.

    >>> import tacit
    >>> net = tacit.examples.kidney_stones().mechanisms("monotone", would=["treatment"])
    >>> cause, effect = ("treatment", "A", "B"), ("recovery", "yes")
    >>> tacit.causal.both(net, cause, effect, {"size": ["small", "large"]}).round(3)
    array([0.064, 0.043])
    """
    question = Causation.of(net, cause, effect)
    known = question.others(net, rows, allowed=True)
    worlds, query, columns = three_worlds(net, question)
    if len(query) < 2:  # nothing that X may change
        impossible = np.isneginf(compile(net, None, [*known.columns]).log_evidence(known))
        warn_impossible(impossible, "the answer is NaN")
        return np.where(impossible, np.nan, 0.0)
    tac = compiled(TAC, worlds, query, [*known.columns], (), CompileOptions(do=tuple(columns)))
    posterior = tac.posterior(with_columns(known, columns))
    with_x = posterior[:, question.effect.state]
    return np.asarray(np.delete(with_x, question.effect.state, axis=-1).sum(axis=-1))


def three_worlds(net: Network, question: Causation) -> tuple[Network, list[str], dict[str, Any]]:
    """What was, what would be with X = x, and what with x': the network, the two effects, and what is set."""
    worlds = twin(twin(net, [question.x], [question.y]), [question.x], [question.y], ELSE)
    query = dict.fromkeys(counterpart(worlds, question.y, suffix) for suffix in (WOULD, ELSE))
    set_to = {f"{question.x}{WOULD}": question.present, f"{question.x}{ELSE}": question.instead}
    return worlds, list(query), {name: event.column(name) for name, event in set_to.items()}


def _changed(net: Network, question: Causation, rows: EvidenceLike | None, happened: bool) -> Floats:
    """Of rows in which Y was y, or was not, the probability that it would have been otherwise."""
    known = question.others(net, rows)
    tac = compile(net, question.y, [*known.columns, question.x, question.y], would=[question.x])
    posterior = tac.posterior(_what_was(known, question, happened))
    state = question.effect.state
    return np.asarray(np.delete(posterior, state, axis=1).sum(axis=1) if happened else posterior[:, state])


def _what_was(known: Evidence, question: Causation, happened: bool) -> Evidence:
    x, other = (question.present, question.instead)[:: 1 if happened else -1]
    y = question.effect.column() if happened else question.effect.absent()
    return with_columns(
        known, {question.x: x.column(), question.y: y, f"{question.x}{WOULD}": other.column(f"{question.x}{WOULD}")}
    )
