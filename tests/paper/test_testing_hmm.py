"""Testing HMMs: what generates the records, what is learned from them, and how it is judged."""

import doctest
from functools import partial
from itertools import product

import numpy as np
import pytest
from paper import testing_hmm as study
from paper.testing_hmm import DRAWN, KINDS, LENGTH, OBSERVED, SEQUENCES, WRITTEN, Cell, Result
from tests.helpers import close

from tacit import semantics


def test_examples_in_docstrings():
    found = doctest.testmod(study)
    assert found.attempted
    assert not found.failed


def test_the_joint_is_that_of_the_third_order_hmm():
    """Summed over all hidden chains, as the paper defines them; for some sequences."""
    cell, bits = Cell(WRITTEN, 0b01101001), [1, 0, 0, 1, 0, 1, 1, 0]
    expected = np.zeros((4, 2))
    for hidden in product((0, 1), repeat=LENGTH + 1):
        p = 0.5**3
        for t in range(3, LENGTH + 1):
            likely = bits[4 * hidden[t - 3] + 2 * hidden[t - 2] + hidden[t - 1]]
            p *= 0.95 if hidden[t] == likely else 0.05
        seen = SEQUENCES[100:104] == hidden[:LENGTH]
        expected[:, hidden[LENGTH]] += p * np.where(seen, 0.99, 0.01).prod(axis=1)
    joint = study.joint_of(cell)
    close(joint[100:104], expected)
    assert joint.sum() == pytest.approx(1)


@pytest.mark.parametrize(("transition", "least"), [(WRITTEN, 0.93), (DRAWN, 0.97)])
def test_no_accuracy_lies_above_the_transition_probability(transition, least):
    """The next state is drawn after all that is known: this is why 95% cannot be passed with 0.95."""
    for model in (0, 105, 200):
        best = study.joint_of(Cell(transition, model)).max(axis=1).sum()
        assert least < best <= transition + 1e-12


def test_a_hidden_state_is_tested_on_the_emissions_before_it():
    net = study.learner("testing HMM")
    assert all(net.seen_by(f"H{t}", OBSERVED) == OBSERVED[:t] for t in range(1, LENGTH + 1))
    assert net.testing_nodes == tuple(f"H{t}" for t in range(1, LENGTH + 1))
    assert set(net.ties) == set(study.learner("HMM").ties) == {"transition", "emission"}


def test_records_are_repeatable_and_follow_the_joint():
    cell = Cell(WRITTEN, 33)
    joint = study.joint_of(cell)
    counts = study.records(joint, cell)
    np.testing.assert_array_equal(counts, study.records(joint, cell))
    assert counts.sum(axis=(1, 2)).tolist() == [3277, 3277, 3277, 3277, 3276]
    np.testing.assert_allclose(counts.sum(axis=0) / study.RECORDS, joint, atol=0.01)
    assert (counts != study.records(joint, Cell(DRAWN, 33))).any()


def test_scores():
    true, p = np.array([[0.9, 0.1], [0.3, 0.7]]), np.array([[0.8, 0.2], [0.6, 0.4]])
    folds = np.array([[[3, 1], [2, 4]]])
    found = study.score([p], true, folds)
    assert found["accuracy"] == [pytest.approx((3 + 2) / 10)]
    assert found["agreement"] == [pytest.approx(4 / 10)]
    assert found["log_loss"] == [
        pytest.approx(-(3 * np.log(0.8) + np.log(0.2) + 2 * np.log(0.6) + 4 * np.log(0.4)) / 10)
    ]


def test_the_testing_hmm_learns_what_the_hmm_cannot_and_selects_by_all_that_went_before():
    cell = Cell(WRITTEN, 7)
    joint = study.joint_of(cell)
    counts = study.records(joint, cell).sum(axis=0)
    nets = {kind: study.fit(kind, counts, restarts=4, steps=40) for kind in KINDS}
    accuracy = {
        kind: study.score([study.answers(kind, net)], joint, counts[None])["accuracy"][0] for kind, net in nets.items()
    }
    assert accuracy["HMM"] < 0.75 < accuracy["testing HMM"]
    parameters = study.selected(nets["testing HMM"], before=0)
    assert [len(values) for values in parameters[:2]] == [2, 4]
    assert all(len(values) <= 2**t for t, values in enumerate(parameters, 1))
    row = dict(zip(OBSERVED, SEQUENCES[100].tolist(), strict=True))
    chosen = semantics.select(nets["testing HMM"], row).network.table("H3")[0, 1]
    assert np.abs(parameters[2] - chosen).min() < 1e-4


def made_up(gain, folds=study.FOLDS):
    scores = {kind: {m: [0.9] * folds for m in study.MEASURES} for kind in ("truth", "HMM")}
    return Result(scores | {"testing HMM": {m: [0.9 + gain] * folds for m in study.MEASURES}}, 0.0)


def test_the_report_counts_who_is_better(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    gains = [0.06, 0.01, 0.0, -0.1]
    found = [made_up(gain) for gain in gains]
    assert study.better(found, "accuracy") == ("1", "2")
    assert study.better(found, "log_loss") == ("2", "1")
    monkeypatch.setattr(study.cells, "run", lambda cells, *_: dict(zip(cells, found, strict=True)))
    monkeypatch.setattr(study, "fit", partial(study.fit, restarts=1, steps=2))
    study.study(tmp_path, {"as written": WRITTEN}, range(4), 1)
    assert ["accuracy", "above", "95%", "0", "0", "1"] in [
        line.split() for line in capsys.readouterr().out.splitlines()
    ]
    assert (tmp_path / "testing-hmm.png").read_bytes().startswith(b"\x89PNG")
    assert study.example(dict(zip("abcd", found, strict=True))) == "a"
