"""The pages with instructions run as they stand, and print what they say they print.

A printing line ends in a comment with what it prints: `print(1 + 1)  # 2`. What takes several lines is in a block of
text that follows.
"""

import re
import shutil
from pathlib import Path

import pytest
from bench.networks import folder

ROOT = Path(__file__).parent.parent / "docs"
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for where in ("tutorials/*", "howto/*", "gallery")
    for path in ROOT.glob(f"{where}.md")
)
WITHOUT_CODE = {"tutorials/index.md", "howto/index.md", "howto/command-line.md"}
ELSEWHERE = {"howto/torch-distributed.md"}  # run by tests/scale
NEEDS = {
    "tutorials/beyond.md": ["matplotlib", "pandas", "pgmpy"],
    "tutorials/neural.md": ["torch"],
    "howto/estimate.md": ["pandas", "pyarrow"],
    "howto/frames.md": ["pandas", "polars", "pyarrow"],
    "howto/gpu.md": ["torch"],
    "howto/onnx.md": ["onnx", "onnxruntime"],
    "howto/peers.md": ["pgmpy.models", "pyagrum"],
    "howto/scikit-learn.md": ["sklearn"],
}
FILES = {"tutorials/beyond.md": ["alarm.bif.gz"]}  # what a reader has downloaded
BLOCK = re.compile(r"^```python\n(.*?)^```$(?:\n+^```text\n(.*?)^```$)?", flags=re.MULTILINE | re.DOTALL)
PRINTED = re.compile(r"^print\(.*\)  # (.+)$", flags=re.MULTILINE)


@pytest.mark.parametrize("page", [page for page in PAGES if page not in WITHOUT_CODE | ELSEWHERE])
def test_pages_run_as_they_stand(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for package in NEEDS.get(page, ()):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    for file in FILES.get(page, ()):
        shutil.copy(folder() / file, tmp_path)
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = list(BLOCK.finditer(text))
    assert blocks
    namespace: dict[str, object] = {}
    for block in blocks:
        code, printed = block.groups()
        expected = PRINTED.findall(code) if printed is None else printed.splitlines()
        assert printed is not None or len(expected) == code.count("print("), "every print shows its output"
        above = text[: block.start(1)].count("\n")
        exec(compile("\n" * above + code, page, "exec"), namespace)  # errors show the true line
        assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == expected
