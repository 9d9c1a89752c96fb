"""The benchmark of generated code: its sides do the same work, and it tells where answers differ."""

import numpy as np
import pytest

pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

from bench import native, native_kernel, worker
from bench.networks import scaled, widest_root
from bench.sides import ROOT, Comparison, Measured, Side, difference
from bench.tables import MISSED

ROWS = 100


def answer(case, **options):
    return worker.CASES[case](**options).answer()


@pytest.mark.parametrize(
    "case", [{"case": "soft", "name": "asia"}, {"case": "gradients", "name": "asia"}, {"case": "step"}]
)
def test_both_dtypes_answer_the_same(case):
    wide, narrow = (answer(**case, rows=ROWS, dtype=dtype) for dtype in ("float64", "float32"))
    assert difference(narrow, wide) <= 1e-5
    assert wide.any()


@pytest.mark.parametrize("container", worker.CONTAINERS)
@pytest.mark.parametrize("role", ["evidence", "hard"])
def test_frames_hold_the_rows_that_were_drawn(container, role):
    net = scaled("asia")
    labels = {name: np.array(net.states(name))[codes] for name, codes in worker.drawn(net, ROWS).items()}
    expected = net.posterior(widest_root(net), labels)
    found = answer("hard", name="asia", rows=ROWS, container=container, role=role, dtype="float64")
    assert difference(found, expected) <= 1e-12


def test_the_kernel_alone_gives_what_a_run_gives():
    sample = native_kernel.Sample("asia", ROWS, threads=1)
    tac = sample.tac("tape")
    columns, engine = tac.read(sample.evidence()).columns, tac.engine()
    alone, whole = (run(engine, columns, ROWS)() for run in (native_kernel.kernel, native_kernel.whole))
    assert native_kernel.largest(alone, whole) == 0
    assert sample.bytes == 8 * 2 * 3


def test_a_side_answers_and_takes_turns(tmp_path):
    side = Side(ROOT)
    side.prepare("soft", name="asia", rows=ROWS)
    assert side.finish() > 0
    assert side.ask(repeats=2) > 0
    side.ask(answer=str(tmp_path / "answer.npy"))
    side.close()
    expected = answer("soft", name="asia", rows=ROWS, dtype="float64")
    assert difference(np.load(tmp_path / "answer.npy"), expected) < 1e-15  # one by code, one by the interpreter


def test_ratios_are_those_of_the_turns():
    found = Comparison([4.0, 9.0, 2.0], [2.0, 3.0, 2.0])
    assert found.ratio == 2
    assert str(found) == "2.00x (1.00 to 3.00)"


def test_answers_that_are_no_numbers_differ_from_numbers():
    assert difference(np.array([np.nan, 1.0]), np.array([np.nan, 1.5])) == 0.5
    assert difference(np.array([np.nan]), np.array([1.0])) == np.inf
    assert difference(np.array([1.0]), np.array([[1.0]])) == np.inf


def test_rows_that_miss_a_bar_are_marked():
    right = Measured([4.0, 4.0], [1.0, 1.0], [0.5, 0.5], 0.0, 0.0)
    assert MISSED not in native.cells(right, 1, bar=2.5)
    wrong = Measured([4.0, 4.0], [1.0, 1.0], [0.5, 0.5], 1e-9, 0.0)
    assert MISSED in native.cells(wrong, 1, bar=2.5)


def test_unknown_parts_are_refused():
    with pytest.raises(SystemExit, match="unknown part 'speed'"):
        native.main(["speed"])
