"""The README and the pages in docs/ hold what they promise."""

import importlib.util
import json
import re
import tomllib
from pathlib import Path

import pytest

import tacit
from tests import pages

pytestmark = pytest.mark.usefixtures("natural_choice")  # as readers run it

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", "CONTRIBUTING.md", "docs/format.md", "docs/design-notes.md", "docs/performance.md"]


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def test_readme_runs_as_pasted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)  # it saves a file
    namespace: dict[str, object] = {}
    for block in pages.blocks("../README.md"):
        exec(
            compile("\n" * block.above + block.code, str(ROOT / "README.md"), "exec"), namespace
        )  # shows the true line
        assert capsys.readouterr().out.splitlines() == block.printed


def test_every_extra_is_listed_and_those_of_the_page_are_in_its_first_line() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for page in ("README.md", "docs/index.md"):
        text = (ROOT / page).read_text(encoding="utf-8")
        listed = [name for cell in re.findall(r"^\| (`.*?`) \|", text, flags=re.MULTILINE) for name in cell.split(", ")]
        assert {name.strip("`") for name in listed} >= set(extras) - {"dev", "docs", "bench", "scale"}
        installed = set(re.findall(r"pip install '\.\[(.*?)\]'", text)[0].split(","))
        used = {"serve": "tacit serve", "plot": "tacit.plot", "frames": "pandas"}
        assert {extra for extra, name in used.items() if name in text} <= installed


def test_format_example_is_read_and_written_back(tmp_path: Path) -> None:
    example, density, value = blocks("docs/format.md", "json")
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    first.write_text(example, encoding="utf-8")
    tacit.save(tacit.load(first), second)
    assert second.read_text(encoding="utf-8") == example
    document = json.loads(example)
    node = json.loads(density)
    both = {**document, "version": 4, "nodes": [document["nodes"][0], node]}
    assert tacit.Network.from_dict(both).to_dict()["nodes"][1] == node
    worth = {**document, "version": 5, "values": [json.loads(value)]}
    assert tacit.Network.from_dict(worth).to_dict() == worth


def test_format_page_has_every_key_and_kind() -> None:
    page = (ROOT / "docs/format.md").read_text(encoding="utf-8")
    example, *_ = blocks("docs/format.md", "json")
    document = json.loads(example)
    nodes = document["nodes"]
    cpts = [node["cpt"] for node in nodes]
    assert {cpt["kind"] for cpt in cpts} == {"table", "testing", "function", "noisy-or", "mux"}
    for key in {*document, *nodes[0], *(key for cpt in cpts for key in cpt)}:
        assert f"`{key}`" in page, f"docs/format.md does not explain {key!r}"


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        if "://" not in target:
            assert (ROOT / page).parent.joinpath(target).exists(), f"{page} links to {target}"


def test_picture_is_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("picture", ROOT / "paper" / "picture.py")
    assert spec is not None
    assert spec.loader is not None
    picture = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(picture)
    assert picture.TARGET.read_text(encoding="utf-8") == picture.svg(), "run paper/picture.py"
