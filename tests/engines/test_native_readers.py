"""Evidence as generated code reads it: arrays of any kind, type and layout, and the errors that all engines give."""

import re

import numpy as np
import pytest

import tacit
from tacit import EvidenceError, Network, examples
from tacit.engines.native.calls import readable
from tacit.engines.native.readers import ROWS_PER_TILE, TILE_STRIDE, VECTOR_BITS
from tests.helpers import close, impossible

CARDS = {"two": 2, "five": 5, "nine": 9}
ROWS = [1, 2, 3, 7, 8, 9, 63, 64, 65, 127, 128, 130]
TOLERANCE = {"float64": 1e-13, "float32": 3e-6}
NUMPY = "numpy", "float64"


def star(cards, states=3, seed=0):
    """A query and what is observed of it."""
    rng = np.random.default_rng(seed)
    net = Network()
    net.add("Q", states=[f"q{i}" for i in range(states)], cpt=rng.dirichlet(np.ones(states)))
    for name, card in cards.items():
        net.add(name, ["Q"], [f"{name}{i}" for i in range(card)], rng.dirichlet(np.ones(card), states))
    return net


NET = star(CARDS)


@pytest.fixture(scope="module", params=["float64", "float32"])
def tac(request):
    return tacit.compile(NET, "Q", list(CARDS), engine="native", dtype=request.param)


@pytest.fixture(scope="module")
def reference():
    return tacit.compile(NET, "Q", list(CARDS), engine="numpy")


def table(name, rows, dtype="float64", seed=0):
    """Likelihoods in any proportion, some of them 0, and some rows without any."""
    rng = np.random.default_rng([seed, CARDS[name], rows])
    found = rng.random((rows, CARDS[name])) * rng.choice([0.01, 1, 300], (rows, 1)) + 1e-4
    found[rng.random(found.shape) < 0.1] = 0.0
    found[:, 0] += 0.01
    found[rng.random(rows) < 0.1] = np.nan
    return found.astype(dtype)


def wider(array, axis):
    """Every second place of a larger array."""
    large = np.full([2 * n if i == axis else n for i, n in enumerate(array.shape)], -7.0, dtype=array.dtype)
    places = tuple(slice(None, None, 2) if i == axis else slice(None) for i in range(array.ndim))
    large[places] = array
    return large[places]


def unaligned(array):
    memory = np.zeros(array.nbytes + 1, dtype=np.uint8)[1:]
    found = memory.view(array.dtype).reshape(array.shape)
    found[...] = array
    assert not found.flags.aligned
    return found


def read_only(array):
    found = array.copy()
    found.flags.writeable = False
    return found


LAYOUTS = {
    "plain": lambda a: a,
    "Fortran": np.asfortranarray,
    "rows apart": lambda a: wider(a, 0),
    "states apart": lambda a: wider(a, -1),
    "reversed": lambda a: a[::-1].copy()[::-1],
    "states reversed": lambda a: a[..., ::-1].copy()[..., ::-1],
    "read-only": read_only,
    "unaligned": unaligned,
    "other bytes": lambda a: a.astype(a.dtype.newbyteorder()),
    "list": lambda a: a.tolist(),
    "longer": lambda a: a.astype(np.longdouble),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("given", ["float64", "float32"])
def test_likelihoods_of_any_layout(tac, reference, layout, given):
    rows = 71
    columns = {name: table(name, rows, given) for name in CARDS}
    shaped = {name: LAYOUTS[layout](column) for name, column in columns.items()}
    close(tac.posterior(shaped), reference.posterior(columns), TOLERANCE[tac.dtype])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("given", ["float64", "float32"])
def test_the_first_of_two_states(layout, given):
    net = star({"two": 2})
    rng = np.random.default_rng(0)
    p = rng.random(67).astype(given)
    p[[0, 1, 5, 66]] = 0.0, 1.0, np.nan, 0.5
    expected = tacit.compile(net, "Q", ["two"], engine="numpy").posterior({"two": p})
    for dtype, tolerance in TOLERANCE.items():
        found = tacit.compile(net, "Q", ["two"], engine="native", dtype=dtype)
        close(found.posterior({"two": LAYOUTS[layout](p)}), expected, tolerance)


@pytest.mark.parametrize("rows", ROWS)
def test_any_number_of_rows(tac, reference, rows):
    columns = {name: table(name, rows, seed=1) for name in CARDS}
    columns["nine"] = [f"nine{i}" for i in np.random.default_rng(rows).integers(0, 9, rows)]
    close(tac.posterior(columns), reference.posterior(columns), TOLERANCE[tac.dtype])
    close(tac.joint(columns), reference.joint(columns), TOLERANCE[tac.dtype])


@pytest.mark.parametrize("name", CARDS)
def test_a_row_that_speaks_for_all(tac, reference, name):
    columns = {other: table(other, 70) for other in CARDS if other != name}
    columns[name] = f"{name}1"
    close(tac.posterior(columns), reference.posterior(columns), TOLERANCE[tac.dtype])
    known = tac.read({n: [column] if isinstance(column, str) else column[:1] for n, column in columns.items()})
    close(tac.posterior(known), reference.posterior(known), TOLERANCE[tac.dtype])


# what needs a closer look ---------------------------------------------------------------------------------


@pytest.mark.parametrize("row", [0, 64, 149])
@pytest.mark.parametrize(
    "values",
    [
        [-1.0, 2.0],
        [0.0, 0.0],
        [np.inf, 1.0],
        [-np.inf, 1.0],
        [np.nan, 1.0],
        [1.0, np.nan],
        [-0.0, -1e-300],
        [1e308, -1e308],
        [5e-324, 1e300],
    ],
)
def test_bad_likelihoods_give_the_same_errors(tac, values, row):
    for name in CARDS:
        columns = {other: table(other, 150) for other in CARDS}
        columns[name][row, :] = 0.0
        columns[name][row, :2] = values
        with pytest.raises(EvidenceError) as expected:
            tac.read(columns)
        assert re.search(rf"\b{row}\b", str(expected.value))
        with pytest.raises(EvidenceError, match=re.escape(str(expected.value))):
            tac.posterior(columns)
        with pytest.raises(EvidenceError, match=re.escape(str(expected.value))):
            tac.posterior({n: c[:, ::-1].copy()[:, ::-1] for n, c in columns.items()})


@pytest.mark.parametrize("value", [-0.5, 1.5, np.inf, -1e-300, 1.0000001])
def test_bad_likelihoods_of_the_first_state(value):
    tac = tacit.compile(star({"two": 2}), "Q", ["two"], engine="native")
    column = np.full(130, 0.25)
    column[[77, 129]] = value
    with pytest.raises(EvidenceError, match="row 77") as found:
        tac.posterior({"two": column})
    with pytest.raises(EvidenceError, match=re.escape(str(found.value))):
        tac.read({"two": column})


def test_the_first_bad_row_is_named(tac):
    columns = {name: table(name, 1000) for name in CARDS}
    columns["five"][[300, 200, 999]] = -1.0
    with pytest.raises(EvidenceError, match="row 200"):
        tac.posterior(columns)


ODD = [
    [1e-310, 3e-310],
    [5e-324, 0.0],
    [1e308, 1e308],
    [1.7e308, 1.7e308],
    [0.0, 1e-320],
    [1e-300, 1e-300],
    [1.0, 1e-200],
    [1.0, 1e-40],
    [1e300, 1e290],
]


@pytest.mark.parametrize("order", ["C", "F"])
def test_odd_rows_in_the_middle(tac, reference, order):
    columns = {name: table(name, 400) for name in CARDS}
    for i, values in enumerate(ODD):
        for j, name in enumerate(CARDS):
            columns[name][(37 * i + j) % 400] = 0.0
            columns[name][(37 * i + j) % 400, :2] = values
    given = {name: np.array(column, order=order) for name, column in columns.items()}
    close(tac.posterior(given), reference.posterior(columns), TOLERANCE[tac.dtype])
    logs = [t.log_evidence(given) for t in (tac, reference)]
    close(*logs, 30 * TOLERANCE[tac.dtype])


@impossible
@pytest.mark.parametrize("engine", ["native", "auto"])
def test_rows_that_underflow_among_a_million(engine):
    cards = {f"E{i}": 2 for i in range(6)}
    net = star(cards, states=2)
    rows = 1_000_000
    rng = np.random.default_rng(0)
    columns = {name: rng.random((rows, 2)) + 0.01 for name in cards}
    odd = np.array([3, 70, 500_000, 500_001, 999_999])
    for i, name in enumerate(cards):
        columns[name][odd] = [1.0, 1e-180] if i % 2 else [1e-180, 1.0]
    for name in cards:
        columns[name][123_456] = [1.0, 0.0]
    net = net.with_cpts(
        {"E0": [[1.0, 0.0], [0.5, 0.5]], "E1": [[0.0, 1.0], [0.5, 0.5]], "E2": [[0.0, 1.0], [0.0, 1.0]]}
    )
    ours, theirs = (tacit.compile(net, "Q", list(cards), engine=e) for e in (engine, "numpy"))
    found = ours.posterior(columns)
    some = np.sort(np.concatenate([odd, odd[:-1] + 1, [123_456], rng.integers(0, rows, 5000)]))
    few = {name: column[some] for name, column in columns.items()}
    close(found[some], theirs.posterior(few), 1e-13)
    assert np.flatnonzero(np.isnan(found[:, 0])).tolist() == [123_456]
    np.testing.assert_allclose(ours.log_evidence(few), theirs.log_evidence(few), rtol=1e-12)


# codes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("card", [2, 127, 128, 129, 130, 257, 300])
@pytest.mark.parametrize("kind", ["int64", "int32", "int16", "uint8", "uint16", "int8", "object"])
def test_states_by_number(card, kind):
    net = Network()
    rng = np.random.default_rng(card)
    net.add("Q", states=["x", "y"], cpt=[0.3, 0.7])
    net.add("E", ["Q"], list(range(card)), rng.dirichlet(np.ones(card), 2))
    most = card if kind == "object" else min(card, np.iinfo(kind).max + 1)
    codes = np.concatenate([[0, most - 1], rng.integers(0, most, 150)]).astype(kind)
    expected = net.cpt("E").table[:, codes.astype(int)].T * [0.3, 0.7]
    expected /= expected.sum(axis=1, keepdims=True)
    missing = np.where(rng.random(152) < 0.2, None, codes.astype(object))
    gone = np.array([c is None for c in missing])
    for roles in ({"evidence": ["E"]}, {"hard": ["E"]}):
        tac = tacit.compile(net, "Q", **roles, engine="native")
        close(tac.posterior({"E": codes}), expected)
        close(tac.posterior({"E": codes[::-1]}), expected[::-1])
        if "hard" in roles:
            with pytest.raises(EvidenceError, match=f"row {int(gone.argmax())}"):
                tac.posterior({"E": missing})
        else:
            close(tac.posterior({"E": missing}), np.where(gone[:, None], [0.3, 0.7], expected))


@pytest.mark.parametrize("kind", ["uint8", "int64", "uint32", ">i2", "int8"])
def test_codes_of_types_without_a_reader(kind):
    codes = np.array([0, 5, 100], dtype=kind)
    found, read_as = readable(codes, states=300)
    assert found.dtype == np.int32
    assert read_as == "i32"
    assert found.tolist() == [0, 5, 100]
    small = np.array([-1, 0, 127], dtype=np.int8)
    assert readable(small, states=128)[0] is small
    assert readable(small, states=129)[0].dtype == np.int32


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_last_rows_of_a_tile_leave_the_next_state_alone(dtype):
    """Each of the rows that make no whole vector is written as one: the last one must not reach the next state."""
    rng, net = np.random.default_rng(0), examples.abc()
    tolerance = 1e-12 if dtype == "float64" else 1e-5
    expected, found = (tacit.compile(net, "B", ["A", "C"], engine=e, dtype=t) for e, t in
                       (("numpy", "float64"), ("native", dtype)))  # fmt: skip
    for rows in (*range(ROWS_PER_TILE - 17, ROWS_PER_TILE + 2), 2 * ROWS_PER_TILE - 2):
        evidence = {"A": rng.random((rows, 2)), "C": rng.random((rows, 2))}
        close(found.posterior(evidence), expected.posterior(evidence), tolerance)


def test_a_tile_has_room_for_the_last_vector_and_whole_lines():
    assert TILE_STRIDE >= ROWS_PER_TILE - 1 + VECTOR_BITS // 32
    assert TILE_STRIDE * 4 % 64 == 0


# numbers --------------------------------------------------------------------------------------------------


SENSORS = {"far": 100.0, "other": 100.0, "near": 3.0, "hardly": 1e-5}  # from the mean of a state to the next


def measured(cards):
    """What has some states, each seen by sensors that tell them from far, from near, and hardly."""
    net = Network()
    for name, card in cards.items():
        places = np.arange(card)
        net.add(name, states=card, cpt=np.full(card, 1 / card))
        for kind, apart in SENSORS.items():
            net.add(f"{kind} {name}", [name], cpt=tacit.Gaussian(apart * places, 1.0 + 0.1 * places * (apart == 3.0)))
    net.add("Q", [*cards], 3, np.random.default_rng(0).dirichlet(np.ones(3), list(cards.values())))
    return net


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_normal_numbers(dtype):
    net, rows, rng = measured(CARDS), 1000, np.random.default_rng(0)
    columns = {name: rng.normal(0, 3, rows) for name in net.continuous}
    for i, column in enumerate(columns.values()):
        column[rng.random(rows) < 0.1] = np.nan
        column[50 + i] = 0.0  # exactly at a mean
        column[250 + i] = [40.0, 1e5, -1e9, 1e-300, 5e-324, -70.0][i % 6]
    columns["far two"][500], columns["other two"][500] = 0.0, 100.0  # contradict each other
    for kind in SENSORS:
        columns[f"{kind} two"][900] = 1e4 if kind == "hardly" else np.nan  # digits of large logarithms cancel
    ours, theirs = (tacit.compile(net, "Q", list(columns), engine=e, dtype=d) for e, d in [("native", dtype), NUMPY])
    close(ours.posterior(columns), theirs.posterior(columns), 10 * TOLERANCE[dtype])
    apart = {name: wider(column, 0) for name, column in columns.items()}
    close(ours.posterior(apart), ours.posterior(columns), 0.0)
