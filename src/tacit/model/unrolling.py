"""Networks with slices: a template of two of them, rolled out to any number of steps."""

from __future__ import annotations

import operator
import re
from typing import NamedTuple, TypeVar

from tacit.base.errors import NetworkError
from tacit.base.text import fresh_name, shown
from tacit.model.cpt import CPT, TestingCPT
from tacit.model.densities import BaseDensity
from tacit.model.elements.variable import Variable
from tacit.model.model import Model
from tacit.model.rules import Mux, NoisyOr

M = TypeVar("M", bound=Model)

NUMBERED = re.compile(r"(.+)\[([0-9]+)\]", re.DOTALL)


def unroll(template: M, steps: int) -> M:
    """The network of so many steps that a template of two slices stands for.

    Nodes `X[0]` and `X[1]` of the template become `X[0]`, `X[1]`, ..., `X[steps-1]`. The parents of `X[1]` may be in
    its own slice and in the one before, so `X[t]` depends on steps `t` and `t-1`. Nodes without a number are shared:
    they are in the network once, and may be parents of any step. A node `X[1]` without an `X[0]` begins at step 1.

    From `X[1]` on, all steps have one table (a tie called `X[1]`), which is learned as one; `X[0]` has its own. A tie
    of the template stays what it is, over all steps: give `E[0]` and `E[1]` the same `tie` if they are to be learned
    as one. Functions, multiplexers and noisy-ors, which cannot be tied, are copied.

    Parameters
    ----------
    template
        A network whose nodes are called `X[0]`, `X[1]`, or anything without a number in brackets at its end.
    steps
        How many steps: 1 or more.

    >>> import tacit
    >>> weather = tacit.Network("weather")
    >>> weather.add("Rain[0]", cpt=[0.5, 0.5])
    >>> weather.add("Umbrella[0]", ["Rain[0]"], cpt=tacit.CPT([[0.9, 0.1], [0.2, 0.8]], tie="umbrella"))
    >>> weather.add("Rain[1]", ["Rain[0]"], cpt=[[0.7, 0.3], [0.3, 0.7]])
    >>> weather.add("Umbrella[1]", ["Rain[1]"], cpt=tacit.CPT([[0.9, 0.1], [0.2, 0.8]], tie="umbrella"))
    >>> net = tacit.unroll(weather, steps=3)
    >>> net.variables
    ('Rain[0]', 'Umbrella[0]', 'Rain[1]', 'Umbrella[1]', 'Rain[2]', 'Umbrella[2]')
    >>> net.ties
    {'umbrella': ('Umbrella[0]', 'Umbrella[1]', 'Umbrella[2]'), 'Rain[1]': ('Rain[1]', 'Rain[2]')}
    >>> net.posterior("Rain[2]", {"Umbrella[0]": "true", "Umbrella[1]": ["true", None]}).round(4)
    array([[0.6533, 0.3467],
           [0.5509, 0.4491]])
    """
    try:
        count = 0 if isinstance(steps, bool) else operator.index(steps)
    except TypeError:
        count = 0
    if count < 1:
        raise NetworkError(f"steps is {steps!r}, expected a whole number, 1 or more")
    slices = _Slices(template)
    net = template.empty_copy()
    for name in (*slices.shared, *slices.first):
        slices.put(net, name, 0)
    for step in range(1, count):
        for name in slices.later:
            slices.put(net, name, step - 1)
    return net


def step_of(name: str) -> int | None:
    """The number of the step that a variable belongs to; None if it has none.

    >>> step_of("Rain[12]"), step_of("Rain")
    (12, None)
    """
    numbered = NUMBERED.fullmatch(name)
    return None if numbered is None else int(numbered[2])


def steps_of(net: Model, name: str) -> tuple[str, ...]:
    """The variables `name[t]` of a network, earliest first."""
    steps = [n for n in net.variables if (match := NUMBERED.fullmatch(n)) is not None and match[1] == name]
    if not steps:
        raise NetworkError(f"the network has no steps of {name!r}: no variable is called {name}[0], {name}[1], ...")
    return tuple(sorted(steps, key=lambda n: step_of(n) or 0))


class _Place(NamedTuple):
    """Where a node of a template is: its columns without their number, and the slice; None if all steps share it."""

    columns: tuple[str, ...]
    slice: int | None = None

    def moved_columns(self, by: int) -> list[str]:
        """The names of its columns so many steps later; of a node with states, its name."""
        return [name if self.slice is None else f"{name}[{self.slice + by}]" for name in self.columns]

    def moved(self, by: int) -> str:
        """The name of the node so many steps later."""
        return ", ".join(self.moved_columns(by))


class _Slices:
    """A checked template."""

    def __init__(self, template: Model) -> None:
        if not isinstance(template, Model):
            raise NetworkError(f"unroll takes a network with nodes X[0] and X[1], got {shown(template)}")
        for name in template.value_nodes:
            raise NetworkError(f"template value node {name!r} is not unrolled; add it to the network that unroll makes")
        self.template = template
        self.places = {name: _place(template.variable(name)) for name in template.variables}
        self.shared, self.first, self.later = (
            [name for name, place in self.places.items() if place.slice == which] for which in (None, 0, 1)
        )
        if not self.later:
            raise NetworkError("the template has no node X[1], so there is nothing to unroll; name nodes X[0] and X[1]")
        self.ties = template.ties
        for name in self.shared:
            for parent in template.parents(name):
                if self.places[parent].slice is not None:
                    problem = f"template node {name!r} is shared by all steps, so {parent!r} cannot be its parent"
                    remedy = f"call it {name + '[0]'!r} and {name + '[1]'!r}, or turn the edge round"
                    raise NetworkError(f"{problem}; {remedy}")
        for name in self.first:
            self._check_first(name)
        for name in self.later:  # copies that were learned apart would be several tables where one is meant
            if isinstance(cpt := template.cpt(name), NoisyOr) and cpt.learn:
                problem = f"template node {name!r}: a noisy-or to be learned cannot be tied over the steps"
                remedy = "give its numbers without learn=True, or a table: CPT(..., learn=True)"
                raise NetworkError(f"{problem}; {remedy}")

    def _check_first(self, name: str) -> None:
        for parent in self.template.parents(name):
            if self.places[parent].slice == 1:
                problem = f"template node {name!r} has the parent {parent!r}, of a later step"
                raise NetworkError(f"{problem}; parents of step 0 are in step 0 or shared")
        place = self.places[name]
        if (later := place.moved(1)) not in self.places:
            problem = f"template node {name!r} has no {later!r}, which says what it is from step 1 on"
            raise NetworkError(f"{problem}; call it {', '.join(place.columns)!r} if there is only one")
        states, theirs = list(self.template.states(name)), list(self.template.states(later))
        if states != theirs or self.template.bins(name) != self.template.bins(later):
            problem = f"template nodes {name!r} and {later!r} have different states"
            raise NetworkError(f"{problem}: {shown(states)} and {shown(theirs)}")

    def put(self, net: Model, name: str, by: int) -> None:
        """Add a node of the template to a network, so many steps later than it stands."""
        place, node = self.places[name], self.template.node(name)
        cpt, later = node.cpt, {parent: self.places[parent].moved(by) for parent in node.parents}
        match cpt:
            case CPT() | TestingCPT() | BaseDensity() if place.slice == 1 and cpt.tie is None:
                cpt = cpt._with(tie=fresh_name(name, self.ties))
            case Mux():
                cpt = Mux(later[cpt.selector], [later[parent] for parent in cpt.inputs])
            case NoisyOr():
                cpt = NoisyOr(cpt.causes, cpt.leak, cpt.learn)  # the causes follow the parents
        if node.variable.continuous:
            net.add(place.moved_columns(by), later.values(), cpt=cpt)
        else:
            net.add(place.moved(by), later.values(), node.variable.states, cpt, bins=node.variable.bins)


def _place(variable: Variable) -> _Place:
    """Where a node is; its columns must all be in the same slice."""
    places = [_place_of(name) for name in variable.columns or (variable.name,)]
    slices = {place.slice for place in places}
    if len(slices) > 1:
        raise NetworkError(f"template node {variable.name!r} has columns of several slices; number all of them alike")
    return _Place(tuple(name for place in places for name in place.columns), slices.pop())


def _place_of(name: str) -> _Place:
    numbered = NUMBERED.fullmatch(name)
    if numbered is None:
        return _Place((name,))
    base, number = numbered.groups()
    if number not in ("0", "1"):
        problem = f"template node {name!r}: a template has two slices, so numbers are [0] and [1]"
        remedy = f"add a node that keeps what {base!r} was, such as 'Before[1]' with the parent '{base}[0]'"
        raise NetworkError(f"{problem}; to depend on earlier steps, {remedy}")
    return _Place((base,), int(number))
