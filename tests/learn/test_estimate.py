"""Tables from rows: counting, EM, priors, ties, testing nodes and noisy-ors."""

import subprocess
import sys

import numpy as np
import pytest
from bench.networks import network
from hypothesis import assume, given
from hypothesis import strategies as st

import tacit
from tacit import CPT, NoisyOr, TestingCPT, semantics
from tacit.compiler.prune import relevant
from tacit.evidence.read import read_column
from tests.helpers import close, impossible, tries
from tests.strategies import evidence, networks, tie_margin

ROWS = 4


def says_something(variable, column):
    known, _ = read_column(variable, column)
    return (known.codes >= 0).any() if known.codes is not None else (known.soft != 1).any()


def expected_counts(net, columns, rows):
    """The definition: for every row, how probable each state of a family is, in the network that the row selects.

    Rows say nothing about nodes that are neither observed nor above what is: there is nothing to count.
    """
    found = {}
    observed = [name for name, column in columns.items() if says_something(net.variable(name), column)]
    for i in range(rows):
        row = {name: column[i : i + 1] for name, column in columns.items()}
        how = semantics.select(net, row)
        for name in net:
            family = (*net.parents(name), name)
            share = semantics.posterior(net, family, row)[0] * (name in relevant(net, observed))
            cpt = net.cpt(name)
            if isinstance(cpt, CPT):
                found[name, "table"] = found.get((name, "table"), 0) + share
            elif isinstance(cpt, TestingCPT):
                node, mixed = how.nodes[name], how.network.table(name)
                for i, part in enumerate(cpt.table_parts):
                    weight = node.weights[..., i, None]
                    by = np.divide(cpt.tables[i] * weight, mixed, out=np.zeros_like(mixed), where=mixed > 0)
                    found[name, part] = found.get((name, part), 0) + share * by
    return found


def one_step(table, counts, free, prior):
    """A table after one step of EM, row by row."""
    made = np.array(table)
    for place in np.ndindex(table.shape[:-1]):
        own = free[place]
        heap = np.where(own, counts[place] + prior, 0)
        if heap.sum() > 0:
            made[place] = np.where(own, (1 - table[place][~own].sum()) * heap / heap.sum(), table[place])
    return made


@impossible
@tries(40)
@given(net=networks(max_nodes=4, factored=False), data=st.data())
def test_one_iteration_is_that_of_the_definition(net, data):
    columns = data.draw(evidence(net, rows=ROWS))
    assume(columns)
    possible = (semantics.joint(net, (), columns) > 1e-6).all()
    decided = all(tie_margin(net, {n: c[i : i + 1] for n, c in columns.items()}) > 1e-9 for i in range(ROWS))
    assume(possible and decided)
    start = net.learnable()
    prior = data.draw(st.sampled_from([0.0, 0.5]))
    free = [p for n in net for k, p in net.cpt(n).parts().items() if k != "thresholds" and ((p != 0) & (p != 1)).any()]
    assume(free)
    found = tacit.estimate(start, columns, prior=prior, steps=1, tolerance=0, progress=False)
    counts = expected_counts(net, columns, ROWS)
    close(found.history[0], np.log(semantics.joint(net, (), columns)).sum(), 1e-10)
    for (name, part), own in counts.items():
        table = net.cpt(name).parts()[part]
        close(found.network.cpt(name).parts()[part], one_step(table, own, (table != 0) & (table != 1), prior), 1e-10)
    for name in net.testing_nodes:
        close(found.network.cpt(name).thresholds, net.cpt(name).thresholds)


def test_complete_rows_are_counted_once():
    net = network("alarm")
    drawn = net.sample(3000, seed=1)
    found = tacit.estimate(net.learnable(), drawn, progress=False)
    assert found.converged
    assert len(found.history) == 1
    codes = {name: np.array([net.variable(name).codes[x] for x in drawn[name].tolist()]) for name in net}
    for name in ("HR", "CATECHOL", "VENTLUNG"):
        table, family = net.table(name), (*net.parents(name), name)
        counts = np.zeros(table.shape)
        np.add.at(counts, tuple(codes[n] for n in family), 1)
        close(found.network.table(name), one_step(table, counts, (table != 0) & (table != 1), 0.0))
    close(found.log_likelihood, found.network.log_likelihood(drawn).sum(), 1e-7)
    assert found.rows == 3000


@pytest.mark.filterwarnings("ignore::FutureWarning")  # names that pgmpy is about to change
@pytest.mark.parametrize("prior", [0.0, 1.0])
def test_tables_are_those_of_pgmpy(prior):
    estimators = pytest.importorskip("pgmpy.estimators")
    pandas = pytest.importorskip("pandas")
    net = network("sachs")
    frame = pandas.DataFrame(net.sample(2000, seed=2))
    shape = {name: list(net.states(name)) for name in net}
    unset = tacit.Network()
    for name in net:
        unset.add(name, net.parents(name), net.states(name))
    found = tacit.estimate(unset, frame, prior=prior, progress=False).network
    model = tacit.to_pgmpy(net)
    if prior:
        peer = estimators.BayesianEstimator(model, frame, state_names=shape)
        how = {"prior_type": "dirichlet"}
    else:
        peer, how = estimators.MaximumLikelihoodEstimator(model, frame, state_names=shape), {}
    for name in net:
        table = found.table(name)
        if prior:
            how["pseudo_counts"] = np.full((table.shape[-1], int(np.prod(table.shape[:-1]))), prior)
        theirs = peer.estimate_cpd(name, **how)
        order = [theirs.variables.index(n) for n in (*net.parents(name), name)]
        values = theirs.values.transpose(order)
        labels = [theirs.state_names[n] for n in (*net.parents(name), name)]
        places = np.ix_(
            *([own.index(s) for s in net.states(n)] for own, n in zip(labels, (*net.parents(name), name), strict=True))
        )
        close(table, values[places], 1e-12)


def holes(drawn, share, seed):
    rng = np.random.default_rng(seed)
    return {name: np.where(rng.random(len(c)) < share, None, c.astype(object)) for name, c in drawn.items()}


def test_the_likelihood_never_falls():
    net = network("asia")
    rows = holes(net.sample(500, seed=3), 0.3, seed=3)
    found = tacit.estimate(net.learnable(), rows, steps=60, tolerance=0, progress=False)
    assert len(found.history) == 60
    assert (np.diff([*found.history, found.log_likelihood]) >= -1e-9).all()
    close(found.log_likelihood, found.network.log_likelihood(rows).sum(), 1e-8)


def test_em_is_that_of_pyagrum(tmp_path):
    pyagrum = pytest.importorskip("pyagrum")
    pandas = pytest.importorskip("pandas")
    net = network("asia")
    start = net.with_cpts({n: CPT(0.5 * net.table(n) + 0.25, learn=True) for n in net})
    rows = holes(net.sample(300, seed=6), 0.2, seed=6)
    pandas.DataFrame(rows).fillna("?").to_csv(tmp_path / "rows.csv", index=False)
    peer = tacit.to_pyagrum(start)
    learner = pyagrum.BNLearner(str(tmp_path / "rows.csv"), peer, ["?"])
    learner.useEM(1e-30, 0.0)
    learner.EMsetMaxIter(3)
    theirs = learner.learnParameters(peer, False)
    found = tacit.estimate(start, rows, steps=3, tolerance=0, progress=False)
    for name in net:
        order = list(reversed(theirs.cpt(name).names))
        table = np.asarray(theirs.cpt(name)[:]).transpose([order.index(n) for n in (*net.parents(name), name)])
        close(found.network.table(name), table, 1e-9)


def test_a_hidden_variable():
    net = tacit.Network()
    net.add("class", states=2)
    for i in range(5):
        net.add(f"x{i}", ["class"], states=2)
    rng = np.random.default_rng(0)
    kind = rng.random(4000) < 0.4
    rows = {f"x{i}": (rng.random(4000) > np.where(kind, 0.9, 0.2)).astype(int) for i in range(5)}
    found = tacit.estimate(net, rows, restarts=3, progress=False)
    assert found.network.table("class").max() == pytest.approx(0.6, abs=0.03)
    assert (np.diff(found.history) >= -1e-9).all()
    one = tacit.estimate(net, rows, restarts=1, progress=False)
    assert found.log_likelihood >= one.log_likelihood - 1e-9


def test_known_numbers_stay_and_ties_share_counts():
    net = tacit.Network()
    net.add("A", states=3, cpt=[0.5, np.nan, np.nan])
    net.add("B", ["A"], cpt=CPT(np.full((3, 2), 0.5), learn=True, tie="t"))
    net.add("C", ["A"], cpt=CPT(np.full((3, 2), 0.5), learn=True, tie="t"))
    net.add("D", cpt=[0.25, 0.75])
    rows = {"A": [0, 1, 1, 2], "B": ["true", "true", "false", "true"], "C": ["true", "false", "true", "false"],
            "D": ["true"] * 4}  # fmt: skip
    found = tacit.estimate(net, rows, progress=False)
    close(found.network.table("A"), [0.5, 0.5 * 2 / 3, 0.5 / 3])
    close(found.network.table("B"), [[1, 0], [0.5, 0.5], [0.5, 0.5]])
    close(found.network.table("C"), found.network.table("B"))
    close(found.network.table("D"), [0.25, 0.75])
    assert found.parameters == 1 + 3
    assert found.aic == pytest.approx(2 * 4 - 2 * found.log_likelihood)
    assert found.bic == pytest.approx(4 * np.log(4) - 2 * found.log_likelihood)


def test_parent_states_never_seen():
    net = tacit.Network()
    net.add("A", states=3)
    net.add("unset", ["A"])
    net.add("start", ["A"], cpt=CPT([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3]], learn=True))
    rows = {"A": [0, 0], "unset": ["true", "true"], "start": ["false", "false"]}
    found = tacit.estimate(net, rows, progress=False).network
    close(found.table("A"), [1, 0, 0])
    close(found.table("unset"), [[1, 0], [0.5, 0.5], [0.5, 0.5]])
    close(found.table("start"), [[0, 1], [0.8, 0.2], [0.7, 0.3]])


def test_priors():
    net = tacit.Network()
    net.add("A")
    rows = {"A": ["true"] * 3 + ["false"]}
    close(tacit.estimate(net, rows, prior=1.0, progress=False).network.table("A"), [4 / 6, 2 / 6])
    expert = net.with_cpts({"A": [0.1, 0.9]})
    close(tacit.estimate(net, rows, prior=(expert, 20), progress=False).network.table("A"), [5 / 24, 19 / 24])


def test_a_prior_of_another_structure_is_refused():
    net = tacit.Network()
    net.add("A")
    net.add("B", ["A"])
    other = tacit.Network()
    other.add("A", states=["x", "y"], cpt=[0.5, 0.5])
    with pytest.raises(tacit.TacitError, match="no node 'A' with the same states"):
        tacit.estimate(net, {"A": ["true"]}, prior=(other, 1))
    bare = tacit.Network()
    bare.add("A", cpt=[0.5, 0.5])
    bare.add("B", cpt=[0.5, 0.5])
    with pytest.raises(tacit.TacitError, match=r"node 'B' of that network has no table below \['A'\]"):
        tacit.estimate(net, {"A": ["true"]}, prior=(bare, 1))
    with pytest.raises(tacit.TacitError, match="'A' of that network has unset numbers"):
        tacit.estimate(net, {"A": ["true"]}, prior=(net, 1))


def test_a_prior_may_name_the_parents_in_another_order():
    net, expert = tacit.Network(), tacit.Network()
    rule, other = tacit.Network(), tacit.Network()
    for one in (net, expert, rule, other):
        one.add("A", states=2, cpt=[0.5, 0.5])
        one.add("B", states=3, cpt=[0.2, 0.3, 0.5])
    net.add("C", ["A", "B"], 2)
    table = np.random.default_rng(0).dirichlet(np.ones(2), (3, 2))
    expert.add("C", ["B", "A"], 2, table)
    found = tacit.estimate(net, {"A": [0]}, prior=(expert, 10), progress=False).network
    close(found.table("C"), table.transpose(1, 0, 2))
    rule.add("E", ["A", "B"], cpt=NoisyOr({"A": 0.5, "B": 0.5}, 0.5, learn=True))
    other.add("E", ["B", "A"], cpt=NoisyOr({"B": 0.9, "A": 0.1}, 0.2))
    cpt = tacit.estimate(rule, {"A": [0]}, prior=(other, 10), progress=False).network.cpt("E")
    close([cpt.leak, cpt.causes[0][0], cpt.causes[1][0]], [0.2, 0.1, 0.9])


def test_tied_tables_have_the_mean_of_their_experts():
    net = tacit.Network()
    for name in "AB":
        net.add(name, cpt=CPT([0.4, 0.6], learn=True, tie="t"))
    expert = tacit.Network()
    expert.add("A", cpt=[0.5, 0.5])
    expert.add("B", cpt=[0.1, 0.9])
    found = tacit.estimate(net, {"A": ["true"] * 5, "B": ["true"] * 5}, prior=(expert, 10), progress=False)
    close(found.network.table("A"), [13 / 20, 7 / 20])


def selecting(table, plus, minus):
    net = tacit.Network()
    net.add("A", states=["x", "y"], cpt=CPT(table, learn=True))
    net.add("T", ["A"], ["a", "b"], TestingCPT([plus] * 2, [minus] * 2, [0.5, 0.5], learn=True))
    return net


def test_a_testing_network_ends_with_the_best_numbers_it_met():
    """Other tables may lead to other tests that hold, so that the log-likelihood falls, or a row becomes impossible."""
    net = selecting([0.402, 0.598], [0.9, 0.1], [0.7, 0.3])
    rows = {"A": ["x", "y", None, None, None], "T": list("aabba")}
    found = tacit.estimate(net, rows, progress=False)
    close(found.log_likelihood, net.log_likelihood(rows).sum())
    close(found.log_likelihood, found.network.log_likelihood(rows).sum())
    assert found.log_likelihood > tacit.estimate(net, rows, steps=1, tolerance=0, progress=False).log_likelihood
    net = selecting([0.9, 0.1], [0.5, 0.5], [0.5, 0.5])
    rows = {"A": np.array([[np.nan] * 2, [0.05, 0.95], [0, 1], [0, 1], [0, 1]]), "T": list("baaaa")}
    for tolerance in (0, 1e-8):
        found = tacit.estimate(net, rows, tolerance=tolerance, progress=False)
        assert found.converged
        close(found.log_likelihood, net.log_likelihood(rows).sum())


def test_what_no_row_says_anything_about_is_not_random():
    net = tacit.Network()
    net.add("A", states=["x", "y"])
    net.add("B", ["A"], 3)
    net.add("C", ["A"], cpt=CPT([[0.1, 0.9], [0.2, 0.8]], learn=True))
    for gap in ({}, {"B": [None, None], "C": [[np.nan, np.nan]] * 2}):
        found = tacit.estimate(net, {"A": ["x", "y"]} | gap, progress=False)
        close(found.network.table("B"), np.full((2, 3), 1 / 3))
        close(found.network.table("C"), [[0.1, 0.9], [0.2, 0.8]])


@pytest.mark.parametrize("strength", [0.0, 5.0])
def test_the_prior_of_a_noisy_or(strength):
    net = tacit.Network()
    net.add("X", cpt=[0.4, 0.6])
    net.add("E", ["X"], cpt=NoisyOr({"X": 0.7}, leak=0.1))
    start = net.with_cpts({"E": NoisyOr({"X": 0.5}, leak=0.3, learn=True)})
    rows = net.sample(200, seed=5)
    found = tacit.estimate(start, rows, prior=(net, strength), steps=30, tolerance=0, progress=False)
    cpt, counts = found.network.cpt("E"), np.zeros((2, 2))
    for x, e in zip(rows["X"], rows["E"], strict=True):
        counts[int(x == "false"), int(e == "false")] += 1

    def objective(leak, cause):
        log, out = np.log, 1 - (1 - leak) * (1 - cause)
        seen = counts[0] @ log([out, 1 - out]) + counts[1] @ log([leak, 1 - leak])
        return seen + strength * (0.1 * log(leak) + 0.9 * log(1 - leak) + 0.7 * log(cause) + 0.3 * log(1 - cause))

    best = objective(cpt.leak, cpt.causes[0][0])
    for change in (-0.002, 0.002):
        assert objective(cpt.leak + change, cpt.causes[0][0]) < best
        assert objective(cpt.leak, cpt.causes[0][0] + change) < best


def test_weights_count_as_rows():
    net = tacit.Network()
    net.add("A")
    net.add("B", ["A"])
    rows = {"A": ["true", "false", "true"], "B": ["true", "true", None]}
    twice = {name: [column[i] for i in (0, 0, 1, 2, 2, 2)] for name, column in rows.items()}
    one = tacit.estimate(net, rows, weights=[2, 1, 3], progress=False)
    other = tacit.estimate(net, twice, progress=False)
    for name in net:
        close(one.network.table(name), other.network.table(name), 1e-9)
    assert one.log_likelihood == pytest.approx(other.log_likelihood)
    assert one.rows == other.rows == 6


def test_a_noisy_or():
    net = tacit.Network()
    for name in "XYZ":
        net.add(name, cpt=[0.4, 0.6])
    net.add("E", ["X", "Y", "Z"], cpt=NoisyOr({"X": 0.7, "Y": 0.3, "Z": 0.5}, leak=0.1))
    rows = net.sample(20_000, seed=4)
    start = net.with_cpts({"E": NoisyOr({"X": 0.5, "Y": 0.5, "Z": 0.4}, leak=0.3, learn=True)})
    found = tacit.estimate(start, rows, tolerance=1e-12, progress=False)
    cpt = found.network.cpt("E")
    close([cpt.causes[0][0], cpt.causes[1][0], cpt.causes[2][0], cpt.leak], [0.7, 0.3, 0.5, 0.1], 0.02)
    assert [cause[1] for cause in cpt.causes] == [0, 0, 0]
    assert (np.diff(found.history) >= -1e-7).all()
    assert found.network.log_likelihood(rows).sum() > net.log_likelihood(rows).sum()


def test_what_cannot_be_estimated():
    with pytest.raises(tacit.TacitError, match=r"net\.learnable\(\)"):
        tacit.estimate(tacit.examples.kidney_stones(), {})
    unset = tacit.Network()
    unset.add("A")
    unset.add("T", ["A"], testing=True)
    with pytest.raises(tacit.TacitError, match="'T': thresholds are unset"):
        tacit.estimate(unset, {"A": ["true"]})
    net = tacit.Network()
    net.add("A", cpt=CPT([1.0, 0.0], learn=True))
    net.add("B", ["A"])
    with pytest.raises(tacit.EvidenceError, match="row 1: the evidence has probability 0"):
        tacit.estimate(net, {"A": ["true", "false"], "B": [None, None]}, progress=False)
    for name, value in (("prior", -1), ("steps", 0), ("tolerance", -1), ("restarts", 0)):
        with pytest.raises(tacit.TacitError, match=name):
            tacit.estimate(net, {"A": ["true"]}, **{name: value})


def test_estimating_loads_no_optimizers():
    script = (
        "import sys, tacit\ntacit.estimate\nassert not {'scipy.optimize', 'tacit.learn.placing'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
    assert set(tacit.learn.__all__) <= set(dir(tacit.learn))
    with pytest.raises(AttributeError, match="no attribute 'guess'"):
        _ = tacit.learn.guess
