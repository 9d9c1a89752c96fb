"""What the shell offers after Tab: variables and states of the network on the command line."""

import pytest

import tacit

pytest.importorskip("typer")
pytest.importorskip("pyarrow")

from tacit.cli import main
from tacit.cli.shared import completion


@pytest.fixture
def offered(monkeypatch, capfd):
    """A function: what a shell offers for the words so far, of which the last is to be completed."""
    net = tacit.Network()
    net.add("Cough", cpt=[0.1, 0.9])
    net.add("Cold", ["Cough"], states=["none", "light", "heavy"], cpt=[[0.2, 0.3, 0.5], [0.4, 0.3, 0.3]])
    net.add("Fever", ["Cold"], states=[37, 38.5], cpt=[[0.5, 0.5]] * 3)
    net.add("two words", cpt=[0.5, 0.5])
    tacit.save(net, "cold.json")

    def offer(*words, shell="bash"):
        if shell == "bash":
            monkeypatch.setenv("COMP_WORDS", "\n".join(["tacit", *words]))
            monkeypatch.setenv("COMP_CWORD", str(len(words)))
        else:
            monkeypatch.setenv("_TYPER_COMPLETE_ARGS", " ".join(["tacit", *words]))
            monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
        monkeypatch.setenv("_TACIT_COMPLETE", f"complete_{shell}")
        try:
            main()
        except SystemExit as end:
            assert not end.code  # noqa: PT017
        out, err = capfd.readouterr()
        assert err == ""
        return out.split()

    return offer


@pytest.mark.parametrize("command", ["query", "batch", "explain", "train", "sensitivity", "info", "bench"])
def test_queries_are_variables(offered, command):
    assert offered(command, "cold.json", "-q", "") == ["Cough", "Cold", "Fever"]  # without what needs quotation marks
    assert offered(command, "cold.json", "--query", "Co") == ["Cough", "Cold"]
    assert offered(command, "cold.json", "-q", "x") == []


@pytest.mark.parametrize("option", ["-e", "--evidence", "--do"])
def test_values_are_variables_then_states(offered, option):
    before = ("query", "cold.json", "-q", "Cough", option)
    assert offered(*before, "") == ["Cough=", "Cold=", "Fever="]
    assert offered(*before, "Co") == ["Cough=", "Cold="]
    assert offered(*before, "Col") == ["Cold=none", "Cold=light", "Cold=heavy"]
    assert offered(*before, "Fever") == ["Fever=37", "Fever=38.5"]
    assert offered(*before, "Nothing=") == []


def test_bash_takes_an_equals_sign_for_a_word(offered):
    before = ("mpe", "cold.json", "-e", "Cough", "=", "true", "-e", "Cold")
    assert offered(*before, "=") == ["none", "light", "heavy"]
    assert offered(*before, "=", "l") == ["light"]
    assert offered(*before[:-1], "Cold=l") == ["Cold=light"]  # unless it is told otherwise


@pytest.mark.parametrize("shell", ["fish", "zsh"])
def test_other_shells_do_not(offered, shell):
    found = offered("sample", "cold.json", "-e", "Cold=", shell=shell)
    assert [word for word in ("none", "light", "heavy") if f"Cold={word}" in " ".join(found)] == [
        "none",
        "light",
        "heavy",
    ]


def test_lists_have_commas(offered):
    assert offered("mpe", "cold.json", "--only", "Co") == ["Cough", "Cold"]
    assert offered("mpe", "cold.json", "--only", "Cough,") == ["Cough,Cold", "Cough,Fever"]
    assert offered("batch", "cold.json", "rows.csv", "--do", "Fever,Co") == ["Fever,Cough", "Fever,Cold"]


def test_a_network_in_the_home_folder(offered, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert offered("query", "~/cold.json", "-q", "F") == ["Fever"]


def test_whatever_is_wrong_nothing_is_said(offered, monkeypatch, tmp_path):
    (tmp_path / "broken.bif").write_text("network {")
    (tmp_path / "rough.bif").write_text(
        "network n {} variable A { type discrete [ 3 ] { a, b, c }; }\n"
        "probability ( A ) { table 0.3333, 0.3333, 0.3333; }"
    )
    assert offered("query", "none.bif", "-q", "") == []
    assert offered("query", "broken.bif", "-q", "") == []
    assert offered("query", "-q", "") == []
    assert offered("query", "rough.bif", "-q", "") == ["A"]  # without the warning about its rows
    monkeypatch.setattr(completion, "MAX_BYTES", 10)
    assert offered("query", "cold.json", "-q", "") == []
