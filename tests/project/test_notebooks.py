"""The notebooks run, show what they are stored with, and are the pages of the documentation."""

import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("ipykernel")
nbclient = pytest.importorskip("nbclient")
for needed in ("matplotlib", "pandas"):
    pytest.importorskip(needed)

FILE = Path(__file__).parents[2] / "docs" / "make_notebooks.py"
spec = importlib.util.spec_from_file_location("make_notebooks", FILE)
assert spec is not None
assert spec.loader is not None
make_notebooks = importlib.util.module_from_spec(spec)
spec.loader.exec_module(make_notebooks)
NOTEBOOKS = make_notebooks.notebooks()


def test_there_are_three() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["first-query", "learning", "million-rows"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_pages_and_pictures_are_those_of_the_notebook(path: Path) -> None:
    text, pictures = make_notebooks.page(make_notebooks.stored(path), path.stem)
    assert path.with_suffix(".md").read_text(encoding="utf-8") == text, "make notebooks"
    assert {file.name for file in path.parent.glob(f"{path.stem}-*.svg")} == pictures.keys()
    for file, svg in pictures.items():
        assert (path.parent / file).read_text(encoding="utf-8") == svg


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_show_what_is_stored(path: Path) -> None:
    stored = make_notebooks.stored(path)
    assert make_notebooks.shown(make_notebooks.executed(path)) == make_notebooks.shown(stored), "make notebooks"
    assert "Traceback" not in path.read_text(encoding="utf-8")
