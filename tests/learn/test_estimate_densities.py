"""Densities from rows: closed forms, EM beside other people's software, gaps, ties, priors and the floor."""

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit import CPT, Gaussian, LogNormal, Poisson, semantics
from tacit.learn.estimating.moments import weighted
from tests.helpers import close

NAN = float("nan")


def numbers(seed=0, rows=300):
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, rows)
    x, y = rng.normal(3.0 * kind, 1.0 + kind), rng.normal(1e6 - 2.0 * kind, 0.5)
    return kind, x, y


def classes(*leaves, states=3, prior=None):
    net = tacit.Network()
    net.add("Kind", states=states, cpt=prior)
    for name, density in leaves:
        net.add(name, ["Kind"], cpt=density)
    return net


def estimate(net, rows, **options):
    return tacit.estimate(net, rows, progress=False, **options)


def test_moments_keep_their_digits_far_from_the_other_numbers():
    values = np.array([[-1e5, 1e5, 3.0, 3.0 + 2**-10, 3.0 - 2**-10]])
    weights = np.array([[0.5, 0.25, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.5, 0.5], [0.0] * 5])
    moments = weighted(values, weights)
    assert moments.weight.tolist() == [0.75, 2.0, 0.0]
    np.testing.assert_allclose(moments.mean[:2, 0], [-1e5 / 3, 3.0], rtol=1e-14)
    scatter = [0.5 * (2e5 / 3) ** 2 + 0.25 * (4e5 / 3) ** 2, 2.0**-20]
    np.testing.assert_allclose(moments.scatter[:2, 0, 0], scatter, rtol=1e-13)


def test_complete_rows_give_the_numbers_of_gaussian_naive_bayes():
    from sklearn.naive_bayes import GaussianNB

    kind, x, y = numbers()
    found = estimate(classes(("x", Gaussian()), ("y", Gaussian())), {"Kind": kind, "x": x, "y": y})
    theirs = GaussianNB(var_smoothing=0.0).fit(np.stack([x, y], axis=1), kind)
    for column, name in enumerate(("x", "y")):
        density = found.network.density(name)
        close(density.mean, theirs.theta_[:, column], 1e-9)
        np.testing.assert_allclose(density.sd**2, theirs.var_[:, column], rtol=1e-9)
    close(found.network.table("Kind"), theirs.class_prior_, 1e-12)
    assert (found.parameters, found.converged) == (2 + 12, True)
    close(found.log_likelihood, found.network.log_likelihood({"Kind": kind, "x": x, "y": y}).sum(), 1e-6)


def test_complete_rows_of_other_densities():
    rng = np.random.default_rng(1)
    kind, weights = rng.integers(0, 3, 200), rng.integers(0, 4, 200).astype(float)
    rows = {
        "Kind": kind,
        "k": rng.poisson(1.0 + kind),
        "l": np.exp(rng.normal(kind, 0.5)),
        "u": rng.normal(0, 2, 200),
        "v": rng.normal(0, 2, 200),
    }
    net = classes(("k", Poisson()), ("l", LogNormal()), (("u", "v"), Gaussian(cov=np.full((2, 2), NAN))))
    found = estimate(net, rows, weights=weights)
    for i in range(3):
        own = kind == i
        w = weights[own] / weights[own].sum()
        logs, pair = np.log(rows["l"][own]), np.stack([rows["u"][own], rows["v"][own]])
        close(found.network.density("k").rate[i], w @ rows["k"][own], 1e-12)
        close(found.network.density("l").mean[i], w @ logs, 1e-12)
        close(found.network.density("l").sd[i], np.sqrt(w @ (logs - w @ logs) ** 2), 1e-12)
        close(found.network.density("u, v").mean[i], pair @ w, 1e-12)
        close(found.network.density("u, v").cov[i], np.cov(pair, aweights=w, ddof=0), 1e-12)
    close(found.log_likelihood, weights @ found.network.log_likelihood(rows), 1e-9)


def mixtures():
    from sklearn.mixture import GaussianMixture

    _, x, y = numbers(2)
    points = np.stack([x, y - 1e6], axis=1)
    weights, means = np.array([0.3, 0.3, 0.4]), points[[0, 1, 2]]
    for kind, precisions in (("diag", np.full((3, 2), 0.25)), ("full", np.stack([0.25 * np.eye(2)] * 3))):
        yield GaussianMixture(
            3, covariance_type=kind, reg_covar=0.0, tol=0.0, max_iter=12, weights_init=weights, means_init=means,
            precisions_init=precisions,
        ), points  # fmt: skip


@pytest.mark.filterwarnings("ignore:Best performing initialization did not converge")
def test_em_is_that_of_gaussian_mixtures():
    for theirs, points in mixtures():
        theirs.fit(points)
        mean, full = theirs.means_init, theirs.covariance_type == "full"
        if full:
            leaves = [(("x", "y"), Gaussian(mean, cov=4 * np.eye(2), learn=True))]
        else:
            leaves = [(name, Gaussian(mean[:, i], sd=2.0, learn=True)) for i, name in enumerate("xy")]
        net = classes(*leaves, prior=CPT(theirs.weights_init, learn=True))
        found = estimate(net, {"x": points[:, 0], "y": points[:, 1]}, steps=12, tolerance=0)
        densities = [found.network.density(name) for name in found.network.continuous]
        means = np.concatenate([density.means() for density in densities], axis=1)
        covs = densities[0].cov if full else np.concatenate([density.variances() for density in densities], axis=1)
        close(means, theirs.means_, 1e-9)
        close(covs, theirs.covariances_, 1e-9)
        close(found.network.table("Kind"), theirs.weights_, 1e-9)
        close(found.history[1:], np.array(theirs.lower_bounds_)[1:] * len(points), 1e-7)
        assert (np.diff(found.history) > 0).all()


def hidden_markov_model(states, rng):
    template = tacit.Network()
    emission = Gaussian(rng.normal(0, 3, states), rng.uniform(1, 2, states), learn=True, tie="x")
    template.add("Z[0]", states=states, cpt=CPT(rng.dirichlet(np.ones(states)), learn=True))
    template.add("x[0]", ["Z[0]"], cpt=emission)
    template.add("Z[1]", ["Z[0]"], states, CPT(rng.dirichlet(np.ones(states), states), learn=True))
    template.add("x[1]", ["Z[1]"], cpt=emission)
    return template


def test_em_is_that_of_hmmlearn():
    hmm = pytest.importorskip("hmmlearn.hmm")
    rng = np.random.default_rng(3)
    net = tacit.unroll(hidden_markov_model(3, rng), 6)
    values = rng.normal(rng.choice([-3.0, 0.0, 4.0], (40, 6)), 1.0)
    theirs = hmm.GaussianHMM(
        3, "diag", min_covar=0.0, n_iter=5, tol=-np.inf, init_params="", implementation="scaling", covars_weight=0.0,
        covars_prior=0.0, means_weight=0.0,
    )  # fmt: skip
    theirs.startprob_, theirs.transmat_ = net.table("Z[0]"), net.table("Z[1]")
    theirs.means_, theirs.covars_ = net.density("x[0]").means(), net.density("x[0]").variances()
    theirs.fit(values.reshape(-1, 1), [6] * 40)
    found = estimate(net, {f"x[{t}]": own for t, own in enumerate(values.T)}, steps=5, tolerance=0)
    close(found.network.table("Z[1]"), theirs.transmat_, 1e-9)
    close(found.network.density("x[3]").means(), theirs.means_, 1e-9)
    close(found.network.density("x[3]").variances()[:, 0], theirs.covars_[:, 0, 0], 1e-9)
    close(found.history, theirs.monitor_.history, 1e-8)


def test_one_iteration_with_gaps_is_that_of_the_definition():
    """Also of several columns, of which a row may lack one, ties over steps, and parents that are sometimes known."""
    rng = np.random.default_rng(4)
    template = tacit.Network()
    cov = np.array([[2.0, 0.7], [0.7, 1.0]])
    pair = Gaussian(rng.normal(0, 2, (2, 3, 2)), cov=cov, learn=True, tie="pair")
    template.add("Place", states=2, cpt=CPT([0.4, 0.6], learn=True))
    template.add("Z[0]", states=3, cpt=CPT([0.2, 0.3, 0.5], learn=True))
    template.add(("x[0]", "y[0]"), ["Place", "Z[0]"], cpt=pair)
    template.add("Z[1]", ["Z[0]"], 3, CPT(rng.dirichlet(np.ones(3), 3), learn=True))
    template.add(("x[1]", "y[1]"), ["Place", "Z[1]"], cpt=pair)
    net = tacit.unroll(template, 3)
    rows = {f"{name}[{t}]": rng.normal(0, 2, 12) for name in "xy" for t in range(3)}
    for column in rows.values():
        column[rng.random(12) < 0.4] = NAN
    rows["Place"] = rng.choice(["0", "1", ""], 12)
    rows["Place"] = [None if place == "" else int(place) for place in rows["Place"]]
    weight, first, second = np.zeros(6), np.zeros((6, 2)), np.zeros((6, 2, 2))
    old = net.density("x[0], y[0]")
    for t in range(3):
        shares = semantics.posterior(net, ("Place", f"Z[{t}]"), rows).reshape(12, 6)
        values = np.stack([rows[f"x[{t}]"], rows[f"y[{t}]"]], axis=1)
        for row, c in np.ndindex(12, 6):
            seen = ~np.isnan(values[row])
            if not seen.any():
                continue
            whole, mean, extra = values[row].copy(), old.flat("mean")[c], np.zeros((2, 2))
            for gap in np.flatnonzero(~seen):  # the other one is known
                whole[gap] = mean[gap] + cov[0, 1] / cov[1 - gap, 1 - gap] * (whole[1 - gap] - mean[1 - gap])
                extra[gap, gap] = cov[gap, gap] - cov[0, 1] ** 2 / cov[1 - gap, 1 - gap]
            weight[c] += shares[row, c]
            first[c] += shares[row, c] * whole
            second[c] += shares[row, c] * (np.outer(whole, whole) + extra)
    mean = first / weight[:, None]
    found = estimate(net, rows, steps=1, tolerance=0)
    new = found.network.density("x[2], y[2]")
    close(new.flat("mean"), mean, 1e-10)
    close(new.flat("cov"), second / weight[:, None, None] - mean[:, :, None] * mean[:, None], 1e-10)
    close(found.history[0], np.log(semantics.joint(net, (), rows)).sum(), 1e-10)
    later = estimate(net, rows, steps=5, tolerance=0)
    assert (np.diff([*later.history, later.log_likelihood]) > 0).all()


@pytest.mark.filterwarnings("ignore::tacit.CollapsedDensityWarning")
def test_densities_that_underflow_count_as_much_as_others():
    """Two numbers contradict each other by more than floats hold."""
    net = classes(
        ("x", Gaussian([0.0, 60.0], 1.0, learn=True)), ("y", Gaussian([0.0, 60.0], 1.0)), states=2, prior=[0.5, 0.5]
    )
    first = 1 / (1 + np.exp(60.01**2 / 2 - 0.01**2 / 2 - 60**2 / 2))
    found = estimate(net, {"x": [0.0, 1.0], "y": [60.01, 2.0]}, steps=1, tolerance=0).network.density("x")
    close(found.mean, [1 / (first + 1), 0.0], 1e-12)


def test_a_hidden_class_is_found_again_from_random_rows():
    kind, x, y = numbers(5)
    found = estimate(classes(("x", Gaussian()), ("y", Gaussian())), {"x": x, "y": y}, restarts=3)
    truth = estimate(classes(("x", Gaussian()), ("y", Gaussian())), {"Kind": kind, "x": x, "y": y}).network
    assert found.log_likelihood > truth.log_likelihood({"x": x, "y": y}).sum()
    close(np.sort(found.network.density("y").mean), np.sort(truth.density("y").mean), 0.3)


def test_given_numbers_stay():
    kind, x, y = numbers()
    net = classes(("x", Gaussian([0.0, NAN, 5.0], [NAN, 2.0, NAN])), ("y", Gaussian(1e6, 1.0)))
    density = estimate(net, {"Kind": kind, "x": x, "y": y}).network.density("x")
    means = [0.0, x[kind == 1].mean(), 5.0]
    around = [np.sqrt(((x[kind == i] - means[i]) ** 2).mean()) for i in range(3)]
    close(density.mean, means, 1e-12)
    close(density.sd, [around[0], 2.0, around[2]], 1e-12)


def test_a_component_that_no_row_reaches():
    kind, x, _ = numbers()
    rows = {"Kind": np.minimum(kind, 1), "x": x}
    unset = estimate(classes(("x", Gaussian())), rows).network.density("x")
    close([unset.mean[2], unset.sd[2]], [x.mean(), x.std()], 1e-12)
    given = estimate(classes(("x", Gaussian([7.0, 8.0, 9.0], 4.0, learn=True))), rows).network.density("x")
    assert (given.mean[2], given.sd[2]) == (9.0, 4.0)


def test_a_prior_counts_as_rows_like_the_whole_column():
    kind, x, _ = numbers()
    density = estimate(classes(("x", Gaussian())), {"Kind": kind, "x": x}, prior=5.0).network.density("x")
    own = x[kind == 1]
    mean = (own.sum() + 5 * x.mean()) / (len(own) + 5)
    variance = (((own - mean) ** 2).sum() + 5 * (x.var() + (x.mean() - mean) ** 2)) / (len(own) + 5)
    close([density.mean[1], density.sd[1]], [mean, np.sqrt(variance)], 1e-12)
    centre = classes(("x", Gaussian([1.0, 2.0, 3.0], 1.0)), prior=[0.2, 0.3, 0.5])
    towards = estimate(classes(("x", Gaussian())), {"Kind": kind, "x": x}, prior=(centre, 1e9)).network.density("x")
    close(towards.mean, [1.0, 2.0, 3.0], 1e-5)
    close(towards.sd, [1.0, 1.0, 1.0], 1e-5)


def test_a_variance_that_falls_to_nothing_is_raised():
    kind, x, _ = numbers()
    x[kind == 2] = 4.5
    with pytest.warns(tacit.CollapsedDensityWarning, match=r"node 'x', Kind=2: sd fell to almost 0.*prior="):
        found = estimate(classes(("x", Gaussian())), {"Kind": kind, "x": x})
    close(found.network.density("x").sd[2], np.sqrt(1e-9) * x.std(), 1e-12)
    same = np.stack([x, x], axis=1)
    net = classes((("u", "v"), Gaussian(cov=np.full((2, 2), NAN))))
    with pytest.warns(tacit.CollapsedDensityWarning, match=r"node 'u, v', Kind=0 \(and 2 more\): cov"):
        estimate(net, {"Kind": kind, "u": same[:, 0], "v": same[:, 1]})


def test_what_cannot_be_estimated():
    net = classes(("x", Gaussian()))
    with pytest.raises(tacit.EvidenceError, match=r"'x' has the same number \(2\) in all rows.*give the sd"):
        estimate(net, {"Kind": [0, 1, 2], "x": [2.0, 2.0, 2.0]})
    with pytest.raises(tacit.EvidenceError, match=r"node 'x': no row has a number of it"):
        estimate(net, {"Kind": [0, 1, 2]})
    with pytest.raises(tacit.EvidenceError, match=r"'k'.*-1 is not a whole number"):
        estimate(classes(("k", Poisson())), {"Kind": [0, 1, 2], "k": [1, -1, 3]})
    half = Gaussian(np.full((3, 2), NAN), cov=np.array([[[1.0, NAN], [NAN, NAN]]] * 3))
    with pytest.raises(tacit.NetworkError, match=r"cov has some numbers and some gaps"):
        estimate(classes((("u", "v"), half)), {"Kind": [0, 1, 2], "u": [1.0, 2, 3], "v": [1.0, 2, 3]})


def test_a_density_given_as_a_function_stays():
    net = classes(("x", Gaussian()), ("f", tacit.Density(lambda f: -np.abs(f[:, None] - np.arange(3)) - np.log(2))))
    kind, x, y = numbers()
    rows = {"Kind": kind, "x": x, "f": y - 1e6}
    for known in (rows, {"x": x, "f": y - 1e6}):
        found = estimate(net.learnable(), known, steps=3)
        close(found.log_likelihood, found.network.log_likelihood(known).sum(), 1e-9)


def test_batches_give_what_one_table_gives():
    kind, x, y = numbers()
    rows = {"Kind": kind.astype(float), "x": x, "y": y}
    rows["Kind"][::3] = NAN
    net = classes(("x", Gaussian()), ("y", Gaussian()))
    whole = estimate(net, rows, steps=4, tolerance=0)
    parts = [{name: column[i : i + 100] for name, column in rows.items()} for i in range(0, 300, 100)]
    batches = estimate(net, iter(parts), steps=4, tolerance=0)
    close(batches.network.density("x").mean, whole.network.density("x").mean, 1e-12)
    close(batches.log_likelihood, whole.log_likelihood, 1e-8)


def test_files_and_frames_give_what_columns_give(tmp_path):
    """Counts of nothing but 0 and 1 are numbers, too; each column of several may have gaps of its own."""
    rng = np.random.default_rng(6)
    kind = rng.integers(0, 2, 60)
    frame = pd.DataFrame({"Kind": kind, "k": rng.integers(0, 2, 60), "u": rng.normal(kind), "v": rng.normal(kind)})
    frame.loc[::5, "u"] = NAN
    net = classes(("k", Poisson()), (("u", "v"), Gaussian(cov=np.full((2, 2), NAN))), states=2)
    columns = estimate(net, {name: frame[name].to_numpy() for name in frame}, steps=3)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    for rows in (frame, tmp_path / "rows.csv"):
        assert estimate(net, rows, steps=3).network == columns.network
