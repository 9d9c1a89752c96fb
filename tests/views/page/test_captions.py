"""The small file that names what a page shows."""

from pathlib import Path
from typing import Any

import pytest

import tacit
from tacit.views.page import Captions
from tacit.views.page.page_model import page_model

WHOLE = """
title = "Letters"
query = "C"
state = "hi"
never_ask = ["A"]

[variables.A]
label = "the first"
group = "above"

[variables.C]
states = {lo = "low"}
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "captions.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_captions_are_shown(tmp_path: Path) -> None:
    net = tacit.examples.abc()
    model = page_model(net, Captions.read(written(tmp_path, WHOLE), net))
    assert (model["title"], model["query"], model["state"]) == ("Letters", 2, "hi")
    assert [own["asked"] for own in model["variables"]] == [False, True, True]
    assert Captions.chosen(net, tmp_path / "captions.toml", "A").state is None  # it was one of another query
    a, b, c = model["variables"]
    assert (a["name"], a["label"], a["group"]) == ("A", "the first", "above")
    assert (b["label"], b["group"], b["testing"]) == ("B", None, True)
    assert (c["names"], c["states"]) == (["lo", "hi"], ["low", "hi"])


def test_names_are_given_as_a_dictionary() -> None:
    net = tacit.examples.abc()
    captions = Captions.chosen(net, {"A": "the first"}, "C")
    model = page_model(net, captions)
    assert (model["variables"][0]["label"], model["query"]) == ("the first", 2)
    assert Captions.chosen(net, captions, None) == captions


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"Z": "x"}, "'Z' is not a variable of the network"),
        ({"A": 3}, "the caption of 'A' is 3, expected some text"),
        (3, "captions is 3, expected a mapping from variables to names to show"),
    ],
)
def test_mistakes_in_a_dictionary_are_named(given: Any, message: str) -> None:
    with pytest.raises(tacit.TacitError) as error:
        Captions.chosen(tacit.examples.abc(), given, None)
    assert message in str(error.value)


def test_the_first_query_is_what_most_variables_lead_to() -> None:
    net = tacit.examples.kidney_stones()
    net.add("age", cpt=[0.5, 0.5])
    model = page_model(net, Captions())
    assert model["variables"][model["query"]]["name"] == "recovery"


def test_without_captions_names_are_shown() -> None:
    model = page_model(tacit.examples.abc(), Captions())
    assert (model["title"], model["query"]) == ("abc", 1)
    assert [own["label"] for own in model["variables"]] == ["A", "B", "C"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("titel = 'x'", "'titel' is not known in a file of captions; expected title, query, state, "),
        ("state = 'lo'", "state is named without a query"),
        ("query = 'C'\nstate = 'x'", "state is 'x', expected one of 'lo', 'hi', the states of 'C'"),
        ("never_ask = 'A'", "never_ask is 'A', expected a list of variables"),
        ("never_ask = ['Z']", "'Z' is not a variable of the network"),
        ("[variables.Z]\nlabel = 'x'", "'Z' is not a variable of the network"),
        ("query = 'Z'", "'Z' is not a variable of the network"),
        ("[variables.A]\nlabel = ''", "variables.A.label is '', expected some text"),
        ("[variables.A]\ngroup = 3", "variables.A.group is 3, expected some text"),
        ("[variables.A]\ncolour = 'red'", "'colour' is not known in variables.A; expected label, group, states"),
        ("variables = 3", "variables is 3, expected a table"),
        ("[variables.C]\nstates = {medium = 'x'}", "'medium' is not a state; expected one of 'lo', 'hi'"),
        ("title = ", "not a TOML file"),
    ],
)  # fmt: skip
def test_mistakes_are_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(tacit.TacitError) as error:
        Captions.read(written(tmp_path, text), tacit.examples.abc())
    assert str(error.value).startswith(str(tmp_path))
    assert message in str(error.value)
