"""Numbers of continuous variables on the command line, and in tables."""

from pathlib import Path

import numpy as np
import pytest

import tacit
from tests.helpers import close
from tests.sensors import READINGS, sensors

pytest.importorskip("typer")
pytest.importorskip("pyarrow")

from tests.cli.helpers import answers, as_json, tacit_

ROWS = {"Load": ["low", None, "high"], **READINGS}


@pytest.fixture
def net():
    net = sensors()
    tacit.save(net, "net.json")
    Path("rows.csv").write_text("id,Load,heat,x,trips,shake\n1,low,82.5,1,3,\n2,,,0.5,NA,1.5\n3,high,60,,0,1\n")
    return net


def test_a_number_is_evidence(net):
    found = as_json("query", "net.json", "-q", "Fault", "-e", "heat=82.5", "-e", "x, y=1,NA")
    tac = tacit.compile(net, "Fault", ["heat", "x"])
    close(list(found["posterior"].values()), tac.posterior({"heat": 82.5, "x": 1.0})[0])
    assert "log-density of the evidence: -5.37" in tacit_(
        "query", "net.json", "-q", "Fault", "-e", "heat=82.5 ", "-e", "x=1"
    )


def test_a_continuous_query_is_answered_by_its_mean_and_quantiles(net):
    mixture = tacit.compile(net, "heat", ["x"]).posterior({"x": 1.0})
    found = as_json("query", "net.json", "-q", "heat", "-e", "x=1")["posterior"]
    close([found["mean"], found["sd"]], [mixture.mean[0], mixture.sd[0]])
    close([found["5%"], found["50%"], found["95%"]], mixture.quantile([0.05, 0.5, 0.95])[0])
    lines = tacit_("query", "net.json", "-q", "x, y", "-e", "heat=90").splitlines()
    assert [line.split()[0] for line in lines[1:4]] == ["mean", "x", "y"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("query", "-q", "Fault", "-e", "heat=hot"), "evidence on 'heat': 'hot' is not a number"),
        (("query", "-q", "Fault", "-e", "x, y=1"), "expected 2 numbers, such as x, y=1.5,1.5"),
        (("query", "-q", "Fault", "-e", "trips=2.5"), "evidence on 'trips': 2.5 is not a whole number from 0 on"),
        (("sensitivity", "-q", "heat", "-e", "x=1"), "the query, 'heat', is continuous, so there is no sensitivity"),
        (("query", "-q", "Fault", "--do", "heat=80"), "'heat': do= sets states, and this is continuous; nothing is"),
    ],
)
def test_what_cannot_be_asked_is_said(net, arguments, problem):
    command, *others = arguments
    assert problem in tacit_(command, "net.json", *others, code=1)


def test_each_number_has_an_option_of_its_own(net):
    found = tacit_("query", "net.json", "-q", "Fault", "-e", "x=1,y=2", code=2)
    assert "'x=1,y=2' is 2 findings; give each an option of its own: -e x=1 -e y=2" in found


def test_a_table_has_columns_of_numbers_with_gaps(net):
    tacit_("batch", "net.json", "rows.csv", "-q", "Fault", "-q", "y", "-o", "out.parquet", "--log-evidence")
    found = answers("out.parquet")
    fault = tacit.compile(net, "Fault", ["Load", "heat", "x", "trips", "shake"])
    close(found["Fault.true"], fault.posterior(ROWS)[:, 0])
    close(found["log_evidence"], fault.log_evidence(ROWS))
    mixture = tacit.compile(net, "y", ["Load", "heat", "x", "trips", "shake"]).posterior(ROWS)
    columns = [found[f"y.{part}"] for part in ("mean", "sd", "5%", "50%", "95%")]
    close(np.transpose(columns), np.column_stack([mixture.mean, mixture.sd, mixture.quantile([0.05, 0.5, 0.95])]))


def test_only_some_columns_of_a_variable_are_taken(net):
    Path("rows.csv").write_text("x,y\n1,2\n")
    tacit_("batch", "net.json", "rows.csv", "-q", "Fault", "-o", "out.csv", "--columns", "y")
    close(answers("out.csv")["Fault.true"], net.posterior("Fault", {"y": [2.0]})[:, 0])


def test_wrong_numbers_of_a_table_are_named_together(net):
    Path("rows.csv").write_text("heat,trips\n82.5,3\nNA,2.5\nhot,-1\n")
    message = tacit_("batch", "net.json", "rows.csv", "-q", "Fault", "-o", "out.csv", code=1)
    assert "rows.csv: column 'heat', row 3: 'hot' is not a number" in message
    assert "evidence on 'trips', row 2: 2.5 is not a whole number from 0 on" in message
    assert "no most probable state" in tacit_(
        "batch", "net.json", "rows.csv", "-q", "heat", "--argmax", "-o", "o.csv", code=1
    )


def test_explanations_and_samples_have_numbers(net):
    lines = {line.split()[0]: line.split()[1:] for line in tacit_("mpe", "net.json", "-e", "heat=82.5").splitlines()}
    assert lines["heat"] == ["82.5", "observed"]
    assert lines["trips"] == ["4.0", "mean"]
    tacit_("batch", "net.json", "rows.csv", "--mpe", "-o", "best.csv")
    assert answers("best.csv")["heat"] == [82.5, 65, 60]
    tacit_("sample", "net.json", "-e", "x=1", "-n", "3", "-o", "drawn.parquet")
    drawn = answers("drawn.parquet")
    assert drawn["x"] == [1.0] * 3
    assert all(isinstance(number, float) for number in drawn["heat"])


def test_info_counts_the_numbers_of_densities(net):
    shown = tacit_("info", "net.json")
    assert "parameters     41" in shown
    assert "heat      numbers         Fault, Load  gaussian, 12 parameters" in shown
