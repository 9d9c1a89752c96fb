"""The name of the distribution: one for all messages and pages, and safe beside the other project called tacit."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import tacit
from tacit.base import version as installation

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PACKAGE = Path(tacit.__file__).parent
MIXED = (
    "tacit-circuits and tacit-0.3.0, another project, are both installed in {}; both are imported as tacit, and their "
    "files are mixed now. Uninstall both (pip uninstall tacit tacit-circuits), then install the one you want"
)


def run(script, place):
    """What a program says that finds the package in a folder."""
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(place)!r}); {script}"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def installed(place, but=()):
    """The package in a folder, as if it had been installed there, without some of its files."""
    (place / "tacit").mkdir()
    for path in PACKAGE.iterdir():
        if path.name not in but:
            (place / "tacit" / path.name).symlink_to(path)


def test_a_mixture_with_the_other_project_is_refused_at_import(tmp_path):
    installed(tmp_path)
    (tmp_path / "tacit-0.3.0.dist-info").mkdir()
    found = run("import tacit", tmp_path)
    assert found.returncode == 1
    assert found.stderr.splitlines()[-1] == "ImportError: " + MIXED.format(tmp_path)


def test_the_command_refuses_a_mixture_in_which_the_other_project_came_last(tmp_path):
    installed(tmp_path, but=["__init__.py"])
    (tmp_path / "tacit" / "__init__.py").write_text("")
    (tmp_path / "tacit-0.3.0.dist-info").mkdir()
    found = run("from tacit.cli import main; main()", tmp_path)
    assert (found.returncode, found.stderr) == (1, "tacit: " + MIXED.format(tmp_path) + "\n")


@pytest.mark.parametrize("entry", ["tacit-0.3.0.dist-info", "Tacit-1.0.dist-info", "tacit-0.3.0-py3.12.egg-info"])
def test_the_other_project_is_known_by_its_files(tmp_path, entry):
    (tmp_path / entry).mkdir()
    with pytest.raises(ImportError, match="another project"):
        installation.refuse_a_mixture(str(tmp_path / "tacit"))


def test_this_project_under_its_former_name_is_let_be(tmp_path):
    (tmp_path / "tacit-0.1.0.dist-info").mkdir()
    (author,) = PROJECT["authors"]
    metadata = f"Metadata-Version: 2.4\nName: tacit\nAuthor: {author['name']}\n"
    (tmp_path / "tacit-0.1.0.dist-info" / "METADATA").write_text(metadata)
    installation.refuse_a_mixture(str(tmp_path / "tacit"))


def test_what_only_sounds_alike_is_let_be(tmp_path):
    for entry in ("tacit", "tacit_circuits-0.1.0.dist-info", "tacit_tools-2.0.dist-info", "tacit-notes"):
        (tmp_path / entry).mkdir()
    installation.refuse_a_mixture(str(tmp_path / "tacit"))
    installation.refuse_a_mixture(str(tmp_path / "archive.zip" / "tacit"))


def texts():
    """All sources and pages of the project, one after the other."""
    paths = [path for folder in ("src", "docs", "bench", "paper") for path in (ROOT / folder).rglob("*.*")]
    paths += [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    return "".join(path.read_text(encoding="utf-8") for path in paths if path.suffix in (".py", ".md"))


def test_messages_name_the_packages_of_an_extra():
    assert PROJECT["name"] == installation.NAME
    extras = PROJECT["optional-dependencies"]
    for extra, needed in installation.EXTRAS.items():
        inner = [*(extras["cli"] if extra == "serve" else ()), *extras[extra]]
        assert list(needed) == [one for one in inner if not one.startswith(installation.NAME)]
    used = set(re.findall(r"how_to_install\(['\"](\w+)", texts())) | set(
        re.findall(r"package\(\"\w+\", \"(\w+)", texts())
    )
    assert {"cli", "frames", "plot", "serve", "torch"} <= used <= installation.EXTRAS.keys()


def test_pages_install_from_the_checkout_and_name_extras_that_there_are():
    text = texts()
    assert not re.search(r"(?<![\w-])tacit\[", text)
    assert "pip install 'tacit" not in text  # which is on no index
    commands = re.findall(r"pip install '\.\[([\w,]+)\]'", text)
    named = re.findall(r"\bextra(?:\]\([^)]*\))? `(\w+)`", text)
    assert len(commands) >= 4
    assert len(named) >= 10
    assert {*named, *(extra for command in commands for extra in command.split(","))} <= PROJECT[
        "optional-dependencies"
    ].keys()


def test_the_version_is_written_once():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" not in PROJECT
    assert PROJECT["dynamic"] == ["version"]
    source = (ROOT / settings["tool"]["hatch"]["version"]["path"]).read_text(encoding="utf-8")
    assert re.findall(r'^VERSION = "(.*)"', source, re.MULTILINE) == [tacit.__version__]
