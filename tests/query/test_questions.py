"""Several query variables, none, interventions, the best states and samples: against the definition."""

import itertools

import numpy as np
import pandas as pd
import pytest
from bench.networks import network
from hypothesis import assume, given
from hypothesis import strategies as st

import tacit
from tacit import semantics as definition
from tacit.compiler.program import check
from tacit.engines.arrays import numpy_engine
from tests.helpers import ENGINES, always_hard, close, decided, impossible, one_row, tries
from tests.strategies import networks, queries, tie_margin

ROWS = 3
pytestmark = impossible


@pytest.fixture(params=ENGINES, scope="module")
def engine(request):
    return request.param


@st.composite
def asked(draw, **kinds):
    """A network, some of its variables, evidence, and those of its columns that are indexed."""
    net, query, columns = draw(queries(rows=ROWS, **kinds))
    names = draw(st.lists(st.sampled_from(net.variables), unique=True, max_size=3))
    certain = always_hard(net, columns)
    hard = draw(st.lists(st.sampled_from(certain), unique=True)) if certain else []
    return net, [query, *(n for n in names if n != query)], columns, hard


def compiled(net, query, columns, hard, engine):
    tac = tacit.compile(net, query, [n for n in columns if n not in hard], hard, engine=engine)
    check(tac.program)
    return tac


@tries(25)
@given(case=asked())
def test_several_variables(engine, case):
    net, names, columns, hard = case
    tac, rows = compiled(net, names, columns, hard, engine), decided(net, columns)
    assert tac.query == tuple(names)
    close(tac.joint(columns)[rows], definition.joint(net, names, columns)[rows])
    close(tac.posterior(columns)[rows], definition.posterior(net, names, columns)[rows])


@tries(20)
@given(case=asked())
def test_no_query(engine, case):
    net, _, columns, hard = case
    tac, rows = compiled(net, None, columns, hard, engine), decided(net, columns)
    close(np.exp(tac.log_evidence(columns)[rows]), definition.joint(net, (), columns)[rows])
    for name, found in tac.marginals(columns).items():
        close(found[rows], definition.posterior(net, name, columns)[rows])


def agrees(best, net, names, columns, rows):
    """The probability is the largest, and it is that of the states."""
    joints = definition.joint(net, names, columns)
    largest = definition.most_probable(net, names, columns)
    close(np.exp(best.log_probability[rows]), largest[rows])
    for i in rows:
        states = [best.states[name][i] for name in names]
        if np.isneginf(best.log_probability[i]):
            assert states == [None] * len(names)
        else:
            place = tuple(net.variable(name).codes[state] for name, state in zip(names, states, strict=True))
            close(joints[i][place], largest[i])


@tries(30)
@given(case=asked())
def test_most_probable_explanation(engine, case):
    net, query, columns, hard = case
    tac = compiled(net, query, columns, hard, engine)
    agrees(tac.mpe(columns), net, net.variables, columns, decided(net, columns))


@tries(30)
@given(case=asked())
def test_most_probable_states_of_some_variables(engine, case):
    net, query, columns, hard = case
    tac = compiled(net, query, columns, hard, engine)
    best = tac.map(columns)
    assert list(best.states) == query
    agrees(best, net, query, columns, decided(net, columns))


@tries(30)
@given(case=queries(rows=ROWS), data=st.data())
def test_interventions_are_those_of_the_network_without_the_parents(engine, case, data):
    net, query, columns = case
    certain = always_hard(net, columns)
    assume(certain)
    do = data.draw(st.lists(st.sampled_from(certain), min_size=1, unique=True))
    left = [n for n in certain if n not in do]
    hard = data.draw(st.lists(st.sampled_from(left), unique=True)) if left else []
    others = [n for n in columns if n not in (*do, *hard)]
    tac = tacit.compile(net, query, others, hard, do, engine=engine)
    check(tac.program)
    states = tac.read(columns).columns
    marginals, best = tac.marginals(columns), tac.mpe(columns)
    for i in range(len(next(iter(columns.values())))):
        set_to = {name: net.states(name)[np.broadcast_to(states[name].states(), ROWS)[i]] for name in do}
        cut = net.do(set_to)
        row = one_row({n: c for n, c in columns.items() if n not in do}, i)
        if tie_margin(cut, row) > 1e-9:
            close(tac.joint(one_row(columns, i)), definition.joint(cut, query, row))
            for name, found in marginals.items():
                close(found[i : i + 1], definition.posterior(cut, name, row))
            close(np.exp(best.log_probability[i]), definition.most_probable(cut, cut.variables, row)[0])


@tries(30)
@given(case=queries(rows=ROWS), data=st.data())
def test_given_states_count_as_evidence(engine, case, data):
    net, query, columns = case
    name = data.draw(st.sampled_from(net.variables))
    state = data.draw(st.sampled_from(net.states(name)))
    rest = {n: c for n, c in columns.items() if n != name}
    tac = tacit.compile(net, query, list(rest), given={name: state}, engine=engine)
    check(tac.program)
    whole = {**rest, name: [state] * ROWS}
    rows = decided(net, whole)
    evidence = rest if rest else None
    picked = rows if rest else [0] * len(rows)
    close(tac.joint(evidence)[picked], definition.joint(net, query, whole)[rows])
    close(tac.marginals(evidence)[query][picked], definition.posterior(net, query, whole)[rows])
    assert set(tac.mpe(evidence).states[name]) <= {state, None}


SAMPLES = 20_000


@tries(20)
@given(case=asked(max_nodes=4))
def test_samples_have_the_distribution_of_the_selected_network(engine, case):
    net, _, columns, hard = case
    possible = [i for i in decided(net, columns) if definition.joint(net, (), columns)[i] > 0]
    assume(possible)
    row = one_row(columns, possible[0])
    drawn = compiled(net, None, columns, hard, engine).sample(row, n=SAMPLES)
    expected = definition.posterior(net, net.variables, row)[0]
    codes = [np.array([net.variable(n).codes[x] for x in drawn[n][0].tolist()]) for n in net.variables]
    counts = np.bincount(np.ravel_multi_index(codes, expected.shape), minlength=expected.size).reshape(expected.shape)
    assert not counts[expected == 0].any()
    spread = np.sqrt(SAMPLES * expected * (1 - expected))
    assert (np.abs(counts - SAMPLES * expected) <= 6 * spread + 6).all()


@tries(25)
@given(case=asked())
def test_every_engine_draws_the_same(case):
    net, _, columns, hard = case
    possible = [i for i in decided(net, columns) if definition.joint(net, (), columns)[i] > 0]
    assume(possible)
    row = one_row(columns, possible[0])
    first, *others = (compiled(net, None, columns, hard, engine).sample(row, n=50, seed=7) for engine in ENGINES)
    for other, name in itertools.product(others, net.variables):
        assert (first[name] == other[name]).mean() > 0.9  # a draw at the border of two states may fall either way


@tries(25)
@given(net=networks(testing=True))
def test_samples_of_a_network_are_evidence(net):
    drawn = net.sample(20, seed=3)
    assert all(column.shape == (20,) for column in drawn.values())
    names = list(drawn)
    tac = tacit.compile(net, None, names)
    read = tac.read(drawn)
    assert {name: column.states().tolist() for name, column in read.columns.items()} == {
        name: [net.variable(name).codes[x] for x in drawn[name].tolist()] for name in names
    }


def test_samples_do_not_depend_on_how_rows_are_cut_into_blocks(monkeypatch):
    net, row = tacit.examples.abc(), {"A": [0.8, 0.1, None]}
    tac = tacit.compile(net, None, ["A"], engine="tape")
    one = tac.sample(row, n=40_000, seed=1)
    other = tac.sample(row, n=40_000, seed=2)
    assert any((one[name] != other[name]).any() for name in net)
    blocks = tacit.compile(net, None, ["A"], engine="numpy")
    monkeypatch.setattr(numpy_engine, "GRADIENT_ELEMENTS", 1)  # a row at a time
    again = blocks.sample(row, n=40_000, seed=1)
    assert all((one[name] == again[name]).all() for name in net)


def test_companions_take_other_numbers_without_being_compiled_again():
    net = tacit.examples.abc()
    tac = tacit.compile(net, "B", ["A", "C"])
    tac.mpe({"A": 0.8})
    (companion,) = tac._companions.values()
    other = net.with_cpts({"A": [0.9, 0.1]})
    tac.set_parameters(other)
    close(np.exp(tac.mpe({"A": 0.8}).log_probability), definition.most_probable(other, other.variables, {"A": 0.8}))
    assert list(tac._companions.values()) == [companion]
    narrow = tacit.Network()
    narrow.add("A", cpt=[1.0, 0.0])
    narrow.add("B", ["A"], cpt=[[0.4, 0.6], [0.9, 0.1]])
    tac = tacit.compile(narrow, "A")
    tac.sample()
    wide = narrow.with_cpts({"B": [[1.0, 0.0], [0.9, 0.1]]})
    tac.set_parameters(wide)
    assert set(tac.sample(n=20)["B"][0]) == {"true"}


def test_labels_keep_their_kind():
    net = tacit.Network()
    net.add("count", states=3, cpt=[0.2, 0.3, 0.5])
    net.add("flag", states=[True, False], cpt=[0.5, 0.5])
    net.add("word", cpt=[0.5, 0.5])
    drawn = net.sample(5)
    assert [drawn[name].dtype.kind for name in net] == ["i", "b", "O"]
    assert net.posterior("count", {k: v for k, v in drawn.items() if k != "count"}).shape == (5, 3)


def test_impossible_rows_have_no_states_and_no_samples():
    net = tacit.Network()
    net.add("A", states=3, cpt=[0.5, 0.5, 0.0])
    net.add("B", ["A"], cpt=[[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    tac = tacit.compile(net, "A", ["A", "B"])
    rows = {"A": [0, 0], "B": ["true", "false"]}
    with pytest.warns(tacit.ImpossibleEvidenceWarning, match="1 of 2 rows"):
        best = tac.mpe(rows)
    assert best.states["A"].tolist() == [0, None]
    assert best.log_probability[1] == -np.inf
    assert best.to_pandas()["log_probability"].tolist() == best.log_probability.tolist()
    pd.testing.assert_frame_equal(best.to_frame(), best.to_pandas())
    assert best.to_polars().columns == best.to_arrow().column_names == [*best.states, "log_probability"]
    with pytest.warns(tacit.ImpossibleEvidenceWarning, match="1 of 2 rows"):
        drawn = tac.sample(rows, n=2)
    assert drawn["A"].tolist() == [[0, 0], [None, None]]


def test_evidence_far_below_the_smallest_float():
    """Findings that are each improbable: the joint is about 1e-440."""
    net = tacit.Network()
    net.add("H", cpt=[0.5, 0.5])
    for i in range(150):
        net.add(f"E{i}", ["H"], cpt=[[0.001, 0.999], [0.0012, 0.9988]])
    row = {f"E{i}": "true" for i in range(150)}
    for engine in ENGINES:
        tac = tacit.compile(net, "H", list(row), engine=engine)
        best = tac.mpe(row)
        assert best.states["H"].tolist() == ["false"]
        close(best.log_probability, [np.log(0.5) + 150 * np.log(0.0012)], 1e-10)
        assert set(tac.sample(row, n=20)["H"][0]) == {"false"}


def test_a_joint_too_large_for_a_table_is_maximised_all_the_same():
    net = tacit.Network()
    net.add("X0", cpt=[0.6, 0.4])
    for i in range(1, 60):
        net.add(f"X{i}", [f"X{i - 1}"], cpt=[[0.9, 0.1], [0.2, 0.8]])
        net.add(f"Y{i}", [f"X{i}"], cpt=[[0.7, 0.3], [0.4, 0.6]])
    names = [f"X{i}" for i in range(60)]
    seen = {f"Y{i}": ["false", "true"] for i in range(1, 60)}
    tac = tacit.compile(net, names, list(seen))
    best = tac.map(seen)
    assert list(best.states) == names
    everything = {**best.states, **seen}
    close(best.log_probability, tacit.compile(net, None, hard=list(everything)).log_evidence(everything), 1e-9)
    # with all of Y observed, these are all variables there are
    close(best.log_probability, tac.mpe(seen).log_probability, 1e-9)
    assert (tac.log_evidence(seen) > best.log_probability).all()
    assert tac.sample(seen, n=2)["X0"].shape == (2, 2)
    for ask in (tac.posterior, tac.joint, tac.ask, tac.selected):
        with pytest.raises(tacit.TooLargeError, match=r"joint states .* map\(...\)"):
            ask(seen)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"query": []}, "empty sequence"),
        ({"query": {"A", "B"}}, "query is a set"),
        ({"query": "A", "evidence": {"B": "true"}}, "evidence takes names, not states"),
        ({"query": "A", "do": {"B": "true"}}, "do takes names, not states"),
        ({"query": "A", "given": ["B"]}, "given is .* expected a mapping"),
        ({"query": ["A", "A"]}, "twice"),
        ({"query": "A", "evidence": ["B"], "do": ["B"]}, "'B' is in do= and in evidence="),
        ({"query": "A", "hard": ["B"], "do": ["B"]}, "'B' is in do= and in hard="),
        ({"query": "A", "evidence": ["B"], "given": {"B": "true"}}, "'B' is in given="),
        ({"query": "A", "given": {"B": "maybe"}}, "'maybe'"),
        ({"query": "A", "given": {"B": 0.5}}, "expected one of its states"),
        ({"query": "A", "given": {"B": None}}, "expected one of its states"),
        ({"query": "A", "do": "numpy"}, "engine=..."),
        ({"query": "A", "do": ["Z"]}, "'Z' is not a variable"),
    ],
)
def test_questions_that_make_no_sense(arguments, message):
    with pytest.raises(tacit.TacitError, match=message):
        tacit.compile(tacit.examples.abc(), **arguments)


def test_what_needs_a_query_says_so():
    tac = tacit.compile(tacit.examples.abc(), None, ["A"])
    for ask in (tac.posterior, tac.joint, tac.map):
        with pytest.raises(tacit.TacitError, match="query=None"):
            ask({"A": 0.5})
    with pytest.raises(tacit.TacitError, match="one variable"):
        tac.explain({"A": 0.5})
    with pytest.raises(tacit.TacitError, match="there is no state on 'A'"):
        tacit.compile(tacit.examples.abc(), "B", do=["A"]).posterior()
    done = tacit.compile(tacit.examples.abc(), "B", do=["A"])
    for states in (["true", None], [0.3, 0.6]):
        with pytest.raises(tacit.EvidenceError, match=r"intervention on 'A', row .: a state is needed"):
            done.posterior({"A": states})
    with pytest.raises(tacit.TacitError, match="query=None"):
        tacit.examples.abc().posterior(None)
    assert any((tac.sample(n=50, seed=None)["C"] != tac.sample(n=50, seed=None)["C"]).any() for _ in range(5))
    for n in (0, -1, 1.5, True):
        with pytest.raises(tacit.TacitError, match="number of samples"):
            tac.sample({"A": 0.5}, n=n)


def test_frequencies_on_a_real_network():
    """Marginals and pairs of many samples are within 5 standard deviations."""
    net, n = network("alarm"), 200_000
    row = {"HISTORY": "FALSE", "CVP": "NORMAL", "PCWP": "NORMAL", "HRBP": "HIGH", "HREKG": "NORMAL"}
    drawn = tacit.compile(net, None, list(row)).sample(row, n=n)
    marginals = tacit.compile(net, None, list(row)).marginals(row)
    codes = {name: sum(np.int8(i) * (drawn[name][0] == s) for i, s in enumerate(net.states(name))) for name in net}
    for name, (expected,) in marginals.items():
        unlikely(np.bincount(codes[name], minlength=len(expected)), expected)
    for a, b in (
        ("LVFAILURE", "HYPOVOLEMIA"),
        ("CO", "HR"),
        ("CATECHOL", "ARTCO2"),
        ("BP", "TPR"),
        ("SAO2", "VENTALV"),
    ):
        expected = net.posterior([a, b], row)[0]
        counts = np.bincount(np.ravel_multi_index((codes[a], codes[b]), expected.shape), minlength=expected.size)
        unlikely(counts, expected.ravel())


def unlikely(counts, expected):
    """An error where a count is further from its expectation than five standard deviations."""
    n = counts.sum()
    assert (np.abs(counts - n * expected) <= 5 * np.sqrt(n * expected * (1 - expected)) + 5).all()


# elsewhere in the library -----------------------------------------------------------------------------------


def test_given_states_count_in_explanations_and_bounds():
    net = tacit.examples.abc()
    known, asked = tacit.compile(net, "B", ["A"], given={"C": "lo"}), tacit.compile(net, "B", ["A", "C"])
    assert known.given == {"C": "lo"}
    assert str(known.explain({"A": 0.8})) == str(asked.explain({"A": 0.8, "C": "lo"}))
    box = {"A": (0.2, 0.9)}
    assert str(tacit.theory.bounds(known, box)) == str(tacit.theory.bounds(asked, box, given={"C": "lo"}))
    close(known.circuit(fold=False).evaluate({"A": 0.8, "C": "lo"}), known.joint({"A": 0.8}))
    close(known.circuit().evaluate({"A": 0.8}), known.joint({"A": 0.8}))
    close(known.posterior(known.read({"A": 0.8})), known.posterior({"A": 0.8}))
    of_known, of_asked = known.sensitivity({"A": 0.8}), asked.sensitivity({"A": 0.8, "C": "lo"})
    for key, derivative in of_asked.derivatives.items():
        close(of_known.derivatives[key], derivative)
    close(of_known.changed(0, (0,), ("A", "table"), (0,), 0.5), of_asked.changed(0, (0,), ("A", "table"), (0,), 0.5))
    close(known.information({"A": 0.8})["A"], asked.information({"A": 0.8, "C": "lo"})["A"])


def test_interventions_elsewhere(tmp_path):
    torch, onnxruntime = pytest.importorskip("torch"), pytest.importorskip("onnxruntime")
    net = tacit.examples.abc()
    tac = tacit.compile(net, "B", ["C"], do=["A"])
    likelihoods = np.array([[0.3, 0.7], [0.8, 0.2]])
    expected = tac.posterior({"A": ["true", "false"], "C": likelihoods})
    module = tacit.torch.TACModule(tac)
    close(module({"A": torch.tensor([0, 1]), "C": torch.tensor(likelihoods)}).detach(), expected)
    tac.to_onnx(tmp_path / "do.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "do.onnx")
    close(session.run(["posterior"], {"A": np.array([0, 1]), "C": likelihoods})[0], expected)
    close(
        tac.circuit().evaluate({"A": ["true", "false"], "C": likelihoods}),
        tac.joint({"A": ["true", "false"], "C": likelihoods}),
    )
    with pytest.raises(tacit.TacitError, match=r"compile net\.do"):
        tac.circuit(fold=False)


def test_learning_with_interventions_keeps_the_parents():
    net = tacit.Network()
    net.add("Z", cpt=[0.4, 0.6])
    net.add("X", ["Z"], cpt=[[0.9, 0.1], [0.2, 0.8]])
    net.add("Y", ["X", "Z"], cpt=None)
    tac = tacit.compile(net, "Y", do=["X"])
    fit = tacit.fit(tac, {"X": ["true", "false"]}, [0.7, 0.2], progress=False)
    assert fit.network.parents("X") == ("Z",)
    close([fit.network.do({"X": x}).posterior("Y")[0, 0] for x in ("true", "false")], [0.7, 0.2], 1e-4)


def test_what_takes_one_variable_refuses_several(tmp_path):
    tac = tacit.compile(tacit.examples.abc(), ["A", "B"], ["C"])
    asked = [
        lambda: tacit.fit(tac, {"C": [0.1]}, [1.0]),
        lambda: tac.to_onnx(tmp_path / "x.onnx"),
        lambda: tacit.torch.TACModule(tac),
        lambda: tacit.theory.bounds(tac, {"C": (0, 1)}),
    ]
    for ask in asked:
        with pytest.raises(tacit.TacitError, match="a query of one variable is needed"):
            ask()
