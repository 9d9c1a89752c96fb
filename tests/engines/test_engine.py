"""Every engine can be asked everything that is used of one, and nobody else asks which engine it is."""

import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import tacit
from tacit.engines import choice
from tacit.engines.tape.instructions import MEAN_SQUARED
from tacit.learn.fitting.loss_kernels import learn
from tacit.learn.fitting.losses import evaluate
from tacit.learn.fitting.parameters import Parameters

PACKAGE = Path(tacit.__file__).parent
NAMES = ["numpy", "tape", "native", *(["torch"] if find_spec("torch") else [])]
ROWS = 11


def asked(name):
    """An engine, evidence for it, and targets and weights of these rows."""
    rng = np.random.default_rng(0)
    net = tacit.examples.chain(tests=2, gamma=8.0)
    parameters = Parameters(net, net.variables)
    net = parameters.fill(parameters.start(rng))
    tac = tacit.compile(net, "Q", ["E1", "E2"], engine=name)
    first = rng.random(ROWS)
    columns = tac.read({"E1": rng.random(ROWS), "E2": rng.random(ROWS)}).columns
    return tac.engine(), columns, np.stack([first, 1 - first]), rng.random(ROWS)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kernel", [None, learn])
def test_a_function_of_some_rows(name, kernel, monkeypatch):
    engine, columns, targets, weights = asked(name)
    monkeypatch.setattr(engine, "gradient_chunk", 3)
    rows = np.array([7, 2, 2, 10, 0])
    some, shares = np.ascontiguousarray(targets[:, rows]), weights[rows]

    def seed_of(joint, which):
        return evaluate("mse", joint, some[:, which], shares[which])

    packed = engine.pack(columns, ROWS).take(rows)
    value, found = engine.fused(packed, seed_of, kernel, shares, *((MEAN_SQUARED, some) if kernel else ()))
    expected, gradients = engine.value_and_gradients(packed.columns_of(), len(rows), lambda j: seed_of(j, slice(None)))
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    for key, table in gradients.tables.items():
        np.testing.assert_allclose(found.tables[key], table, rtol=1e-10, atol=1e-14)
    for node, slope in gradients.slopes.items():
        np.testing.assert_allclose(found.slopes[node], slope, rtol=1e-10)


@pytest.mark.parametrize("name", NAMES)
def test_an_engine_has_a_jacobian_or_says_why_not(name):
    engine, columns, _, _ = asked(name)
    packed = engine.pack(columns, ROWS)
    if engine.lacks_jacobian():
        assert name != "tape"
        with pytest.raises(NotImplementedError, match="another engine"):
            engine.jacobian(packed, 0, 1)
        with pytest.raises(NotImplementedError, match="another engine"):
            _ = engine.jacobian_size
    else:
        probability, tables = engine.jacobian(packed, 0, 1)
        joint = engine.run(columns, ROWS).joint
        np.testing.assert_allclose(probability, joint[0] / joint.sum(axis=0), rtol=1e-12)
        assert all(table.shape[1] == ROWS for table in tables.values())


def test_what_is_large_is_learned_on_a_gpu(monkeypatch):
    program = tacit.compile(tacit.examples.abc(), "B", ["A"]).program
    rows = int(choice.GPU_WORK)
    for gpu in (False, True):
        monkeypatch.setattr(choice, "_has_gpu", lambda gpu=gpu: gpu)
        assert choice.for_learning("auto", program, rows) == ("torch" if gpu else "native")
        assert choice.for_learning("numpy", program, rows) == "numpy"


def test_nobody_else_asks_which_engine_it_is():
    asking = re.compile(r"isinstance\([^()]*Engine|cast\([^()]*Engine|import .*(TapeEngine|numpy_steps import .*Array)")
    others = [file for file in PACKAGE.rglob("*.py") if "engines" not in file.relative_to(PACKAGE).parts]
    assert [file.name for file in others if asking.search(file.read_text())] == []


def test_what_learns_depends_on_the_size_alone(monkeypatch):
    program = tacit.compile(tacit.examples.abc(), "B", ["A"]).program
    assert [choice.engine_for_many_passes(program, rows) for rows in (1, choice.LEARNED_ROWS)] == ["native", "native"]
    monkeypatch.setattr(choice, "QUICKLY_GENERATED", 0)
    assert [choice.engine_for_many_passes(program, rows) for rows in (1, choice.LEARNED_ROWS)] == ["tape", "native"]
    monkeypatch.setattr(choice, "MAX_GENERATED", 0)
    assert choice.engine_for_many_passes(program, choice.LEARNED_ROWS) == "tape"
    monkeypatch.setattr(choice, "MAX_TAPE", program.cost.multiply_adds)
    assert choice.engine_for_many_passes(program, 1) == "numpy"


@pytest.mark.parametrize(("states", "engine"), [(16, "tape"), (64, "numpy")])
def test_what_learns_large_matrices_is_blas(states, engine):
    template = tacit.Network()
    template.add("Z[0]", states=states)
    template.add("x[0]", ["Z[0]"], cpt=tacit.Gaussian())
    template.add("Z[1]", ["Z[0]"], states)
    template.add("x[1]", ["Z[1]"], cpt=tacit.Gaussian())
    net = tacit.unroll(template, 50)
    program = tacit.compile(net, None, [f"x[{i}]" for i in range(50)]).program
    assert choice.engine_for_many_passes(program, 1000) == engine
