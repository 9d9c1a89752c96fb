"""What `python -m build` makes can be installed where only its declared dependencies are, and works there."""

import os
import subprocess
import sys
import venv
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement

import tacit

ROOT = Path(__file__).parents[2]
PACKAGE = Path(tacit.__file__).parent
# With the numpy engine, since in a new place the kernels of the other engines would have to be compiled anew.
SMOKE = """
import tacit
print(tacit.__file__)
tac = tacit.compile(tacit.examples.abc(), "B", ["A", "C"], engine="numpy")
print(tac.posterior({"A": 0.8, "C": [[0.6, 0.4]]}).round(6).tolist())
"""


def run(*command: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A command that is told nothing of this checkout."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, cwd=cwd, env=kept)


def needed(requirements: Iterable[str], extras: Iterable[str] = ()) -> set[str]:
    """The distributions that requirements lead to, at any depth."""
    names: set[str] = set()
    seen: set[tuple[str, frozenset[str]]] = set()
    todo = [(text, frozenset(extras)) for text in requirements]
    while todo:
        text, wanted = todo.pop()
        here = Requirement(text)
        met = here.marker is None or any(here.marker.evaluate({"extra": extra}) for extra in {"", *wanted})
        if met and (text, wanted) not in seen:
            seen.add((text, wanted))
            names.add(here.name)
            todo += [(below, frozenset(here.extras)) for below in metadata.requires(here.name) or ()]
    return names


def link(names: Iterable[str], place: Path) -> None:
    """Let a folder of packages have some of the distributions that are installed here."""
    for name in names:
        files = metadata.files(name) or []
        for entry in {file.parts[0] for file in files} - {"..", "__pycache__"}:
            if not (place / entry).exists():
                (place / entry).symlink_to(Path(str(metadata.distribution(name).locate_file(entry))))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the source archive and the wheel that was built from it."""
    place = tmp_path_factory.mktemp("dist")
    done = run(sys.executable, "-m", "build", "--no-isolation", "--outdir", place, ROOT, cwd=place)
    assert done.returncode == 0, done.stdout + done.stderr
    return place


def test_the_wheel_holds_every_file_of_the_package(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    files = {path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    with ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if name.startswith("tacit/")}
    assert held == {path.relative_to(PACKAGE.parent).as_posix() for path in files}
    assert "tacit/py.typed" in held


def test_the_wheel_works_where_only_its_dependencies_are(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    venv.create(tmp_path, with_pip=False)
    scripts = tmp_path / ("Scripts" if os.name == "nt" else "bin")
    python = scripts / "python"
    install = ("install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check", wheel)
    done = run(sys.executable, "-m", "pip", "--python", python, *install, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (info,) = tmp_path.rglob("tacit_circuits-*.dist-info")
    requires = metadata.Distribution.at(info).requires or []

    link(needed(requires), info.parent)
    done = run(python, "-c", SMOKE, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [str(info.parent / "tacit" / "__init__.py"), "[[0.585393, 0.414607]]"]
    done = run(scripts / "tacit", "--version", cwd=tmp_path)
    assert done.stderr.startswith("tacit: the command line needs")

    link(needed(requires, extras=["cli"]), info.parent)
    done = run(scripts / "tacit", "--version", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"tacit {tacit.__version__}\n"), done.stderr
