"""Tables that other networks write: the same answers, and gradients by every entry."""

import numpy as np
import pytest

import tacit
from tacit import EvidenceError, TacitError, semantics
from tests.helpers import close

torch = pytest.importorskip("torch")

from tacit.torch import TACModule  # noqa: E402

ENGINES = ["auto", "numpy", "tape", "native", "torch"]
ROWS = 4


def network(gamma=None):
    """P -> T -> (V tested, U), both -> W; T's numbers are unknown."""
    rng, net = np.random.default_rng(0), tacit.Network()

    def table(*shape):
        return rng.dirichlet(np.ones(shape[-1]), shape[:-1])

    net.add("P", states=["p", "q"], cpt=[0.4, 0.6])
    net.add("T", ["P"], states=["a", "b", "c"])
    net.add("V", ["T"], cpt=tacit.TestingCPT(table(3, 2), table(3, 2), [0.3, 0.4, 0.2], gamma=gamma))
    net.add("U", ["T", "P"], cpt=table(3, 2, 2))
    net.add("W", ["V", "U"], cpt=table(2, 2, 2))
    return net


RNG = np.random.default_rng(1)
TABLES = torch.tensor(RNG.dirichlet(np.ones(3), (ROWS, 2)))
ROOTS = torch.tensor(RNG.dirichlet(np.ones(2), ROWS))
COLUMNS = {"U": torch.tensor(RNG.random(ROWS)), "W": torch.tensor([[0.3, 0.7]])}


def module(gamma=None, engine="auto", **options):
    tac = tacit.compile(network(gamma), "P", ["U", "W"], engine=engine, **options)
    return TACModule(tac, tables=["T", "P"])


def by_definition(gamma, tables, roots):
    """The posterior of each row of its own network."""
    rows = []
    for i in range(ROWS):
        cpts = {"T": tacit.CPT(tables[i].numpy()), "P": tacit.CPT(roots[i].numpy())}
        evidence = {"U": COLUMNS["U"][i : i + 1].numpy(), "W": COLUMNS["W"].numpy()}
        rows.append(semantics.posterior(network(gamma).with_cpts(cpts), "P", evidence)[0])
    return np.stack(rows)


@pytest.mark.parametrize("gamma", [None, 7.0])
@pytest.mark.parametrize("engine", ENGINES)
def test_answers_and_gradients(engine, gamma):
    """A step is a move of probability from one state to another, which leaves every row a distribution."""
    own = module(gamma, engine)
    tables, roots = TABLES.clone().requires_grad_(), ROOTS.clone().requires_grad_()
    found = own(COLUMNS | {"T.table": tables, "P.table": roots})
    close(found.detach(), by_definition(gamma, TABLES, ROOTS))
    by_table, by_root = torch.autograd.grad(found[:, 0].sum(), [tables, roots])
    h = 1e-5
    for p in range(2):
        for k in (1, 2):
            move = torch.zeros_like(TABLES)
            move[:, p, 0], move[:, p, k] = h, -h
            up, down = (by_definition(gamma, TABLES + sign * move, ROOTS)[:, 0] for sign in (1, -1))
            close(by_table[:, p, 0] - by_table[:, p, k], (up - down) / (2 * h), 1e-8)
    move = torch.tensor([h, -h], dtype=torch.float64)
    up, down = (by_definition(gamma, TABLES, ROOTS + sign * move)[:, 0] for sign in (1, -1))
    close(by_root[:, 0] - by_root[:, 1], (up - down) / (2 * h), 1e-8)


@pytest.mark.parametrize("engine", ["auto", "torch"])
def test_log_probabilities(engine):
    own, tables = module(7.0, engine), TABLES.clone().requires_grad_()
    tables.data[0, 0] = torch.tensor([0.0, 0.25, 0.75])
    logs = tables.detach().log().requires_grad_()
    by_table, by_log = (
        torch.autograd.grad(own(COLUMNS | {column: leaf, "P.table": ROOTS})[:, 0].sum(), leaf)[0]
        for column, leaf in (("T.table", tables), ("T.log_table", logs))
    )
    close(by_log, by_table * tables.detach())


@pytest.mark.parametrize("engine", ["auto", "torch"])
def test_second_derivatives(engine):
    own, scores = module(7.0, engine), torch.tensor(RNG.normal(size=(ROWS, 2, 3)), requires_grad=True)

    def run(given):
        return own(COLUMNS | {"T.log_table": given.log_softmax(dim=-1), "P.table": ROOTS})

    assert torch.autograd.gradgradcheck(run, [scores], fast_mode=True)


def test_float32():
    expected = module()(COLUMNS | {"T.table": TABLES, "P.table": ROOTS})
    scores = (100 + TABLES.log()).float()  # whose logarithms of sums round in the sixth digit
    given = {"T.log_table": scores.log_softmax(dim=-1), "P.table": ROOTS.float()}
    close(module().float()(COLUMNS | given), expected, 1e-5)


@pytest.mark.parametrize("engine", ["auto", "torch"])
def test_a_table_may_hold_for_all_rows_and_come_with_states(engine):
    own = TACModule(tacit.compile(network(), "W", hard=["P"], do=["U"], engine=engine), tables=["T"])
    assert own.tac.evidence == ("P", "U")
    states = {"P": torch.tensor([0, 1, 1]), "U": torch.tensor([1, 0, 1])}
    net = network().with_cpts({"T": TABLES[0].numpy()})
    expected = tacit.compile(net, "W", hard=["P"], do=["U"]).posterior(
        {"P": ["p", "q", "q"], "U": ["false", "true", "false"]}
    )
    close(own(states | {"T.table": TABLES[0]}), expected)
    close(own(states | {"T.table": TABLES[:1]}), expected)
    compiled = tacit.compile(network(), "W", hard=["P"], do=["U"], per_row=["T"])
    close(TACModule(compiled)(states | {"T.table": TABLES[0]}), expected)


def test_other_numbers_are_learned_beside_them():
    net = network(7.0).with_cpts({"U": tacit.CPT(np.full((3, 2, 2), np.nan))})
    own = TACModule(tacit.compile(net, "W", ["P"]), tables=["T"])
    own({"P": COLUMNS["U"], "T.table": TABLES})[:, 0].sum().backward()
    assert own.weights.grad.abs().max() > 1e-3
    assert np.isnan(own.network().cpt("T").table).all()
    assert not np.isnan(own.network().cpt("U").table).any()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "a table of 'T' is needed, as 'T.table' or as 'T.log_table', and there is none"),
        ({"T.table": TABLES, "T.log_table": TABLES}, "and there are two"),
        ({"T.table": TABLES.tolist()}, "the table of 'T' is a list, expected floats"),
        (
            {"T.table": TABLES[..., :2]},
            r"of shape \(4, 2, 2\), expected floats \(rows, 2, 3\) = \(rows, states of P",
        ),
        ({"T.table": TABLES * torch.tensor([[[1.0], [1.1]]])}, "the table of 'T', row 0: P='q': sums to 1.1, expected"),
        ({"T.log_table": TABLES}, "the table of 'T', row 0: P='p': sums to"),
        ({"T.table": TABLES[:3]}, "evidence on 'T.table' has 3 rows, other columns have 4"),
        ({"T.table": TABLES - torch.tensor([[0.9, -0.9, 0.0]])}, "row 0: P='p': holds a negative number"),
    ],
)
def test_wrong_tables(given, message):
    with pytest.raises(EvidenceError, match=message):
        module()(COLUMNS | {"P.table": ROOTS} | given)


def test_wrong_roots_and_names():
    with pytest.raises(EvidenceError, match="the table of 'P', row 1: sums to 2, expected 1"):
        module()({"T.table": TABLES[:2], "P.table": torch.tensor([[0.0, 1.0], [1.0, 1.0]])})
    with pytest.raises(EvidenceError, match="give the evidence as a tensor for each variable, and one for"):
        module()(torch.zeros((2, 2)))
    with pytest.raises(TacitError, match=r"tables must be a sequence of names, e.g. \['T'\]"):
        TACModule(tacit.compile(network(), "P"), tables="T")
