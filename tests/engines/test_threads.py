"""Eight threads ask one query, whatever they ask and whichever runner each call is given."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

import tacit
from tacit import Network
from tests.helpers import close
from tests.switching import forced

THREADS, TURNS = 8, 3


def chain(length=24):
    """Long enough that rows are rescaled; most rows say nothing, so that runners scale them by different powers."""
    rng = np.random.default_rng(1)
    net = Network()
    net.add("T0", states=list("abc"), cpt=rng.dirichlet(np.ones(3)))
    for i in range(1, length):
        net.add(f"T{i}", [f"T{i - 1}"], list("abc"), rng.dirichlet(np.ones(3), 3))
    rows = {n: np.where(rng.random((40, 1)) < 0.98, np.nan, rng.random((40, 3))) for n in net}
    rows[f"T{length - 1}"][:5] = [0.2, 0.5, 0.3]
    return net, rows


NET, ROWS = chain()


def gradients(tac, rows):
    engine, known = tac.engine(), tac.read(rows)
    found = engine.run(known.columns, known.rows)
    seeds = np.zeros_like(found.joint)
    seeds[0] = 1 / found.joint.sum(axis=0)
    by = engine.gradients(known.columns, known.rows, seeds, found.exponent)
    return {**{str(key): table for key, table in by.tables.items()}, **by.likelihoods}


def mpe(tac, rows):
    found = tac.mpe(rows)
    return {"log": found.log_probability, **{n: states == "a" for n, states in found.states.items()}}


QUESTIONS = {
    "posterior": lambda tac, rows: {"Q": tac.posterior(rows)},
    "one row": lambda tac, rows: {"Q": np.concatenate([tac.posterior({"T3": s, "T9": "b"}) for s in "abc" * 10])},
    "marginals": lambda tac, rows: tac.marginals(rows),
    "information": lambda tac, rows: tac.information(rows),
    "mpe": mpe,
    "sample": lambda tac, rows: {n: own == "a" for n, own in tac.sample(rows, n=5, seed=3).items()},
    "gradients": gradients,
}


@pytest.mark.parametrize("choice", ["forced", "natural"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_threads_get_the_answers_of_one(monkeypatch, request, question, choice):
    if choice == "forced":
        forced(monkeypatch, with_code=1)
    else:
        request.getfixturevalue("natural_choice")
    ask, start = QUESTIONS[question], Barrier(THREADS)
    expected = ask(tacit.compile(NET, "T0", list(NET), engine="numpy"), ROWS)
    tac = tacit.compile(NET, "T0", list(NET))

    def work(_):
        start.wait(60)
        return [ask(tac, ROWS) for _ in range(TURNS)]

    with ThreadPoolExecutor(THREADS) as pool:
        answers = [answer for turns in pool.map(work, range(THREADS)) for answer in turns]
    assert len(answers) == THREADS * TURNS
    for answer in answers:
        for name, value in expected.items():
            close(answer[name], value, 1e-10)


@pytest.mark.parametrize("engine", ["native", "tape"])
def test_sums_of_derivatives_do_not_depend_on_the_order_of_threads(monkeypatch, engine):
    monkeypatch.setattr("tacit.engines.tape.tape_based.THREADED_WORK", 0)
    tac = tacit.compile(NET, "T0", list(NET), engine=engine, threads=8)
    rng = np.random.default_rng(0)
    rows = {n: rng.random((2000, 3)) for n in NET}
    first = gradients(tac, rows)
    with ThreadPoolExecutor(3) as pool:  # others keep the processor busy, so that threads start in any order
        for _ in pool.map(lambda _: gradients(tac, rows), range(20)):
            again = gradients(tac, rows)
            assert all((again[name] == table).all() for name, table in first.items())
