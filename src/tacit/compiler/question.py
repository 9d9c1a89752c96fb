"""What a program is to compute."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Question:
    """p*(query, evidence) for all states of the query variables; without any, p*(evidence).

    Variables in `evidence` may have any; those in `hard` are observed in every row, and those in `do` are set in every
    row, as interventions: their own tables do not count. `given` are pairs of a variable and its state, the same in all
    rows: no other state is compiled. With `best`, all other variables are summed out first, and then the maximum over
    the states of these is taken.

    Barren nodes, which have no say in the result, are dropped, unless `every_node` is set: a sample has a state for
    them, too. So are states that known 0s rule out, unless `every_state` is set: derivatives by those 0s need them.
    Without `index`, states that are known in every row are likelihoods like all others. With `by_row`, what is made of
    tables alone is expected to be computed for every row, too, since derivatives by them are wanted row by row.

    `reports` names testing nodes without children that have no say in the result, either. Each tells the posterior of
    its parents given a part of the evidence: what is named beside it, and what earlier ones know.

    Variables that are `whole` index no tables, also where their state is known in every row: the parents of what has a
    density, whose values are likelihoods of all their states.

    Rows bring along the tables of the nodes in `per_row`: likelihoods of the joint states of their families.
    """

    query: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    hard: tuple[str, ...] = ()
    do: tuple[str, ...] = ()
    given: tuple[tuple[str, int], ...] = ()
    best: tuple[str, ...] = ()
    every_node: bool = False
    every_state: bool = False
    index: bool = True
    by_row: bool = False
    reports: tuple[tuple[str, tuple[str, ...]], ...] = ()
    whole: tuple[str, ...] = ()
    per_row: tuple[str, ...] = ()

    @cached_property
    def indexed(self) -> frozenset[str]:
        """The variables whose state indexes tables: a query keeps its axis, also where its state is known."""
        return frozenset((*self.hard, *self.do) if self.index else ()).difference(self.query, self.whole)

    @cached_property
    def soft(self) -> tuple[str, ...]:
        """The variables that have likelihoods."""
        return tuple(name for name in self.evidence if name not in self.indexed)

    @cached_property
    def named(self) -> frozenset[str]:
        """The variables whose own states matter, not only sums over them."""
        return self.indexed.union(self.query, self.best)
