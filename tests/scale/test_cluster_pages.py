"""The pages about clusters run as they stand, each in a process of its own, and print what they say they print."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages import blocks

PATIENCE = 300  # seconds: the machine may be busy
PAGES = {"dask": "distributed", "ray": "ray.data", "spark": "pyspark"}


@pytest.mark.parametrize("engine", PAGES)
def test_a_page_runs_as_it_stands(engine: str, tmp_path: Path) -> None:
    pytest.importorskip(PAGES[engine], reason=f"{engine} is not installed")
    if engine == "spark" and shutil.which("java") is None:
        pytest.skip("there is no Java, which Spark needs")
    found = list(blocks(f"howto/{engine}.md"))
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    printed, errors = tmp_path / "printed", tmp_path / "errors"  # no pipes, which processes of the cluster keep open
    with (
        printed.open("w") as out,
        errors.open("w") as err,
        subprocess.Popen(
            [sys.executable, "-c", "\n".join(block.code for block in found)],
            cwd=tmp_path, env=environment, stdout=out, stderr=err,
        ) as process,
    ):  # fmt: skip
        try:
            process.wait(PATIENCE)
        finally:
            process.terminate()  # its cluster goes with it
    assert process.returncode == 0, errors.read_text()
    expected = [line for block in found for line in block.printed]
    assert [line.rstrip() for line in printed.read_text().splitlines()] == expected
