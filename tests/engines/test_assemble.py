"""From programs to tapes: the rows of evidence, and how the effort to assemble grows."""

from dataclasses import replace

import numpy as np
import pytest

import tacit
from tacit import Network
from tacit.engines.tape.assemble import assemble
from tacit.engines.tape.tape_engine import TapeEngine


def star(count, hard=False):
    net = Network()
    net.add("R", cpt=[0.5, 0.5])
    for i in range(count):
        net.add(f"X{i}", ["R"], 2 + i % 3, np.full((2, 2 + i % 3), 1 / (2 + i % 3)))
    names = [f"X{i}" for i in range(count)]
    return tacit.compile(net, "R", () if hard else names, names if hard else (), effort="low", engine="tape")


class CountedSizes(dict):
    """The lengths of axes, and how often one was asked for."""

    asked = 0

    def __getitem__(self, axis):
        self.asked += 1
        return super().__getitem__(axis)


@pytest.mark.parametrize("hard", [False, True])
def test_assembling_takes_time_in_proportion_to_the_evidence(hard):
    def asked(count):
        tac = star(count, hard)
        engine = tac.engine()
        assert isinstance(engine, TapeEngine)
        sizes = CountedSizes(tac.program.sizes)
        assemble(replace(tac.program, sizes=sizes), engine.known)
        return sizes.asked

    assert asked(200) <= 2.2 * asked(100)


def test_every_variable_has_its_own_rows_of_likelihoods():
    tac = star(7)
    tape = tac.engine().tape
    assert sorted(tape.inputs) == sorted(tac.evidence)
    assert len(set(tape.inputs)) == len(tape.inputs)
    inputs = tape.terms[tape.instructions[tape.instructions[:, 0] == tape.instructions[0, 0], 2], 0]
    assert sorted(inputs) == list(range(sum(2 + i % 3 for i in range(7))))


def test_every_observed_variable_has_one_row_of_states():
    tape = star(7, hard=True).engine().tape
    assert sorted(tape.codes) == [f"X{i}" for i in range(7)]
