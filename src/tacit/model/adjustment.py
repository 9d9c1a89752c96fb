"""Adjustment sets: what to condition on, so that an effect can be told from observations.

After van der Zander, Liskiewicz and Textor, *Separators and Adjustment Sets in Causal Graphs* (Artificial Intelligence
270, 2019): a set of variables works exactly if it has none that are below a causal path, and separates `x` from `y`
where the first edges of all causal paths are taken away.
"""

from __future__ import annotations

from collections.abc import Iterable

from tacit.base.errors import NetworkError
from tacit.base.text import listed
from tacit.base.warnings import warn
from tacit.model.graph import Graph, Node


class NoAdjustmentWarning(UserWarning):
    """No set of variables can be adjusted for to tell an effect from observations."""


def adjustment_set(net: Graph, x: set[str], y: set[str], latent: set[str]) -> tuple[str, ...] | None:
    """An adjustment set of which no variable can be left out; None, with a warning, where there is none."""
    for a, b in ((x, y), (x, latent), (y, latent)):
        if a & b:
            raise NetworkError(f"{min(a & b)!r} is named twice; x, y and latent are different variables")
    on_paths = _on_causal_paths(net, x, y)
    forbidden = on_paths.union(*map(net.descendants, on_paths)) if on_paths else set()
    indirect = _without_first_edges(net, x, on_paths)
    above = indirect._with_ancestors(x | y)
    chosen = {name for name in above if name not in x | y | forbidden | latent}
    if not indirect._separated(x, y, chosen):
        warn(_reason(net, x, y, forbidden, latent), NoAdjustmentWarning)
        return None
    for name in net.variables:  # of separators among ancestors, one is minimal if no single variable can go
        if name in chosen and indirect._separated(x, y, chosen - {name}):
            chosen.remove(name)
    return net._in_order(chosen)


def _on_causal_paths(net: Graph, x: set[str], y: set[str]) -> set[str]:
    """The variables on directed paths from `x` to `y` that meet `x` in their first variable only."""
    below = set(x)
    for name in net:
        if name not in x and not below.isdisjoint(net.parents(name)):
            below.add(name)
    above = set(y)
    for name in reversed(net.variables):
        if name in above and name not in x:
            above.update(net.parents(name))
    return (below & above) - x


def _without_first_edges(net: Graph, x: Iterable[str], on_paths: set[str]) -> Graph:
    """The graph without the edges from `x` into causal paths."""
    graph = Graph()
    for name in net:
        node = net.node(name)
        kept = tuple(parent for parent in node.parents if not (parent in x and name in on_paths))
        graph._nodes[name] = Node(node.variable, kept, node.cpt)
    return graph


def _reason(net: Graph, x: set[str], y: set[str], forbidden: set[str], latent: set[str]) -> str:
    what = f"no adjustment set for the effect of {_named(net, x)} on {_named(net, y)}"
    if causes := sorted(name for name in x if set(net.descendants(name)).isdisjoint(y) and _reaches(net, y, name)):
        return f"{what}: {_named(net, y)} is a cause of {causes[0]!r}, not its effect"
    others = _without_first_edges(net, x, _on_causal_paths(net, x, y))
    candidates = {name for name in net if name not in x | y | forbidden}
    if latent and others._separated(x, y, candidates & others._with_ancestors(x | y)):
        return f"{what}: it would need latent variables, of {listed(sorted(map(repr, latent)))}"
    return f"{what}: what would block the other paths lies on causal paths, or below them"


def _reaches(net: Graph, above: set[str], name: str) -> bool:
    return not above.isdisjoint(net.ancestors(name))


def _named(net: Graph, names: set[str]) -> str:
    return listed([repr(name) for name in net._in_order(names)])
