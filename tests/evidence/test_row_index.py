"""Errors name rows by the index of their pandas frame, too."""

import pickle

import pandas as pd
import pytest

import tacit

PATIENTS = ["p-3", "p-5", "p-7", "p-17"]


def clinic():
    net = tacit.Network()
    net.add("ill", states=["yes", "no"], cpt=[0.1, 0.9])
    net.add("test", ["ill"], ["low", "mid", "high"], cpt=[[0.1, 0.2, 0.7], [0.8, 0.2, 0.0]])
    return net


def by_patient(**columns):
    return pd.DataFrame(columns, index=PATIENTS)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (by_patient(test=["low", "mid", "low", "hgh"]), r"evidence on 'test', row 3 \(index 'p-17'\): 'hgh'"),
        (by_patient(test=["low", "mdi", "low", "hgh"]), r"'hgh' \(1, first in row 3 \(index 'p-17'\), did you mean"),
        ({"test": by_patient(test=["low", "mid", "low", "hgh"])["test"]}, r"row 3 \(index 'p-17'\): 'hgh'"),
        ({"test": pd.Categorical(["low", "hgh"])}, "row 1: 'hgh'"),
        (pd.DataFrame({"test": ["low", "hgh"]}), "row 1: 'hgh'"),
        (pd.DataFrame({"test": ["low", "hgh"]}, index=[7, 8]), r"row 1 \(index 8\): 'hgh'"),
        (
            pd.DataFrame({"test": ["hgh"]}, index=pd.MultiIndex.from_tuples([("ward", 2)])),
            r"row 0 \(index \('ward', 2\)\)",
        ),
        (pd.DataFrame({"test": ["hgh"]}, index=pd.to_datetime(["2024-05-01"])), r"row 0 \(index 2024-05-01 00:00:00"),
        (pd.Series({"test": "hgh"}), "row 0: 'hgh'"),
        (
            by_patient(**{"test.low": [1, 1, 1, 1.0], "test.mid": [1, 1, 1, 1.0], "test.high": [1, 1, -1, 1]}),
            r"row 2 \(index 'p-7'\): \[1.0, 1.0, -1.0\]",  # likelihoods, which the engine checks
        ),
    ],
)
def test_errors_name_rows_by_their_index_too(frame, message):
    tac = tacit.compile(clinic(), "ill", ["test"])
    for ask in (tac.posterior, tac.read, tac.marginals):
        with pytest.raises(tacit.EvidenceError, match=message):
            ask(frame)


def test_a_row_without_a_state_is_named_by_its_index():
    frame = by_patient(test=["low", "mid", None, "low"])
    for options in ({"hard": ["test"]}, {"do": ["test"]}):
        tac = tacit.compile(clinic(), "ill", **options)
        with pytest.raises(tacit.EvidenceError, match=r"row 2 \(index 'p-7'\): a state is needed"):
            tac.posterior(frame)


def test_learning_names_rows_by_their_index_too():
    net, frame = clinic(), by_patient(ill=["yes", "no", "no", "no"], test=["low", "mid", "low", "high"])
    with pytest.raises(tacit.EvidenceError, match=r"row 3 \(index 'p-17'\): the evidence has probability 0"):
        tacit.estimate(net.learnable(), frame)
    with pytest.raises(tacit.EvidenceError, match=r"row 3 \(index 'p-17'\): 'sick' is not a state"):
        tacit.estimate(net.learnable(), frame.assign(ill=["yes", "no", "no", "sick"]))
    tac = tacit.compile(net.learnable(), "ill", ["test"])
    for labels, message in (
        (["yes", "no", "no", "sick"], "'sick' is not a state"),
        ([0.1, 0.5, 1.0, 1.5], "1.5 is not a"),
    ):
        with pytest.raises(tacit.EvidenceError, match=rf"labels of 'ill', row 3 \(index 'p-17'\): {message}"):
            tacit.fit(tac, frame[["test"]], pd.Series(labels, index=PATIENTS))


def test_batches_with_one_index_after_the_other_name_a_row_once():
    frame = pd.DataFrame({"ill": ["yes", "no", "no"], "test": ["low", "mid", "hgh"]})
    with pytest.raises(tacit.EvidenceError, match="row 2: 'hgh'"):
        tacit.estimate(clinic().learnable(), [frame[:2], frame[2:]])


def test_what_was_read_does_not_pickle_the_index():
    known = tacit.compile(clinic(), "ill", ["test"]).read(by_patient(test=["low"] * 4))
    assert b"p-17" not in pickle.dumps(known)
    assert pickle.loads(pickle.dumps(known)).columns["test"].codes.tolist() == [0] * 4
