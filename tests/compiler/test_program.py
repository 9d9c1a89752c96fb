"""Programs: legality, costs and how they look."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

import tacit
from tacit import Network, examples
from tacit.compiler.operations import Contract, Parameter, Rescale, Select, Slice, spread
from tacit.compiler.program import ParentMarginal, check, program_table
from tests.strategies import queries


def program(**kinds):
    return tacit.compile(examples.diamond(), "D", **kinds).program


@given(queries())
def test_compiled_programs_are_legal(case):
    net, query, row = case
    made = tacit.compile(net, query, list(row)).program
    check(made)
    assert made.cost.live >= made.cost.peak
    assert made.cost.operations == len(made)
    sums = [op for op in made if isinstance(op, Contract) and len(op.inputs) == 1]
    assert all(set(op.axes) < set(made.operations[op.inputs[0]].axes) for op in sums)


def damaged(made, i, **changes):
    operations = list(made.operations)
    operations[i] = replace(operations[i], **changes)
    return replace(made, operations=tuple(operations))


def index_all_axes(made, i):
    (source,) = made.operations[i].inputs
    return damaged(made, i, variables=made.operations[source].axes, axes=())


def first(made, kind):
    return next(i for i, op in enumerate(made) if isinstance(op, kind))


@pytest.mark.parametrize(
    "damage",
    [
        lambda p: damaged(p, first(p, Contract), inputs=(len(p) - 1,)),
        lambda p: damaged(p, first(p, Contract), axes=("A", "A")),
        lambda p: damaged(p, first(p, Contract), axes=("nowhere",)),
        lambda p: damaged(p, first(p, Contract), axes=("D",)),
        lambda p: damaged(p, first(p, Select), axes=("A",)),
        lambda p: replace(p, batched=tuple(not b for b in p.batched)),
        lambda p: damaged(p, first(p, Select), observed=("C",)),
        lambda p: damaged(p, first(p, Select), tests=np.zeros(3, dtype=np.int64)),
        lambda p: replace(p, joint=p.joint - 1),
    ],
)
def test_illegal_programs_are_caught(damage):
    made = program(evidence=["A", "C"])
    check(made)
    with pytest.raises(AssertionError):
        check(damage(made))


def sensors(count, states=2):
    """A query with `count` sensors of hard evidence, so many that products are rescaled."""
    net = Network()
    net.add("Q", cpt=[0.5, 0.5])
    for i in range(count):
        net.add(f"E{i}", ["Q"], states, np.full((2, states), 1 / states))
    return tacit.compile(net, "Q", ["E0"], [f"E{i}" for i in range(1, count)]).program


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda p: index_all_axes(p, first(p, Slice)), "what is not observed"),
        (lambda p: damaged(p, first(p, Slice), variables=("nowhere",)), "an axis that is not there"),
        (lambda p: damaged(p, first(p, Slice), axes=()), "slice"),
        (lambda p: damaged(p, first(p, Rescale), axes=()), "changes axes"),
        (lambda p: damaged(p, first(p, Rescale), inputs=(first(p, Parameter),)), "is marked as batched"),
        (lambda p: replace(p, soft=()), "without soft evidence: {'E0'}"),
        (lambda p: replace(p, hard=(*p.hard, "Q")), "observed"),
        (lambda p: replace(p, selections={"E0": ParentMarginal(0, ("E0",))}), "selection of 'E0'"),
    ],
)
def test_illegal_uses_of_evidence_are_caught(damage, message):
    made = sensors(40)
    check(made)
    with pytest.raises(AssertionError, match=message):
        check(damage(made))


def test_a_value_that_is_the_same_for_all_rows_is_not_rescaled():
    made = sensors(40)
    i = first(made, Rescale)
    table = made.operations.index(Parameter("Q", "table", ("Q",)))
    static = damaged(made, i, inputs=(table,), axes=("Q",))
    later = {i}
    for j, operation in enumerate(static):
        if later & set(operation.inputs) and not any(static.batched[k] for k in set(operation.inputs) - later):
            later.add(j)
    unmarked = replace(static, batched=tuple(b and j not in later for j, b in enumerate(static.batched)))
    with pytest.raises(AssertionError, match="the same for all rows"):
        check(unmarked)


def test_a_sum_over_observed_states_is_caught():
    made = sensors(3)
    i = made.operations.index(Parameter("E1", "table", ("Q", "E1")))
    operations = (*made.operations[: i + 1], Contract((i,), ("Q",)))
    with pytest.raises(AssertionError, match="sums over observed states"):
        check(replace(made, operations=operations, batched=(*made.batched[: i + 1], False)))


def test_only_what_depends_on_evidence_is_done_for_every_row():
    assert not any(program().batched)
    assert program().cost.multiply_adds == 0
    soft = program(evidence=["C"]).cost
    assert soft.multiply_adds > 0
    assert soft.static_multiply_adds > 0  # the selection of B needs no evidence


def test_tables_that_observed_states_index_are_multiplied_once_for_all_rows():
    net = Network()
    net.add("H", cpt=[0.5, 0.5])
    net.add("X", ["H"], 10, np.full((2, 10), 0.1))
    net.add("Q", ["X"], cpt=np.full((10, 2), 0.5))
    made = tacit.compile(net, "Q", (), ["H"]).program
    assert made.cost.multiply_adds == 0
    assert made.cost.static_multiply_adds > 0
    assert sum(isinstance(op, Slice) for op in made) == 1


def test_hard_evidence_is_cheaper_than_likelihoods():
    assert program(hard=["A", "C"]).cost.multiply_adds < program(evidence=["A", "C"]).cost.multiply_adds


def test_an_array_is_spread_over_axes_in_another_order():
    array = np.arange(6).reshape(2, 3)
    wide = spread(array, ("B", "A"), ("A", "C", "B"))
    assert wide.shape == (3, 1, 2)
    assert wide[:, 0].tolist() == array.T.tolist()


def test_values_end_after_their_last_use():
    made = program(evidence=["A", "C"])
    wanted = made.selections["B"].marginal
    kept = {made.joint, wanted}
    ends = made.last_uses([wanted])
    assert sorted(j for e in ends for j in e) == sorted(set(range(len(made))) - kept)
    for i, finished in enumerate(ends):
        for later in range(i + 1, len(made)):
            assert not set(finished) & set(made.operations[later].inputs)


def test_likelihoods_come_when_they_are_needed():
    template = Network()
    template.add("Z[0]", states=4)
    template.add("x[0]", ["Z[0]"], cpt=tacit.Gaussian())
    template.add("Z[1]", ["Z[0]"], 4)
    template.add("x[1]", ["Z[1]"], cpt=tacit.Gaussian())
    nets = [tacit.unroll(template, steps) for steps in (20, 40)]
    programs = [tacit.compile(net, None, net.continuous).program for net in nets]
    assert programs[0].cost.live == programs[1].cost.live


def test_the_table_shows_every_step_and_the_costs():
    made = program(evidence=["A"], hard=["C"])
    lines = str(made).splitlines()
    assert lines[0].split() == ["value", "operation", "axes", "entries", "multiply-adds", "per"]
    assert len(lines) == len(made) + 2
    text = str(made)
    for part in ("parameter A.table", "likelihood A", "parameter B.plus", "select B:", " at C", "contract v", " row"):
        assert part in text
    assert lines[-1].startswith(f"width {made.cost.width}; per row: {made.cost.multiply_adds:,} multiply-adds")


def test_the_table_of_a_long_program_is_cut():
    made = tacit.compile(examples.hmm(60), "H60", ["E1"]).program
    lines = str(made).splitlines()
    assert len(made) > 200
    assert len(lines) <= 205
    assert any(line.startswith("...") and f"{len(made) - 200:,} more" in line for line in lines)


@pytest.mark.parametrize("limit", [0, 1, 4, 5])
def test_a_long_program_is_cut_in_the_middle(limit):
    program = tacit.compile(examples.abc(), "C", evidence=["A", "B"]).program
    *whole, cost = program_table(program).splitlines()
    header, *body, last = program_table(program, limit).splitlines()
    names = [f"v{i}" for i in range(len(program.operations))]
    first = limit // 2
    assert header.split() == whole[0].split()
    assert [line.split()[0] for line in whole[1:]] == names
    assert [line.split()[0] for line in body] == [*names[:first], "...", *names[len(names) - limit + first :]]
    assert body[first].split() == ["...", str(len(names) - limit), "more"]
    assert last == cost


def test_every_operation_says_what_it_works_on():
    text = program_table(tacit.compile(examples.abc(), "C", evidence=["B"], hard=["A"]).program)
    for part in ("parameter C.table", "likelihood B", "slice v", " at A", "select B: v", "contract v"):
        assert part in text
