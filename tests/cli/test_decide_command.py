"""The best action for one row, from the command line."""

import pytest

import tacit

pytest.importorskip("typer")
pytest.importorskip("pyarrow")

from tests.cli.helpers import as_json, tacit_


@pytest.fixture(autouse=True)
def clinic():
    net = tacit.Network("clinic")
    net.add("Disease", states=["yes", "no"], cpt=[0.1, 0.9])
    net.add("Blood", ["Disease"], states=["high", "normal"], cpt=[[0.8, 0.2], [0.25, 0.75]])
    net.add("Scan", ["Disease"], states=["shadow", "clear"], cpt=[[1, 0], [0, 1]])
    net.add("Treat", states=["yes", "no"])
    net.add("Outcome", ["Treat"], states=["good", "bad"], cpt=[[1, 0], [0, 1]])
    net.value("Harm", ["Disease", "Treat"], [[-10, -100], [-8, 0]])
    tacit.save(net, "clinic.json")
    return net


def test_the_best_action_is_shown_beside_the_others():
    assert tacit_("decide", "clinic.json", "-d", "Treat", "-e", "Scan=shadow").splitlines() == [
        "Treat given Scan=shadow",
        "yes   -10  best",
        "no   -100",
        "better than the second best by 90",
    ]


def test_observations_are_listed_by_worth(clinic):
    shown = tacit_("decide", "clinic.json", "-d", "Treat", "--next", "--cost", "Scan=3", "--cost", "Blood=100")
    worth = tacit.compile(clinic, decide="Treat", evidence=["Scan"]).worth()["Scan"][0] - 3
    assert shown.splitlines()[-2:] == ["to observe first, by what it is worth:", f"  Scan  {worth:.6g}"]
    shown = tacit_("decide", "clinic.json", "-d", "Treat", "-e", "Scan=clear", "--next")
    assert shown.splitlines()[-1] == "no further observation would be worth its cost"


def test_json_has_the_numbers(clinic):
    tac = tacit.compile(clinic, decide="Treat", evidence=["Blood", "Scan", "Disease"])
    told = tac.worth({"Blood": [[0.6, 0.4]]})
    decision = tac.decide({"Blood": [[0.6, 0.4]]})
    found = as_json("decide", "clinic.json", "-d", "Treat", "-e", "Blood=0.6,0.4", "--next")
    assert found["action"] == decision.action[0]
    assert list(found["expected"].values()) == pytest.approx(decision.expected[0].tolist(), rel=1e-12)
    assert found["margin"] == pytest.approx(decision.margin[0], rel=1e-12)
    assert found["worth"] == pytest.approx({name: own[0] for name, own in told.items()}, rel=1e-9)
    assert list(found["worth"].values()) == sorted(found["worth"].values(), reverse=True)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["-d", "Treet"], 1, "did you mean 'Treat'"),
        (["-d", "Treat", "-e", "Outcome=good"], 1, "'Outcome' is below the decision 'Treat'"),
        (["-d", "Treat", "-e", "Scan=shadow", "-e", "Disease=no"], 1, "probability 0, so there is no best action"),
        (["-d", "Treat", "--cost", "Scan=3"], 2, "expected --next beside it"),
        (["-d", "Treat", "--next", "--cost", "Scan=dear"], 2, "'dear' is not a number, what observing Scan costs"),
        (["-d", "Treat", "--next", "--cost", "Scan=1", "--cost", "Scan=2"], 2, "there are two costs of Scan"),
        (
            ["-d", "Treat", "--next", "--cost", "Scam=1"],
            1,
            "costs names 'Scam', which is not a variable that could be "
            "observed; expected some of Disease, Blood, Scan; did you mean 'Scan'?",
        ),
        (["-d", "Treat", "--next", "--cost", "Scan=nan"], 1, "expected a finite number"),
    ],
)
def test_what_is_wrong_is_said(arguments, code, message):
    assert message in " ".join(tacit_("decide", "clinic.json", *arguments, code=code).split())
