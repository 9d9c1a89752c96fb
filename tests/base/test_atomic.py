"""Writing files: the old one or the new one, never a half, and nothing else changes."""

import errno
import os
import signal
import stat
import subprocess
import sys
import threading
import time

import pytest

from tacit import examples, load, save
from tacit.base import atomic
from tacit.base.atomic import write_atomically

posix = pytest.mark.skipif(os.name != "posix", reason="pipes, devices and locks of POSIX")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "net.json"


def write_text(path, text):
    write_atomically(path, lambda file: file.write(text))


@pytest.mark.parametrize(("function", "exists"), [(f, e) for f in ("fsync", "replace") for e in (True, False)])
def test_a_failing_write_leaves_the_old_file_and_nothing_else(monkeypatch, path, function, exists):
    if exists:
        save(examples.abc(), path)

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, function, fail)
    with pytest.raises(OSError, match="disk full"):
        save(examples.diamond(), path)
    assert os.listdir(path.parent) == (["net.json"] if exists else [])
    assert not exists or load(path) == examples.abc()


def test_permissions_that_cannot_be_kept_are_an_error_that_leaves_the_old_file(monkeypatch, path):
    save(examples.abc(), path)

    def fail(name, *_):
        raise PermissionError(errno.EPERM, "not allowed", name)

    monkeypatch.setattr(os, "chmod", fail)
    with pytest.raises(PermissionError, match=r"not allowed: '.*net\.json'$"):
        save(examples.diamond(), path)
    assert os.listdir(path.parent) == ["net.json"]
    assert load(path) == examples.abc()


def test_a_new_file_has_the_usual_permissions_and_an_old_one_keeps_its_own(path):
    (path.parent / "plain").touch()
    save(examples.abc(), path)
    assert path.stat().st_mode == (path.parent / "plain").stat().st_mode
    for permissions in (0o640, 0o666, 0o600):
        path.chmod(permissions)
        save(examples.abc(), path)
        assert stat.S_IMODE(path.stat().st_mode) == permissions


@posix
def test_a_private_file_is_never_readable_by_others(path):
    path.touch()
    path.chmod(0o600)
    seen = []
    write_atomically(path, lambda file: seen.append(stat.S_IMODE(os.fstat(file.fileno()).st_mode)))
    assert seen == [0o600]


def test_the_umask_of_the_process_is_left_alone(monkeypatch, path):
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("another thread may be making a file"))
    save(examples.abc(), path)
    assert load(path) == examples.abc()


def test_a_link_stays_a_link(path):
    link = path.parent / "link.json"
    link.symlink_to(path)
    save(examples.abc(), link)
    assert link.is_symlink()
    assert load(path) == examples.abc()


def test_a_long_file_name_can_be_written(tmp_path):
    path = tmp_path / ("n" * 250 + ".json")
    save(examples.abc(), path)
    assert load(path) == examples.abc()


# what is no plain file -----------------------------------------------------------------------------------------


@posix
@pytest.mark.parametrize("linked", [False, True])
def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path, linked):
    path = pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    if linked:
        path = tmp_path / "link.json"
        path.symlink_to(pipe)
    found = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_text()), daemon=True)
    reader.start()
    write_text(path, "all of it\n")
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    reader.join(10)
    assert found == ["all of it\n"]


@posix
def test_a_device_is_written_to():
    """A terminal of our own: a mistake must not be able to replace a device that others use."""
    ours, theirs = os.openpty()
    try:
        write_text(os.ttyname(theirs), "all of it")
        assert os.read(ours, 100) == b"all of it"
    finally:
        os.close(ours)
        os.close(theirs)


def test_a_folder_is_not_replaced(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(OSError, match="folder"):
        write_text(folder, "text")
    assert folder.is_dir()


# errors name the file ------------------------------------------------------------------------------------------


def test_a_full_disk_is_named(path):
    def write(file):
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match=r"No space left on device: '.*net\.json'$") as error:
        write_atomically(path, write)
    assert error.value.errno == errno.ENOSPC
    assert os.listdir(path.parent) == []


def test_a_missing_folder_is_named_with_the_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"No such file or directory: '.*missing.net\.json'$"):
        save(examples.abc(), tmp_path / "missing" / "net.json")


def test_an_error_about_another_file_keeps_its_name(path):
    with pytest.raises(FileNotFoundError, match=r"input\.csv'$"):
        write_atomically(path, lambda file: (path.parent / "input.csv").read_text())


# killed writers ------------------------------------------------------------------------------------------------

KILLED = """
import os, signal, sys
from tacit.base.atomic import write_atomically
write_atomically(sys.argv[1], lambda file: os.kill(os.getpid(), signal.SIGKILL))
"""


def age(folder, seconds):
    for entry in folder.iterdir():
        os.utime(entry, (time.time() - seconds,) * 2)


@posix
def test_what_a_killed_writer_left_is_removed_by_the_next(path):
    command = [sys.executable, "-c", KILLED, str(path)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    assert subprocess.run(command, env=environment, check=False).returncode == -signal.SIGKILL
    (left,) = os.listdir(path.parent)
    write_text(path, "young ones may have a writer that has not locked them yet")
    assert sorted(os.listdir(path.parent)) == [left, "net.json"]
    age(path.parent, atomic.STALE_SECONDS + 1)
    write_text(path, "new")
    assert os.listdir(path.parent) == ["net.json"]


@posix
def test_the_file_of_a_slow_writer_is_left_alone(path):
    def slow(file):
        file.write("slow")
        age(path.parent, 10 * atomic.STALE_SECONDS)
        write_text(path.parent / "other.json", "other")

    write_atomically(path, slow)
    assert path.read_text() == "slow"
    assert sorted(os.listdir(path.parent)) == ["net.json", "other.json"]


def test_only_our_own_files_are_removed(path):
    for name in (".tacit-batch", "tacit-1.tmp", ".tacit-1.tmp.json", "other.tmp"):
        (path.parent / name).touch()
    age(path.parent, 10 * atomic.STALE_SECONDS)
    write_text(path, "new")
    assert len(os.listdir(path.parent)) == 5
