"""The cache of compiled kernels: never stale, healed when damaged, and not needed."""

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numba
import pytest
from numba.core import event

import tacit
from tacit.base import jit
from tacit.base.jit import cached_njit, kernel_files
from tacit.bounds.propagation import message_kernels
from tacit.compiler.diagrams import diagram_kernels, listing_kernels
from tacit.compiler.operations import dense_kernels
from tacit.compiler.order import anneal_kernels
from tacit.engines.tape import exponential, opcodes, tape_kernels, traceback_kernels, underflow_flag
from tacit.learn.discovering.scoring import score_kernels
from tacit.learn.discovering.searches import cluster_kernels, graph_kernels, order_kernels
from tacit.learn.estimating import count_kernels
from tacit.learn.fitting import loss_kernels

PACKAGE = Path(tacit.__file__).parent

INNER = "from tacit.base.jit import jit\n@jit()\ndef inner(x):\n    return x + 1\n"
OUTER = """
from tacit.base.jit import jit
from tacit.engines.tape.opcodes import inner
@jit()
def outer(x):
    return 10 * inner(x)
"""
# what a fresh process answers, whether that came from the cache, and what it warned of
SCRIPT = """
import json, sys, tempfile, warnings
warnings.simplefilter("always")
tempfile.tempdir = sys.argv[1]
with warnings.catch_warnings(record=True) as caught:
    from tacit.base.jit import is_compiled
    before = [is_compiled(f"tacit.engines.tape.{name}") for name in ("tape_kernels.outer", "opcodes.inner")]
    loaded = "numba" in sys.modules
    from tacit.engines.tape.opcodes import inner
    from tacit.engines.tape.tape_kernels import outer
    answers = [outer(2), outer(2.0), inner(2)]
hits = sum(sum(f.stats.cache_hits.values()) for f in (inner, outer))
found = {"answers": answers, "hits": hits, "folder": str(outer.stats.cache_path), "loaded": loaded}
found |= {"compiled": before, "now": is_compiled("tacit.engines.tape.tape_kernels.outer")}
json.dump({**found, "warnings": [str(w.message) for w in caught]}, sys.stdout)
"""


class Installation:
    """A copy of the package with two small kernels in place of its own, one calling the other across files."""

    def __init__(self, folder):
        self.folder, self.package = folder, folder / "site" / "tacit"
        shutil.copytree(PACKAGE, self.package, ignore=shutil.ignore_patterns("__pycache__"))
        self.write("opcodes", INNER)
        self.write("tape_kernels", OUTER)
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")},
            "PYTHONPATH": str(self.package.parent),
            "PYTHONDONTWRITEBYTECODE": "1",  # what is run is what the files say, however quickly they change
            "HOME": str(folder),
        }

    def write(self, module, text):
        (self.package / "engines" / "tape" / f"{module}.py").write_text(text)

    def read_only(self):
        """Nothing can be written beside the sources, or at home: not even by root, who may write to any folder."""
        (self.package / "engines" / "tape" / "__pycache__").write_text("not a folder")
        self.environment |= {"HOME": os.devnull, "XDG_CACHE_HOME": f"{os.devnull}/cache"}

    def forbid_writing(self):
        """Let numba find that it can write nowhere."""
        text = "import tempfile\ndef fail(*_, **__):\n    raise PermissionError\ntempfile.TemporaryFile = fail\n"
        (self.package.parent / "sitecustomize.py").write_text(text)

    def run(self, temporary=f"{os.devnull}/none"):
        command = [sys.executable, "-c", SCRIPT, str(temporary)]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert len(found["warnings"]) <= 1
        return found

    def files(self, pattern):
        return sorted((self.package / "engines" / "tape" / "__pycache__").glob(pattern))


@pytest.fixture
def installation(tmp_path):
    return Installation(tmp_path)


def test_damaged_and_outdated_files_are_made_again(installation):
    assert installation.run()["answers"] == [30, 30.0, 3]
    index, *_ = installation.files("tape_kernels.outer*.nbi")
    index.write_bytes(index.read_bytes()[:-20])
    for file in installation.files("*.nbc"):  # cut short; or as long as before with a hole, as after a power cut
        half = file.read_bytes()[: file.stat().st_size // 2]
        file.write_bytes(half + bytes(len(half)) if "outer" in file.name else half)
    healed = installation.run()
    assert (healed["answers"], healed["hits"], healed["warnings"]) == ([30, 30.0, 3], 0, [])
    again = installation.run()
    assert (again["answers"], again["hits"], again["warnings"]) == ([30, 30.0, 3], 3, [])
    # only the inner file changes, and the outer kernel with it
    installation.write("opcodes", INNER.replace("x + 1", "x + 5"))
    changed = installation.run()
    assert (changed["answers"], changed["hits"], changed["warnings"]) == ([70, 70.0, 7], 0, [])


def test_what_is_kept_is_known_without_numba(installation, tmp_path):
    first, second = installation.run(), installation.run()
    assert (first["compiled"], first["now"], first["loaded"]) == ([False, False], True, False)
    assert (second["compiled"], second["hits"], second["loaded"]) == ([True, True], 3, False)
    installation.write("opcodes", INNER.replace("x + 1", "x + 5"))
    assert installation.run()["compiled"] == [False, False]
    # what is of no use any more is gone
    assert {file.name.partition("-")[0] for file in installation.files("*.nb?")} == {
        "tape_kernels.outer",
        "opcodes.inner",
    }
    assert len(installation.files("*.nbi")) == 2
    installation.environment["NUMBA_CACHE_DIR"] = str(tmp_path / "named")
    first, second = installation.run(), installation.run()
    assert (first["compiled"], first["hits"]) == ([False, False], 0)
    assert (second["compiled"], second["hits"]) == ([True, True], 3)
    assert second["folder"].startswith(str(tmp_path / "named"))


@pytest.mark.slow
@pytest.mark.parametrize("named", [False, True])
def test_kernels_of_another_user_are_read_if_they_fit_this_processor(installation, tmp_path, named):
    if named:
        installation.environment["NUMBA_CACHE_DIR"] = str(tmp_path / "named")
    made = installation.run()
    folder = Path(made["folder"])
    if os.access("/", os.W_OK):  # root can write anywhere: let the check fail
        installation.forbid_writing()
    folder.chmod(0o500)
    try:
        found = installation.run()
        installation.environment |= {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
        other = installation.run()
    finally:
        folder.chmod(0o700)
    assert (found["folder"], found["hits"], found["warnings"]) == (str(folder), 3, [])
    assert found["compiled"] == [True, True]
    assert other["folder"] != str(folder)
    assert (other["answers"], other["hits"], other["compiled"]) == ([30, 30.0, 3], 0, [False, False])


def test_without_any_folder_to_write_kernels_are_compiled_with_one_warning(installation):
    installation.read_only()
    found = installation.run()
    assert (found["answers"], found["folder"]) == ([30, 30.0, 3], "None")
    assert "compiled again by every process" in found["warnings"][0]
    assert "NUMBA_CACHE_DIR" in found["warnings"][0]


def test_the_temporary_folder_is_the_last_resort(installation, tmp_path):
    installation.read_only()
    first, second = installation.run(tmp_path), installation.run(tmp_path)
    assert (first["hits"], second["hits"]) == (0, 3)
    for found in (first, second):
        assert found["folder"].startswith(str(tmp_path / "tacit-kernels"))
        assert f"kept in {tmp_path}" in found["warnings"][0]


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="temporary folders are the user's own")
def test_a_temporary_folder_that_others_can_write_is_not_used(tmp_path, monkeypatch):
    monkeypatch.setattr(cached_njit.tempfile, "tempdir", str(tmp_path))
    folder = cached_njit.private_folder()
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o777)
    with pytest.raises(PermissionError, match="of this user alone"):
        cached_njit.private_folder()
    folder.rmdir()
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PermissionError, match="of this user alone"):
        cached_njit.private_folder()
    folder.unlink()
    somebody = os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: somebody)
    with pytest.raises(PermissionError, match="of this user alone"):
        cached_njit.private_folder()


def test_a_full_disk_is_one_warning(monkeypatch):
    cached_njit._warn_once.cache_clear()

    @jit.jit()
    def double(x):
        return 2 * x

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cached_njit.NamedCache, "_save_overload", full)
    with pytest.warns(UserWarning, match="No space left on device") as caught:
        assert (double(2), double(2.5)) == (4, 5.0)
    assert len(caught) == 1
    cached_njit._warn_once.cache_clear()


def test_a_kernel_that_cannot_be_compiled_is_compiled_no_more():
    said = []
    notice = SimpleNamespace(begin=lambda text: said.append("begin"), end=lambda: said.append("end"))

    @jit.jit()
    def unknown(x):
        return x.no_such_thing

    @numba.njit
    def of_others(x):
        return x + 1

    with event.install_listener("numba:compile", cached_njit.Watcher(notice)):
        with pytest.raises(numba.TypingError):
            unknown(1)
        of_others(1)
    assert said == ["begin", "end"]


def imported(file):
    """The names that a file takes from other files of the package, and which."""
    for statement in ast.walk(ast.parse(file.read_text())):
        if isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith("tacit"):
            source = Path(*statement.module.split(".")[1:])
            for name in statement.names:
                places = source / f"{name.name}.py", Path(f"{source}.py"), source / "__init__.py"
                found = next(place for place in places if (PACKAGE / place).is_file())
                yield name.asname or name.name, found.as_posix()


def sources():
    """All files that the stamp covers."""
    return {name for place in kernel_files.ROOMS for name in kernel_files.sources(PACKAGE / place, f"{place}/")}


def test_the_stamp_covers_all_kernels_and_all_they_use():
    covered = sources()
    files = {file.relative_to(PACKAGE).as_posix(): file for file in PACKAGE.rglob("*.py")}
    decorated = {name for name, file in files.items() if ("jit", "base/jit/__init__.py") in imported(file)}
    numbers = ("instructions",)
    assert (
        decorated
        | {
            "base/jit/kernel_files.py",
            "learn/estimating/tiles.py",
            "learn/discovering/scoring/kinds.py",
            *(f"engines/tape/{name}.py" for name in numbers),
        }
        == covered
    )
    assert {name for name, file in files.items() if "numba.njit(" in file.read_text()} == {"base/jit/cached_njit.py"}
    modules = (
        count_kernels,
        traceback_kernels,
        diagram_kernels,
        listing_kernels,
        exponential,
        underflow_flag,
        tape_kernels,
        opcodes,
        loss_kernels,
        score_kernels,
        order_kernels,
        graph_kernels,
        cluster_kernels,
        message_kernels,
        dense_kernels,
        anneal_kernels,
    )
    assert {Path(module.__file__).relative_to(PACKAGE).as_posix() for module in modules} == decorated
    for module in modules:
        own = {f for f in vars(module).values() if isinstance(f, numba.core.dispatcher.Dispatcher)}
        used = {name for f in own for name in f.py_func.__code__.co_names}
        assert {source for name, source in imported(Path(module.__file__)) if name in used} <= covered
        assert all(isinstance(f._cache, cached_njit.KernelCache) for f in own)


def test_the_stamp_changes_with_the_text_of_any_kernel(tmp_path, monkeypatch):
    shutil.copytree(PACKAGE, tmp_path / "tacit", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(kernel_files, "files", lambda package: tmp_path / package)
    seen = {kernel_files.stamp.__wrapped__()}
    for source in sources():
        with (tmp_path / "tacit" / source).open("a") as file:
            file.write("# another\n")
        seen.add(kernel_files.stamp.__wrapped__())
    assert len(seen) == 1 + len(sources())
    monkeypatch.setattr(kernel_files, "numba_version", lambda: "another")
    assert kernel_files.stamp.__wrapped__() not in seen
