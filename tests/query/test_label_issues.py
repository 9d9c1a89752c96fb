"""Improbable labels are those of which the rest of the row says so."""

import numpy as np
import pytest

import tacit
from tacit import examples
from tests.helpers import close


def test_issues_are_the_rows_whose_label_is_improbable_given_the_rest():
    net = examples.asia()
    table = net.sample(400, seed=0)
    table["dysp"] = np.where(np.arange(400) % 5 == 0, None, table["dysp"])
    found = net.label_issues("dysp", table, below=0.25)
    others = {name: column for name, column in table.items() if name != "dysp"}
    recorded = np.exp(net.log_likelihood(table) - net.log_likelihood(others))
    listed = np.flatnonzero((recorded < 0.25) & np.array([label is not None for label in table["dysp"]]))
    assert sorted(found.rows) == listed.tolist()
    close(found.probability, recorded[found.rows])
    assert (np.diff(found.probability) >= 0).all()
    close(found.likely_probability, 1 - found.probability)
    assert (found.likely != found.given).all()
    posterior = net.posterior("dysp", others)[[label is not None for label in table["dysp"]]]
    close(found.expected, posterior[posterior < 0.25].sum())


def test_issues_print_as_a_table_with_the_index_of_the_frame():
    pd = pytest.importorskip("pandas")
    rows = pd.DataFrame({"bronc": ["yes", "no"], "dysp": ["no", "no"]}, index=["p7", "p8"])
    found = examples.asia().label_issues("dysp", rows, below=0.5)
    assert repr(found).splitlines()[1].split()[:2] == ["p7", "no"]
    assert repr(found).endswith("[1 row; about 0.324 expected without errors]")
    assert found.to_pandas().index.tolist() == ["p7"]
    none = examples.asia().label_issues("dysp", rows, below=0.01)
    assert repr(none) == "no improbable labels of dysp; about 0 expected without errors"


@pytest.mark.parametrize(
    ("name", "rows", "below", "message"),
    [
        ("dysp", {"smoke": "yes"}, 0.05, "no column 'dysp', whose labels"),
        ("dysp", {"dysp": [0.3, 0.4]}, 0.05, "holds likelihoods"),
        ("dysp", {"dysp": "yes"}, 5, "below is 5, expected a probability"),
        ("heat", {"dysp": "yes"}, 0.05, "'heat' is continuous"),
    ],
)
def test_what_has_no_labels_to_judge(name, rows, below, message):
    net = examples.asia()
    net.add("heat", ["dysp"], cpt=tacit.Gaussian([38, 37], [1, 1]))
    with pytest.raises(tacit.TacitError, match=message):
        net.label_issues(name, rows, below)
