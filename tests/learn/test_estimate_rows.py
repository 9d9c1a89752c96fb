"""Where rows to estimate from may come from: files, batches, columns of weights; and estimates that are cut off."""

import subprocess
import sys
import time

import numpy as np
import pytest
from bench.networks import network

import tacit
from tacit.evidence import wrong_rows
from tacit.evidence.tables import csv_parquet as files
from tacit.learn import session
from tacit.learn.estimating import counting, em, estimation, sources
from tests.helpers import close

pa = pytest.importorskip("pyarrow")
from pyarrow import csv, parquet  # noqa: E402

STEPS = {"steps": 3, "tolerance": 0, "progress": False}


@pytest.fixture
def asia():
    return network("asia")


@pytest.fixture
def rows(asia):
    """500 rows, some values of some of them missing."""
    rng = np.random.default_rng(0)
    drawn = asia.sample(500, seed=1)
    return {n: np.where((rng.random(500) < 0.3) & (np.arange(500) % 2 == 0), None, c.astype(object))
            for n, c in drawn.items()}  # fmt: skip


def table(rows):
    return pa.table({name: pa.array(column.tolist(), pa.string()) for name, column in rows.items()})


def same(one, other, tolerance=0.0):
    for name in one.network:
        close(one.network.table(name), other.network.table(name), tolerance or 1e-300)
    assert one.history == pytest.approx(other.history, rel=tolerance or 1e-300)
    assert one.rows == other.rows


def batches(rows, size):
    count = len(next(iter(rows.values())))
    return [{name: column[i : i + size] for name, column in rows.items()} for i in range(0, count, size)]


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
def test_files_are_read_batch_by_batch(asia, rows, name, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "BATCH_ROWS", 64)
    monkeypatch.setattr(files, "BLOCK_BYTES", 2048)
    monkeypatch.setattr(sources, "MAX_BYTES_IN_MEMORY", 1000)  # a file of its own
    path = tmp_path / name
    (csv.write_csv if name.endswith("csv") else parquet.write_table)(table(rows), path)
    start = asia.learnable()
    same(tacit.estimate(start, path, **STEPS), tacit.estimate(start, rows, **STEPS), 1e-12)
    same(tacit.estimate(start, str(path), **STEPS), tacit.estimate(start, path, **STEPS))


def test_batches_come_from_anything_that_can_be_gone_through(asia, rows):
    start = asia.learnable()
    whole = tacit.estimate(start, rows, **STEPS)
    some = batches(rows, 130)
    frames = [table(batch) for batch in some]
    same(tacit.estimate(start, some, **STEPS), whole, 1e-12)
    same(tacit.estimate(start, iter(some), **STEPS), whole, 1e-12)
    same(tacit.estimate(start, (batch for batch in frames), **STEPS), whole, 1e-12)
    same(tacit.estimate(start, [frames[0], frames[0].slice(0, 0), *frames[1:]], **STEPS), whole, 1e-12)
    same(tacit.estimate(start, pa.concat_tables(frames).to_reader(100), **STEPS), whole, 1e-12)


def test_batches_may_have_different_columns(asia, rows):
    start = asia.learnable()
    one, other = batches(rows, 250)
    without = {name: column for name, column in other.items() if name != "smoke"}
    found = tacit.estimate(start, [one, without], **STEPS)
    same(found, tacit.estimate(start, [one, other | {"smoke": [None] * 250}], **STEPS), 1e-12)


def test_small_batches_are_put_together(asia, rows, monkeypatch):
    made = []
    compiled = counting.compiled
    monkeypatch.setattr(counting, "compiled", lambda *arguments: made.append(1) or compiled(*arguments))
    start = asia.learnable()
    records = [{name: column[i] for name, column in rows.items()} for i in range(100)]
    found = tacit.estimate(start, records, **STEPS)
    assert len(made) == 1
    same(found, tacit.estimate(start, {name: column[:100] for name, column in rows.items()}, **STEPS), 1e-12)
    monkeypatch.setattr(sources, "MIN_BATCH_ROWS", 30)
    same(tacit.estimate(start, records, **STEPS), found, 1e-12)


def test_arrays_and_batches_without_rows():
    net = tacit.Network()
    net.add("A")
    net.add("B", ["A"])
    rows = np.random.default_rng(0).random((20, 2))
    whole = tacit.estimate(net, rows, **STEPS)
    same(tacit.estimate(net, [rows[:7], rows[7:]], **STEPS), whole, 1e-12)
    columns = {"A": rows[:, 0], "B": rows[:, 1]}
    same(tacit.estimate(net, [{"A": [], "B": []}, columns], **STEPS), whole, 1e-12)
    mixed = [{"A": ["true"], "B": [None]}, {"A": 0.25, "B": [0.5, 0.75]}]
    alike = {"A": np.array([[1, 0], [0.25, 0.75], [0.25, 0.75]]), "B": [np.nan, 0.5, 0.75]}
    same(tacit.estimate(net, mixed, **STEPS), tacit.estimate(net, alike, **STEPS), 1e-12)


def test_an_array_is_no_sequence_of_batches():
    net = tacit.Network()
    net.add("A")
    net.add("B", ["A"])
    found = tacit.estimate(net, [[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]], progress=False)
    close(found.network.table("A"), [2 / 3, 1 / 3])


def test_a_tensor_is_an_array_and_several_are_batches():
    torch = pytest.importorskip("torch")
    net = tacit.Network()
    net.add("A")
    net.add("B", ["A"])
    rows = np.random.default_rng(0).random((20, 2))
    whole = tacit.estimate(net, rows, **STEPS)
    same(tacit.estimate(net, torch.tensor(rows), **STEPS), whole)
    same(tacit.estimate(net, [torch.tensor(rows[:7]), torch.tensor(rows[7:])], **STEPS), whole, 1e-12)
    same(tacit.estimate(net, torch.tensor(rows.reshape(4, 5, 2)), **STEPS), whole, 1e-12)


def test_weights_by_number_and_by_name(asia, rows, tmp_path):
    start, weights = asia.learnable(), np.arange(500) % 3
    expected = tacit.estimate(start, rows, weights=weights, **STEPS)
    assert expected.rows == weights.sum()
    weighed = rows | {"n": weights}
    same(tacit.estimate(start, weighed, weights="n", **STEPS), expected)
    same(tacit.estimate(start, iter(batches(weighed, 99)), weights="n", **STEPS), expected, 1e-12)
    same(tacit.estimate(start, batches(rows, 99), weights=weights, **STEPS), expected, 1e-12)
    frame = table(rows).append_column("n", pa.array(weights))
    same(tacit.estimate(start, frame, weights="n", **STEPS), expected)
    csv.write_csv(frame, tmp_path / "rows.csv")
    same(tacit.estimate(start, tmp_path / "rows.csv", weights="n", **STEPS), expected)


def test_soft_evidence_in_a_file(asia, tmp_path):
    rng = np.random.default_rng(2)
    soft = rng.random(40)
    columns = {"xray.yes": soft, "xray.no": 1 - soft, "smoke": rng.choice(["yes", "no"], 40)}
    parquet.write_table(pa.table(columns), tmp_path / "rows.parquet")
    expected = tacit.estimate(
        asia.learnable(), {"xray": np.stack([soft, 1 - soft], axis=1), "smoke": columns["smoke"]}, **STEPS
    )
    same(tacit.estimate(asia.learnable(), tmp_path / "rows.parquet", **STEPS), expected, 1e-12)


def test_bad_rows_are_named(asia, rows, tmp_path):
    start = asia.learnable()
    bad = {name: column.copy() for name, column in rows.items()}
    bad["smoke"][300] = "maybe"
    with pytest.raises(tacit.EvidenceError, match="'smoke', row 300: 'maybe' is not a state"):
        tacit.estimate(start, batches(bad, 128), progress=False)
    csv.write_csv(table(bad), tmp_path / "rows.csv")
    with pytest.raises(tacit.EvidenceError, match=r"rows\.csv: evidence on 'smoke', row 301: 'maybe'"):
        tacit.estimate(start, tmp_path / "rows.csv", progress=False)
    either = {"tub": ["no"] * 9, "lung": ["no"] * 9, "either": ["no"] * 8 + ["yes"]}  # "either" is a known function
    with pytest.raises(tacit.EvidenceError, match="row 8: the evidence has probability 0"):
        tacit.estimate(start, [{n: c[:4] for n, c in either.items()}, {n: c[4:] for n, c in either.items()}])
    for rest in ({}, {"asia": ["no"] * 9, "smoke": ["no"] * 9}):  # with holes, and complete
        csv.write_csv(pa.table(either | rest), tmp_path / "rows.csv")
        with pytest.raises(tacit.EvidenceError, match=r"rows\.csv: row 9: the evidence has probability 0"):
            tacit.estimate(start, tmp_path / "rows.csv", progress=False)


def test_wrong_values_are_counted_in_all_batches(asia, rows, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "BATCH_ROWS", 64)
    monkeypatch.setattr(files, "BLOCK_BYTES", 2048)
    bad = {name: column.copy() for name, column in rows.items()}
    bad["smoke"][[130, 135, 400, 499]] = ["maybe", "yess", "maybe", "maybe"]
    bad["xray"][499] = "?"
    counted = "4 rows name no state: 'maybe' (3, first in row {}), 'yess' (1, first in row {}, did you mean 'yes'?)"
    csv.write_csv(table(bad), tmp_path / "rows.csv")
    for some, first in ((tmp_path / "rows.csv", 1), (batches(bad, 64), 0), (iter(batches(bad, 64)), 0)):
        with pytest.raises(tacit.EvidenceError) as caught:
            tacit.estimate(asia.learnable(), some, progress=False)
        message = str(caught.value)
        assert f"'smoke', row {130 + first}: 'maybe' is not a state" in message
        assert counted.format(130 + first, 135 + first) in message
        assert f"\nalso evidence on 'xray', row {499 + first}: '?' is not a state" in message


def test_counting_ends_where_more_wrong_values_tell_nothing(asia, rows, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "BATCH_ROWS", 64)
    monkeypatch.setattr(files, "BLOCK_BYTES", 2048)
    monkeypatch.setattr(wrong_rows, "MAX_DISTINCT", 100)
    bad = rows | {"smoke": np.array([f"id {i}" for i in range(500)], dtype=object)}
    with pytest.raises(tacit.EvidenceError, match=r"^the first 128 rows: .*; 128 rows name no state"):
        tacit.estimate(asia.learnable(), batches(bad, 64), progress=False)
    csv.write_csv(table(bad), tmp_path / "rows.csv")
    with pytest.raises(tacit.EvidenceError, match=r"rows\.csv, up to row 1\d\d: .*; 1\d\d rows name no state"):
        tacit.estimate(asia.learnable(), tmp_path / "rows.csv", progress=False)


def test_what_rows_cannot_be(asia, rows, tmp_path):
    start = asia.learnable()
    csv.write_csv(table(rows).append_column("id", pa.array(range(500))), tmp_path / "rows.csv")
    with pytest.warns(UserWarning, match="columns that are not used: id"):
        tacit.estimate(start, tmp_path / "rows.csv", **STEPS)
    csv.write_csv(table(rows).rename_columns([n.upper() for n in rows]), tmp_path / "upper.csv")
    with pytest.raises(tacit.EvidenceError, match="did you mean"):
        tacit.estimate(start, tmp_path / "upper.csv")
    with pytest.raises(FileNotFoundError):
        tacit.estimate(start, tmp_path / "absent.csv")
    with pytest.raises(tacit.TacitError, match=r"a table is a \.csv, .* or \.parquet file"):
        tacit.estimate(start, "rows.xlsx")
    with pytest.raises(tacit.EvidenceError, match="there are no rows"):
        tacit.estimate(start, iter([]))
    with pytest.raises(tacit.EvidenceError, match="no column 'count' of weights"):
        tacit.estimate(start, rows, weights="count")
    with pytest.raises(tacit.TacitError, match="'smoke', which is a variable"):
        tacit.estimate(start, rows, weights="smoke")
    with pytest.raises(tacit.TacitError, match="the name of one of its columns"):
        tacit.estimate(start, tmp_path / "rows.csv", weights=[1.0] * 500)
    for count in (499, 501):
        with pytest.raises(tacit.EvidenceError, match=f"{count} weights"):
            tacit.estimate(start, batches(rows, 100), weights=[1.0] * count)
    for nothing in (None, {}):
        with pytest.raises(tacit.EvidenceError, match="there are no rows"):
            tacit.estimate(start, nothing)
    with pytest.raises(tacit.EvidenceError, match="the rows have no columns"):
        tacit.estimate(start, [{}])  # one row, of nothing
    with pytest.raises(tacit.EvidenceError, match="the rows have no columns"):
        tacit.estimate(start, pa.table({"smoke": ["yes"]}).drop_columns("smoke"))
    silent = tacit.estimate(start, {"smoke": [None, None], "lung": [None, None]}, **STEPS)
    assert silent.log_likelihood == 0
    close(silent.network.table("lung"), asia.table("lung"))
    with pytest.raises(tacit.EvidenceError, match="more than a float holds"):
        tacit.estimate(start, rows, weights=[1e308] * 500)
    csv.write_csv(pa.table({"smoke": ["yes", "no"], "n": ["1", "many"]}), tmp_path / "weights.csv")
    with pytest.raises(tacit.EvidenceError, match=r"weights\.csv: column 'n', row 2: 'many' is not a number"):
        tacit.estimate(start, tmp_path / "weights.csv", weights="n")
    with pytest.raises(tacit.EvidenceError, match="all weights are 0"):
        tacit.estimate(start, rows, weights=[0.0] * 500)


# cut off --------------------------------------------------------------------------------------------------


class CutError(Exception):
    """Stands for a power failure."""


def hidden():
    net = tacit.Network()
    net.add("class", states=3)
    for i in range(6):
        net.add(f"x{i}", ["class"], states=3)
    return net


def observed(count):
    rng = np.random.default_rng(0)
    kind = rng.integers(3, size=count)
    return {f"x{i}": np.where(rng.random(count) < 0.7, (kind + i) % 3, rng.integers(3, size=count)) for i in range(6)}


HOW = {"restarts": 3, "steps": 12, "tolerance": 0, "progress": False}


@pytest.mark.parametrize("stop", [1, 2, 7, 11, 12])
def test_an_estimate_that_was_cut_off_goes_on_to_the_same_result(stop, tmp_path, monkeypatch):
    net, rows, path = hidden(), observed(200), tmp_path / "em.npz"
    expected = tacit.estimate(net, rows, **HOW)
    monkeypatch.setattr(session, "CHECKPOINT_EVERY", 0.0)
    written = []

    def write(*arguments):
        em.write_runs(*arguments)
        written.append(1)
        if len(written) == stop:
            raise CutError

    monkeypatch.setattr(estimation, "write_runs", write)
    with pytest.raises(CutError):
        tacit.estimate(net, rows, checkpoint=path, **HOW)
    same(tacit.estimate(net, rows, checkpoint=path, **HOW), expected)
    again = len(written)
    same(tacit.estimate(net, rows, checkpoint=path, **HOW), expected)
    assert len(written) == again  # what is finished is not done again


def test_a_checkpoint_belongs_to_its_rows_and_settings(tmp_path):
    net, rows, path = hidden(), observed(100), tmp_path / "em.npz"
    tacit.estimate(net, rows, checkpoint=path, steps=2, progress=False)
    others = [
        {"rows": observed(101)},
        {"seed": 1},
        {"prior": 1.0},
        {"net": hidden().learnable()},
        {"weights": [2.0] * 100},
        {"tolerance": 0.1},
        {"restarts": 2},
    ]
    for other in others:
        with pytest.raises(tacit.FormatError, match="another network, other data or other settings"):
            tacit.estimate(**({"net": net, "rows": rows, "steps": 2, "checkpoint": path, "progress": False} | other))
    path.write_bytes(b"no checkpoint")
    with pytest.raises(tacit.FormatError, match="is not a checkpoint"):
        tacit.estimate(net, rows, checkpoint=path, steps=2)


def test_an_estimate_that_took_too_few_steps_goes_on_with_more(tmp_path):
    net, rows, path = hidden().learnable(), observed(100), tmp_path / "em.npz"
    net = tacit.estimate(hidden(), rows, steps=1, tolerance=0, progress=False).network.learnable()
    how = {"tolerance": 0, "progress": False}
    short = tacit.estimate(net, rows, steps=3, checkpoint=path, **how)
    assert len(short.history) == 3
    same(tacit.estimate(net, rows, steps=7, checkpoint=path, **how), tacit.estimate(net, rows, steps=7, **how))


KILLED = """
import sys
import numpy as np
import tacit
from tacit.learn import session
from tests.learn.test_estimate_rows import HOW, hidden, observed
session.CHECKPOINT_EVERY = 0.0
print("ready", flush=True)
tacit.estimate(hidden(), observed(3000), checkpoint=sys.argv[1], **HOW | {"steps": 100_000})
"""


@pytest.mark.slow
def test_a_process_that_was_killed_leaves_a_checkpoint_that_can_be_read(tmp_path, monkeypatch):
    path = tmp_path / "em.npz"
    with subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        until = time.monotonic() + 60
        while not path.exists() and time.monotonic() < until:
            time.sleep(0.01)
        process.kill()
    steps = []

    def stop(path, key, runs):
        steps.append(max(len(run.history) for run in runs))
        raise KeyboardInterrupt

    monkeypatch.setattr(estimation, "write_runs", stop)
    monkeypatch.setattr(session, "CHECKPOINT_EVERY", 0.0)
    net, rows = hidden(), observed(3000)
    with pytest.warns(UserWarning, match="interrupted"):
        found = tacit.estimate(net, rows, checkpoint=path, **HOW | {"steps": 100_000})
    assert (found.interrupted, found.converged) == (True, False)
    assert steps[0] > 1  # it went on, and did not start anew
    expected = tacit.estimate(net, rows, **HOW | {"steps": steps[0]})
    close(found.network.table("x0"), expected.network.table("x0"), 1e-300)


# variables without a column ------------------------------------------------------------------------------


HIDDEN = {"wet": ["yes", "no", "no"]}
RECORDS = [{"wet": "yes"}, {"wet": "no"}, {"wet": "no"}]


def lawn():
    net = tacit.Network()
    net.add("rain", states=["yes", "no"])
    net.add("wet", ["rain"], states=["yes", "no"])
    return net


@pytest.mark.parametrize("make", [lambda: pa.table(HIDDEN), lambda: RECORDS, lambda: [pa.table(HIDDEN)] * 2])
def test_a_frame_without_a_column_hides_a_variable_aloud(make):
    with pytest.warns(tacit.MissingColumnWarning, match="columns that are missing: rain; there is no evid") as told:
        tacit.estimate(lawn(), make(), **STEPS)
    assert len(told) == 1


@pytest.mark.parametrize("rows", [HIDDEN, [row | {"rain": None} for row in RECORDS]])
def test_what_is_hidden_on_purpose_has_no_warning(rows):
    tacit.estimate(lawn(), rows, **STEPS)


def test_batches_may_each_lack_a_column():
    some = pa.table({"rain": ["yes", "no", "no"]})
    tacit.estimate(lawn(), [some, pa.table(HIDDEN)], **STEPS)
