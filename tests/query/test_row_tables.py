"""Rows that bring tables along: the same answers as of a network with that table, row by row."""

import pickle

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import tacit
from tacit import CPT, EvidenceError, TacitError, semantics
from tacit.compiler import strategy
from tests.helpers import ENGINES, ENGINES_OF_MANY, always_hard, close, decided, impossible, one_row, tries
from tests.strategies import continuous_networks, evidence, networks, numbers, rngs

ROWS = 3
STRUCTURED = {"MIN_WORK": 0, "KNOWN_SHARE": -1.0, "WEIGHT_OF_NUMBERS": 0, "CLEARLY_CHEAPER": 0}


def random_tables(rng, shape, rows=ROWS):
    """Tables for rows, with some exact zeros, which are the row's own."""
    tables = rng.dirichlet(np.ones(shape[-1]), (rows, *shape[:-1])) + 1e-3
    tables *= (rng.random(tables.shape) < 0.8) | (tables == tables.max(axis=-1, keepdims=True))
    return tables / tables.sum(axis=-1, keepdims=True)


@st.composite
def cases(draw, most_continuous=1):
    """A network, a query, some columns of evidence, and tables of some nodes for every row."""
    numeric = draw(st.integers(0, most_continuous)) > 0
    net = draw(continuous_networks(max_nodes=4) if numeric else networks(max_nodes=5))
    discrete, rng = [name for name in net if name not in net.continuous], draw(rngs)
    plain = [name for name in discrete if isinstance(net.cpt(name), CPT)]
    assume(plain)
    chosen = draw(st.lists(st.sampled_from(plain), min_size=1, unique=True))
    tables = {name: random_tables(rng, net.cpt(name).table.shape) for name in chosen}
    columns = draw(evidence(net, discrete, ROWS)) | (numbers(net, rng, ROWS) if numeric else {})
    hard = [name for name in always_hard(net, columns) if draw(st.booleans())]
    return net, draw(st.sampled_from(discrete)), columns, hard, tables


def compiled(net, query, columns, hard, tables, engine="auto"):
    soft = [name for name in columns if name not in hard]
    return tacit.compile(net, query, soft, hard, engine=engine, per_row=list(tables))


def with_tables(columns, tables):
    return {**columns, **{f"{name}.table": own for name, own in tables.items()}}


def each(net, columns, tables):
    """For each row that has an answer beyond rounding: its number, its network, and its evidence."""
    for i in range(ROWS):
        own = net.with_cpts({name: CPT(table[i]) for name, table in tables.items()})
        row = one_row(columns, i)
        if decided(own, row):
            yield i, own, row


@impossible
@pytest.mark.parametrize("engine", ENGINES_OF_MANY)
@tries(40)
@given(case=cases())
def test_answers_are_those_of_networks_with_the_tables(engine, case):
    net, query, columns, hard, tables = case
    tac = compiled(net, query, columns, hard, tables, engine)
    rows = with_tables(columns, tables)
    joint, posterior, log_evidence = tac.joint(rows), tac.posterior(rows), tac.log_evidence(rows)
    marginals = tac.marginals(rows)
    for i, own, row in each(net, columns, tables):
        close(joint[i], semantics.joint(own, query, row)[0])
        close(posterior[i], semantics.posterior(own, query, row)[0])
        for name, expected in tacit.compile(own, query, list(columns), engine="numpy").marginals(row).items():
            if isinstance(expected, np.ndarray):
                close(marginals[name][i], expected[0])
        with np.errstate(divide="ignore"):
            close(log_evidence[i], np.log(semantics.joint(own, query, row)[0].sum()), 1e-11)


@impossible
@tries(40)
@given(case=cases())
def test_other_questions(case):
    net, query, columns, hard, tables = case
    tac = compiled(net, query, columns, hard, tables)
    rows = with_tables(columns, tables)
    mpe, map_, told, selected = tac.mpe(rows), tac.map(rows), tac.information(rows), tac.selected(rows)
    for i, own, row in each(net, columns, tables):
        one = tacit.compile(own, query, list(columns), engine="numpy")
        close(mpe.log_probability[i], one.mpe(row).log_probability[0], 1e-11)
        close(map_.log_probability[i], one.map(row).log_probability[0], 1e-11)
        for name, expected in one.information(row).items():
            close(told[name][i], expected[0])
        for name, expected in one.selected(row).items():
            close(selected[name].posterior[i], expected.posterior[0])


@impossible
@pytest.mark.parametrize("structured", [False, True])
@tries(40)
@given(case=cases(most_continuous=0))
def test_states_and_diagrams(structured, case):
    net, query, columns, hard, tables = case
    rows = with_tables(columns, tables)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (STRUCTURED if structured else {}).items():
            patch.setattr(strategy, name, value)
        tac = compiled(net, query, columns, hard, tables)
        joint, mpe, drawn = tac.joint(rows), tac.mpe(rows), tac.sample(rows, 4)
    for i, own, row in each(net, columns, tables):
        close(joint[i], semantics.joint(own, query, row)[0])
        every = semantics.joint(own, own.variables, row)[0]
        close(np.exp(mpe.log_probability[i]), every.max())
        if every.any():
            codes = {name: own.variable(name).codes for name in own}
            close(every[tuple(codes[name][mpe.states[name][i]] for name in own)], every.max())
            assert every[tuple([codes[name][state] for state in drawn[name][i]] for name in own)].all()


def chain(table=None):
    """P -> T -> U, with numbers for T or without."""
    net = tacit.Network()
    net.add("P", states=["p", "q"], cpt=[0.4, 0.6])
    net.add("T", ["P"], states=["a", "b", "c"], cpt=table)
    net.add("U", ["T"], cpt=[[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]])
    return net


TABLES = random_tables(np.random.default_rng(0), (2, 3))
ROLES = [
    {"hard": ["P"]},
    {"hard": ["P", "T"]},
    {"do": ["P"], "evidence": ["U"]},
    {"given": {"T": "b"}},
    {"given": {"T": "b", "P": "q"}, "evidence": ["U"]},
]


@impossible
@pytest.mark.parametrize("roles", ROLES, ids=str)
def test_roles_of_the_family(roles):
    columns = {"P": ["p", "q", "q"], "T": ["a", "b", "c"], "U": [0.3, 0.9, 1.0]}
    named = [name for role in ("hard", "do", "evidence") for name in roles.get(role, ())]
    rows = {name: columns[name] for name in named}
    for query in ("P", "T", "U"):
        tac = tacit.compile(chain(), query, per_row=["T"], **roles)
        found = tac.joint({**rows, "T.table": TABLES})
        for i in range(ROWS):
            own = tacit.compile(chain(TABLES[i]), query, **roles)
            close(found[i], own.joint(one_row(rows, i))[0])


def test_numbers_of_the_network_may_change_and_queries_may_move():
    tac = tacit.compile(chain(), "U", ["P"], per_row=["T"])
    rows = tac.read({"P": [0.3, None, 0.8], "T.table": TABLES})
    other = chain([[1, 0, 0], [0, 0, 1]]).with_cpts({"P": [0.1, 0.9]})
    ensemble = tacit.Ensemble.of([chain([[1, 0, 0]] * 2), other])
    under = tac.posterior(rows, tables=ensemble)
    close(under[0], tac.posterior(rows))
    tac.set_parameters(other)
    close(under[1], tac.posterior(rows))
    close(pickle.loads(pickle.dumps(tac)).posterior(rows), under[1])


def test_what_is_read_is_a_copy():
    tables = TABLES.copy()
    tac = tacit.compile(chain(), "U", per_row=["T"])
    rows, before = tac.read({"T.table": tables}), tac.posterior({"T.table": tables})
    tables[:] = tables[::-1].copy()
    close(tac.posterior(rows), before)


def test_one_table_may_hold_for_all_rows():
    tac = tacit.compile(chain(), "U", ["P"], per_row=["T"])
    columns = {"P": [0.2, 0.5, 1.0]}
    close(tac.posterior({**columns, "T.table": TABLES[0]}), chain(TABLES[0]).posterior("U", columns))
    close(tac.posterior({"T.table": TABLES})[1:], [chain(own).posterior("U")[0] for own in TABLES[1:]])


@pytest.mark.parametrize("kind", ["float32", "torch", "lists", "pandas", "polars", "pyarrow", "records", "row"])
def test_tables_of_any_library(kind):
    tac = tacit.compile(chain(), "U", ["P"], per_row=["T"])
    labels, nested = ["p", "q", "p"], TABLES.tolist()
    expected = tac.posterior({"P": labels, "T.table": TABLES})
    columns = {"P": labels, "T.table": nested}
    if kind == "float32":
        columns["T.table"] = TABLES.astype(np.float32)
    elif kind == "torch":
        columns["T.table"] = pytest.importorskip("torch").tensor(TABLES)
    elif kind == "pandas":
        columns = pytest.importorskip("pandas").DataFrame({"P": labels, "T.table": list(TABLES)}, index=[7, 8, 9])
    elif kind == "polars":
        columns = pytest.importorskip("polars").DataFrame(columns)
    elif kind == "pyarrow":
        columns = pytest.importorskip("pyarrow").table(columns)
    elif kind == "records":
        columns = [{"P": label, "T.table": table} for label, table in zip(labels, nested, strict=True)]
    elif kind == "row":
        columns = pytest.importorskip("pandas").DataFrame({"P": labels, "T.table": list(TABLES)}).iloc[1]
        expected = expected[1:2]
    close(tac.posterior(columns), expected, 1e-7 if kind == "float32" else 1e-12)


def test_a_frame_of_nothing_but_tables():
    polars = pytest.importorskip("polars")
    tac = tacit.compile(chain(), "U", per_row=["T"])
    close(tac.posterior(polars.DataFrame({"T.table": TABLES.tolist()})), tac.posterior({"T.table": TABLES}))


def test_tables_are_checked_and_scaled_in_blocks(monkeypatch):
    monkeypatch.setattr("tacit.query.asking.row_tables.CACHED_ENTRIES", 12)  # two tables
    tac = tacit.compile(chain(), "U", per_row=["T"])
    tables = random_tables(np.random.default_rng(1), (2, 3), 5)
    expected = tac.posterior({"T.table": tables})
    tables[4] *= 1 - 1e-6
    close(tac.posterior({"T.table": tables}), expected)
    assert not tac.read({"T.table": tables[:0]}).rows
    tables[3, 1, 0] += 0.1
    with pytest.raises(EvidenceError, match="row 3: P='q': sums to 1"):
        tac.posterior({"T.table": tables})


def changed(*place, value):
    tables = TABLES.copy()
    tables[place] = value
    return tables


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        (None, r"there is no table of 'T', which the query was compiled to have in every row \(per_row=\)"),
        (
            TABLES[:, 0],
            r"table of 'T' has shape \(3, 3\), expected \(rows, 2, 3\) = \(rows, states of P, states of T\)",
        ),
        (changed(1, 0, value=[0.5, 0.5, 0.1]), r"table of 'T', row 1: P='p': sums to 1.1, expected 1"),
        (changed(2, 1, value=[1.5, -0.5, 0]), r"table of 'T', row 2: P='q': 1.5 is not a probability in \[0, 1\]"),
        (changed(2, 1, 1, value=np.nan), r"table of 'T', row 2: holds NaN; a number is needed everywhere"),
        ([*TABLES.tolist()[:2], None], r"table of 'T' is not an array of numbers"),
        (np.full((3, 2, 3), "x"), r"table of 'T' is not an array of numbers: it has type <U1"),
        (TABLES[:2], r"the column 'T.table' has 2 rows, other columns have 3"),
    ],
)
def test_wrong_tables(tables, message):
    tac = tacit.compile(chain(), "U", ["P"], per_row=["T"])
    with pytest.raises(EvidenceError, match=message):
        tac.posterior({"P": ["p", "q", "p"]} | ({} if tables is None else {"T.table": tables}))


def test_a_frame_names_the_row_of_a_wrong_table():
    frame = pytest.importorskip("pandas").DataFrame({"T.table": list(changed(1, 0, value=0.0))}, index=["x", "y", "z"])
    with pytest.raises(EvidenceError, match=r"row 1 \(index 'y'\): P='p': sums to 0"):
        tacit.compile(chain(), "U", per_row=["T"]).posterior(frame)


def test_tables_read_for_another_shape():
    net = tacit.Network()
    net.add("T", cpt=[0.5, 0.5])
    rows = tacit.compile(net, "T", per_row=["T"]).read({"T.table": [0.1, 0.9]})
    with pytest.raises(EvidenceError, match=r"table of 'T' was read for another shape, expected \(rows, 2, 3\)"):
        tacit.compile(chain(), "T", per_row=["T"]).posterior(rows)


def test_what_cannot_be_brought_along():
    net = chain([[0.2, 0.3, 0.5]] * 2)
    net.add("V", ["T"], cpt=tacit.TestingCPT([[1, 0]] * 3, [[0, 1]] * 3, [0.5] * 3))
    net.add("N", ["U"], cpt=tacit.NoisyOr({"U": 0.8}))
    net.add("x", ["U"], cpt=tacit.Gaussian([0.0, 1.0], [1.0, 1.0]))
    net.add("S", states=["table", "chair"], cpt=[0.5, 0.5])
    net.add("S.table", cpt=[0.5, 0.5])
    net.add("U.table", cpt=[0.5, 0.5])
    for name, message in {
        "V": "per_row names 'V', which has a TestingCPT; rows can bring along tables of plain CPTs only",
        "N": "per_row names 'N', which has a NoisyOr",
        "x": "per_row names 'x', which is continuous",
        "S": "'S.table', the column of its tables, would also be a variable",
        "U": "'U.table', the column of its tables, would also be a variable",
        "Z": "'Z'",
    }.items():
        with pytest.raises(TacitError, match=message):
            tacit.compile(net, "P", per_row=[name])
    with pytest.raises(TacitError, match="per_row names 'T', which is in do=, so that its table does not count"):
        tacit.compile(net, "P", do=["T"], per_row=["T"])
    with pytest.raises(TacitError, match="per_row= needs a Bayesian network"):
        tacit.compile(tacit.FactorGraph(), None, per_row=["T"])


def test_questions_about_one_network_are_refused():
    tac, row = tacit.compile(chain(), "U", ["P"], per_row=["T"]), {"P": 0.3, "T.table": TABLES[:1]}
    for ask in (
        lambda: tac.circuit(),
        lambda: tac.explain(row),
        lambda: tac.compare(row, row),
        lambda: tac.sensitivity(row),
        lambda: tacit.theory.bounds(tac, {}),
        lambda: tacit.plot.curve(tac),
    ):
        with pytest.raises(TacitError, match="is about one network, and here every row has tables of its own"):
            ask()


def test_other_tables_are_learned_beside_them():
    rng = np.random.default_rng(3)
    columns = {"P": rng.choice(["p", "q"], 50), "T.table": random_tables(rng, (2, 3), 50)}
    target = tacit.compile(chain(), "U", hard=["P"], per_row=["T"]).posterior(columns)
    net = chain().with_cpts({"U": CPT(np.full((3, 2), np.nan))})
    learned = tacit.fit(tacit.compile(net, "U", hard=["P"], per_row=["T"], engine="numpy"), columns, target)
    close(learned.network.cpt("U").table, chain().cpt("U").table, 1e-4)


def test_marginals_of_what_indexes_two_families(monkeypatch):
    """Its likelihoods stand beside both tables, so that derivatives by them would count it twice."""
    monkeypatch.setattr("tacit.query.marginals.WORTH_COMPILING", 0)
    monkeypatch.setattr("tacit.query.marginals.MIN_SPEEDUP", 0)
    net = chain()
    net.add("S", ["P", "T"], states=["x", "y"])
    tables = {"T": TABLES, "S": random_tables(np.random.default_rng(1), (2, 3, 2))}
    rows = {"P": ["p", "q", "q"], "U": ["true", "true", "false"]}
    for engine in ("numpy", "tape"):
        tac = tacit.compile(net, "S", ["U"], ["P"], per_row=list(tables), engine=engine)
        marginals = tac.marginals(with_tables(rows, tables))
        for i, own, row in each(net, rows, tables):
            for name in net:
                close(marginals[name][i], semantics.posterior(own, name, row)[0])


def test_a_selector_with_a_table_of_its_own():
    net = tacit.Network()
    net.add("P", states=["p", "q"], cpt=[0.4, 0.6])
    net.add("T", ["P"], states=["a", "b", "c"])
    inputs = ["I0", "I1", "I2"]
    for i, name in enumerate(inputs):
        net.add(name, cpt=[0.1 + 0.3 * i, 0.9 - 0.3 * i])
    net.add("Q", ["T", *inputs], cpt=tacit.Mux("T", inputs))
    rows = {"P": ["p", "q", "q"], "I1": [0.3, 0.8, 0.5]}
    for hard in ([], ["P"]):
        tac = tacit.compile(net, "Q", [name for name in rows if name not in hard], hard, per_row=["T"])
        found = tac.joint(with_tables(rows, {"T": TABLES}))
        for i, own, row in each(net, rows, {"T": TABLES}):
            close(found[i], semantics.joint(own, "Q", row)[0])


def test_zeros_of_the_network_say_nothing_beside_what_is_given():
    tac = tacit.compile(chain([[0.2, 0.3, 0.5]] * 2), "P", ["U"], given={"T": "b"}, per_row=["T"])
    rows = {"U": [0.3, 0.9, 1.0], "T.table": TABLES}
    before = tac.joint(rows)
    tac.set_parameters(chain([[1, 0, 0], [0, 0, 1]]))
    close(tac.joint(rows), before)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("engine", ENGINES)
def test_small_numbers_keep_their_digits(engine, dtype):
    """The evidence makes up for them."""
    net, tables = tacit.Network(), np.array([[1e-300, 1.0], [1e-310, 1.0], [0.0, 1.0], [1e-45, 1.0], [0.3, 0.7]])
    net.add("T")
    for i in range(80):
        net.add(f"X{i}", ["T"], cpt=[[0.9, 0.1], [1e-4, 1 - 1e-4]])
    rows = {f"X{i}": "true" for i in range(80)}
    tac = tacit.compile(net, "T", list(rows), per_row=["T"], engine=engine, dtype=dtype)
    found = tac.posterior(rows | {"T.table": tables})
    odds = np.log(np.maximum(tables[:, 0], 5e-324)) + 80 * np.log(0.9 / 1e-4)
    expected = np.where(tables[:, 0] > 0, 1 / (1 + np.exp(-odds)), 0.0)
    close(found[:, 0], expected, 1e-12 if dtype == "float64" else 1e-6)


def test_steps_are_filtered():
    template = tacit.Network()
    template.add("R[0]", cpt=[0.5, 0.5])
    template.add("R[1]", ["R[0]"], cpt=[[0.7, 0.3], [0.3, 0.7]])
    for t in (0, 1):
        template.add(f"U[{t}]", [f"R[{t}]"], cpt=[[0.9, 0.1], [0.2, 0.8]])
    net = tacit.unroll(template, steps=3)
    rows = {f"U[{t}]": np.array([0.8, 0.3, 0.5]) for t in range(3)}
    tables = {f"R[{t}]": random_tables(np.random.default_rng(t), (2, 2)) for t in (1, 2)}
    found = tacit.compile(net, None, list(rows), per_row=list(tables)).filtered("R", with_tables(rows, tables))
    for i, own, row in each(net.with_cpts({f"R[{t}]": CPT([[0.7, 0.3], [0.3, 0.7]]) for t in (1, 2)}), rows, tables):
        close(found[i], semantics.filtered(own, "R", row)[0])


def test_a_single_row_needs_its_table_too():
    """Where there is code, single rows of labels take a shorter way, which knows no tables."""
    tac = tacit.compile(chain(), "U", ["P"], per_row=["T"], engine="native")
    for _ in range(2):
        close(tac.posterior({"P": "p", "T.table": TABLES[0]}), chain(TABLES[0]).posterior("U", {"P": "p"}))
        with pytest.raises(EvidenceError, match="there is no table of 'T'"):
            tac.posterior({"P": "p"})
