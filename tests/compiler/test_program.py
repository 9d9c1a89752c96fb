"""Programs: legality, costs and how they look."""

from dataclasses import replace

import pytest
from hypothesis import given

import tacit
from tacit import examples
from tacit.compiler.program import Contract, Normalise, Select, check
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
    assert isinstance(list(made)[made.posterior], Normalise)


def damaged(made, i, **changes):
    operations = list(made.operations)
    operations[i] = replace(operations[i], **changes)
    return replace(made, operations=tuple(operations))


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
        lambda p: replace(p, joint=p.posterior - 2),
        lambda p: replace(p, posterior=p.joint),
    ],
)
def test_illegal_programs_are_caught(damage):
    made = program(evidence=["A", "C"])
    check(made)
    with pytest.raises(AssertionError):
        check(damage(made))


def test_only_what_depends_on_evidence_is_done_for_every_row():
    assert not any(program().batched)
    assert program().cost.multiply_adds == 0
    soft = program(evidence=["C"]).cost
    assert soft.multiply_adds > 0
    assert soft.static_multiply_adds > 0  # the selection of B needs no evidence


def test_hard_evidence_is_cheaper_than_likelihoods():
    assert program(hard=["A", "C"]).cost.multiply_adds < program(evidence=["A", "C"]).cost.multiply_adds


def test_values_end_after_their_last_use():
    made = program(evidence=["A", "C"])
    wanted = made.selections["B"].marginal
    kept = {made.joint, made.posterior, wanted}
    ends = made.last_uses([wanted])
    assert sorted(j for e in ends for j in e) == sorted(set(range(len(made))) - kept)
    for i, finished in enumerate(ends):
        for later in range(i + 1, len(made)):
            assert not set(finished) & set(made.operations[later].inputs)


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
