"""The pages with instructions run as they stand, and print what they say they print."""

import re
from pathlib import Path

import pytest

from tests.pages import ROOT, blocks

pytestmark = pytest.mark.usefixtures("natural_choice")  # as readers run it

PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for where in ("index", "tutorials/*", "howto/*", "gallery", "structure", "concepts/testing")
    for path in ROOT.glob(f"{where}.md")
)
WITHOUT_CODE = {
    "tutorials/index.md",
    "howto/index.md",
    "howto/clusters.md",
    "howto/command-line.md",
}
ELSEWHERE = {f"howto/{name}.md" for name in ("dask", "ray", "spark", "torch-distributed")}  # run by tests/scale
NEEDS = {
    "index.md": ["pandas"],
    "tutorials/beyond.md": ["matplotlib", "pandas"],
    "tutorials/neural.md": ["torch"],
    "tutorials/table-to-decision.md": ["pandas"],
    "howto/data-frame.md": ["pandas", "pgmpy.causal_discovery"],
    "howto/discover.md": ["pandas"],
    "howto/embedded.md": ["onnx", "onnxruntime"],
    "howto/estimate.md": ["pandas", "pyarrow"],
    "howto/frames.md": ["pandas", "polars", "pyarrow"],
    "howto/messy-tables.md": ["pandas"],
    "howto/missing-values.md": ["pandas"],
    "howto/numbers.md": ["pandas"],
    "howto/gpu.md": ["torch"],
    "howto/onnx.md": ["onnx", "onnxruntime"],
    "howto/pictures.md": ["matplotlib"],
    "howto/peers.md": ["pgmpy.models", "pyagrum"],
    "howto/row-tables.md": ["torch"],
    "howto/scikit-learn.md": ["sklearn"],
    "howto/serve.md": ["httpx", "starlette", "uvicorn"],
    "howto/web-service.md": ["httpx", "starlette"],
}
PICTURE = re.compile(r"^!\[[^\]]*\]\(([^)]+)\)", flags=re.MULTILINE)


@pytest.mark.parametrize("page", [page for page in PAGES if page not in WITHOUT_CODE | ELSEWHERE])
def test_pages_run_as_they_stand(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for package in NEEDS.get(page, ()):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    found = list(blocks(page))
    assert found
    namespace: dict[str, object] = {}
    for block in found:
        exec(compile("\n" * block.above + block.code, page, "exec"), namespace)  # errors show the true line
        assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == block.printed
    for shown in PICTURE.findall((ROOT / page).read_text(encoding="utf-8")):
        saved, kept = tmp_path / Path(shown).name, (ROOT / page).parent / shown
        if saved.exists() and saved.suffix == ".svg":
            assert saved.read_text(encoding="utf-8") == kept.read_text(encoding="utf-8"), "run docs.make_images"
