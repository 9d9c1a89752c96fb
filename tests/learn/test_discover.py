"""Structures from rows: scores by their definitions, searches against exhaustive ones, and what must not matter."""

import itertools
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tacit
from tacit.learn.discovering.coded_table import coded_table
from tacit.learn.discovering.constraints import constraints
from tacit.learn.discovering.equivalence import directed_edges
from tacit.learn.discovering.family_scores import SCORES, FamilyScores


def frame_of(seed: int, columns: int, rows: int) -> pd.DataFrame:
    """Random rows in which columns depend on earlier ones."""
    rng = np.random.default_rng(seed)
    codes: list[np.ndarray] = []
    for i in range(columns):
        card = rng.integers(2, 4)
        index = np.zeros(rows, int)
        for p in rng.permutation(i)[: rng.integers(0, 3)]:
            index = index * 3 + codes[p]
        table = rng.dirichlet(np.full(card, 0.5), size=index.max() + 1)
        codes.append((rng.random((rows, 1)) > table[index].cumsum(axis=1)[:, :-1]).sum(axis=1))
    return pd.DataFrame({f"x{i}": np.array(list("abc"))[one] for i, one in enumerate(codes)})


def definition(frame: pd.DataFrame, edges: list[tuple[str, str]], score: str, weights: np.ndarray) -> float:
    """A score from its textbook formula, family by family, with counts from dictionaries."""
    total, n = 0.0, weights.sum()
    for name in frame:
        parents = [a for a, b in edges if b == name]
        card = frame[name].nunique()
        configurations = math.prod(frame[p].nunique() for p in parents)
        counts: dict[tuple, dict[str, float]] = {}
        for row, w in zip(frame.itertuples(index=False), weights, strict=True):
            of_row = row._asdict()
            own = counts.setdefault(tuple(of_row[p] for p in parents), {})
            own[of_row[name]] = own.get(of_row[name], 0.0) + w
        prior = 1.0 if score == "k2" else 1 / (configurations * card)
        for own in counts.values():
            seen = sum(own.values())
            if score in ("bic", "aic"):
                total += sum(c * math.log(c / seen) for c in own.values() if c > 0)
            else:
                total += math.lgamma(prior * card) - math.lgamma(prior * card + seen)
                total += sum(math.lgamma(prior + c) - math.lgamma(prior) for c in own.values())
        total -= {"bic": math.log(n) / 2, "aic": 1.0}.get(score, 0.0) * (card - 1) * configurations
    return total


def graphs(names: list[str]) -> list[list[tuple[str, str]]]:
    """All acyclic graphs."""
    every = []
    for kinds in itertools.product((0, 1, 2), repeat=len(pairs := list(itertools.combinations(names, 2)))):
        edges = [pair if kind == 1 else pair[::-1] for pair, kind in zip(pairs, kinds, strict=True) if kind]
        try:
            tacit.Network.from_edges(edges, nodes=names)
        except tacit.TacitError:
            continue
        every.append(edges)
    return every


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("weighted", [None, "whole", "fractions"])
def test_score_is_its_definition(score: str, weighted: str | None) -> None:
    frame = frame_of(1, 5, 200)
    weights = {None: np.ones(200), "whole": np.arange(200) % 4, "fractions": np.linspace(0.25, 3, 200)}[weighted]
    frame = frame[weights > 0].reset_index(drop=True)
    weights = weights[weights > 0].astype(float)
    discovery = tacit.discover(frame, score=score, weights=None if weighted is None else weights)
    assert discovery.network.edges
    expected = definition(frame, list(discovery.network.edges), score, weights)
    assert discovery.score == pytest.approx(expected, rel=1e-9)


@given(seed=st.integers(0, 10**6), score=st.sampled_from(SCORES))
@settings(max_examples=15, deadline=None)
def test_any_family_scores_as_defined(seed: int, score: str) -> None:
    rng = np.random.default_rng(seed)
    frame = frame_of(seed, 5, int(rng.integers(2, 60)))
    table = coded_table(frame)
    scores = FamilyScores(table, score)
    order = rng.permutation(5)
    parents = [[int(p) for p in order[:i] if rng.random() < 0.6] for i in range(5)]
    edges = [(table.names[p], table.names[c]) for c, own in zip(order, parents, strict=True) for p in own]
    by_child = {int(c): own for c, own in zip(order, parents, strict=True)}
    ours = scores.graph([by_child[c] for c in range(5)])
    assert ours == pytest.approx(definition(frame, edges, score, np.ones(len(frame))), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_exact_is_the_best_of_all_graphs(seed: int) -> None:
    frame = frame_of(seed, 4, 80)
    best = max(definition(frame, edges, "bic", np.ones(80)) for edges in graphs(list(frame)))
    assert tacit.discover(frame, search="exact").score == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("search", ["tabu", "orders", "tree"])
def test_other_searches_are_no_better_than_exact(search: str) -> None:
    frame = frame_of(5, 9, 300)
    exact = tacit.discover(frame, search="exact").score
    score = tacit.discover(frame, search=search).score
    assert score <= exact + 1e-6
    if search != "tree":
        assert score == pytest.approx(exact, rel=1e-3)


def test_tree_is_the_best_forest() -> None:
    frame = frame_of(7, 4, 100)
    forests = [edges for edges in graphs(list(frame)) if len({b for _, b in edges}) == len(edges)]
    best = max(definition(frame, edges, "bic", np.ones(100)) for edges in forests)
    assert tacit.discover(frame, search="tree").score == pytest.approx(best, rel=1e-12)


def test_orders_of_columns_and_rows_do_not_matter() -> None:
    rows = pd.DataFrame(tacit.examples.kidney_stones().sample(400, seed=3))
    frame = pd.concat([frame_of(11, 6, 400), rows.reset_index(drop=True)], axis=1)
    first = tacit.discover(frame)
    rng = np.random.default_rng(0)
    for _ in range(5):
        mixed = frame.iloc[rng.permutation(len(frame)), rng.permutation(frame.shape[1])]
        again = tacit.discover(mixed)
        assert (again.score, again.arrows) == (first.score, first.arrows)


def test_end_scores_of_tabu_in_bnlearn_are_reached() -> None:
    folder = Path(__file__).parents[3] / "shared" / "discovery"
    if not folder.is_dir():
        pytest.skip("the tables are not here")
    scores = pd.read_json(folder / "scores.json").T
    for name, end in scores["tabu"].items():
        frame = pd.read_csv(folder / f"{name}.csv", dtype=str, keep_default_na=False)
        assert tacit.discover(frame).score >= end - 0.01, name  # which are rounded


@given(seed=st.integers(0, 10**6), search=st.sampled_from(["tabu", "orders"]))
@settings(max_examples=15, deadline=None)
def test_constraints_hold(seed: int, search: str) -> None:
    rng = np.random.default_rng(seed)
    frame = frame_of(seed, 6, 60)
    names = list(rng.permutation(list(frame)))
    tiers = [names[:2], names[2:4]]
    earlier, later = names[:2], names[2:4]
    require = [(names[0], names[2]), (names[4], names[1])]
    forbid = [(names[1], names[5]), (names[5], names[1])]
    discovery = tacit.discover(
        frame, search=search, tiers=tiers, require=require, forbid=forbid, max_parents=2, progress=False
    )
    edges = set(discovery.network.edges)
    assert edges >= set(require)
    assert not edges & set(forbid)
    assert not edges & set(itertools.product(later, earlier))
    assert all(len(discovery.network.parents(name)) <= 2 for name in frame)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"require": [("x0", "x1")], "forbid": [("x0", "x1")]}, "'x0' -> 'x1' is both required and forbidden"),
        ({"require": [("x1", "x0")], "tiers": [["x0"], ["x1"]]}, "tiers= has 'x0' before 'x1'"),
        ({"require": [("x0", "x1"), ("x1", "x2"), ("x2", "x0")]}, "form a cycle"),
        ({"require": [("x0", "y1")]}, "require names 'y1', which is no column"),
        ({"forbid": ["x0"]}, "expected pairs"),
        ({"tiers": [["x0"], ["x0"]]}, "names 'x0' twice"),
        ({"search": "hc"}, "search is 'hc', expected one of 'tabu'"),
        ({"score": "mdl"}, "score is 'mdl', expected one of 'bic'"),
        ({"start": [("x0", "x1"), ("x1", "x0")]}, "cycle"),
        ({"weights": "w"}, "no column 'w' of weights"),
        ({"max_parents": 0}, "max_parents is 0"),
    ],
)
def test_wrong_options_are_named(options: dict, message: str) -> None:
    with pytest.raises(tacit.TacitError, match=message):
        tacit.discover(frame_of(1, 3, 30), **options)


def test_gaps_are_named() -> None:
    frame = frame_of(1, 3, 30)
    frame.loc[3, "x1"] = None
    with pytest.raises(tacit.EvidenceError, match="values are missing in x1"):
        tacit.discover(frame)


def test_arrows_are_those_of_all_equivalent_graphs() -> None:
    """An edge is directed if no graph with the same skeleton and colliders has it the other way round."""
    names = list("abcd")
    place = {name: i for i, name in enumerate(names)}

    def kind(edges: list[tuple[str, str]]) -> tuple[frozenset, frozenset]:
        skeleton = frozenset(frozenset(edge) for edge in edges)
        pairs = [(a, c, b) for (a, b), (c, d) in itertools.permutations(edges, 2) if b == d and a < c]
        return skeleton, frozenset(one for one in pairs if frozenset(one[:2]) not in skeleton)

    classes: dict[tuple, list] = {}
    for edges in graphs(names):
        classes.setdefault(kind(edges), []).append(set(edges))
    for members in classes.values():
        common = set.intersection(*members)
        for edges in members:
            mask = np.zeros((4, 4), dtype=bool)
            for a, b in edges:
                mask[place[a], place[b]] = True
            assert {(names[a], names[b]) for a, b in np.argwhere(directed_edges(mask))} == common


def test_strength_is_a_share_of_samples() -> None:
    net = tacit.examples.diamond()
    frame = pd.DataFrame(net.sample(2000, seed=0))
    discovery = tacit.discover(frame, bootstrap=10, seed=1)
    assert discovery.strength is not None
    assert all(0 < share <= 1 for share in discovery.strength.values())
    assert max(discovery.strength.values()) >= 0.9
    assert discovery.strength == tacit.discover(frame, bootstrap=10, seed=1).strength
    assert tacit.discover(frame).strength is None


def test_max_cost_keeps_queries_cheap() -> None:
    frame = frame_of(13, 8, 3000)
    free = tacit.discover(frame, score="aic", progress=False)
    names = list(frame)

    def cost(net: tacit.Network) -> float:
        return tacit.compile(net, None, evidence=names, effort="low").cost().multiply_adds

    limit = 0.5 * cost(free.network)
    cheap = tacit.discover(frame, score="aic", max_cost=limit)
    assert cost(cheap.network) <= 1.01 * limit  # the order of the nodes may differ
    assert cheap.score <= free.score


def test_start_is_where_the_search_begins() -> None:
    frame = frame_of(2, 5, 100)
    first = tacit.discover(frame, search="exact")
    again = tacit.discover(frame, start=first.network)
    assert again.score == pytest.approx(first.score, rel=1e-12)


def test_tables_leave_nothing_impossible() -> None:
    frame = frame_of(2, 5, 50)
    net = tacit.discover(frame).network
    assert all((net.table(name) > 0).all() for name in net)
    assert np.isfinite(net.log_likelihood(frame)).all()


def test_constraints_of_no_kind_allow_all_but_loops() -> None:
    free = constraints(["a", "b"])
    assert free.allowed.tolist() == [[False, True], [True, False]]
    assert not free.required.any()


def test_it_shows_itself() -> None:
    discovery = tacit.discover(frame_of(2, 5, 100))
    assert "Discovery(" in repr(discovery)
    assert "5 variables" in repr(discovery)
    assert "score" in discovery._repr_html_()


def test_doubtful_edges_look_doubtful(tmp_path: Path) -> None:
    discovery = tacit.discover(frame_of(11, 6, 60), bootstrap=8)
    shares = discovery.strength or {}
    assert any(shares.get(edge, 0.0) < 1 for edge in discovery.network.edges)
    sure = tacit.discover(frame_of(11, 6, 60))
    assert "strength 1" in discovery.plot(width=10).svg
    assert "strength 1" not in sure.plot(width=10).svg
    discovery.page(tmp_path / "doubtful.html", query=discovery.network.variables[0])
    assert '"text":"strength 1"' in (tmp_path / "doubtful.html").read_text(encoding="utf-8")
    sure.page(tmp_path / "sure.html")
    assert '"text":"strength 1"' not in (tmp_path / "sure.html").read_text(encoding="utf-8")
