"""Generated code on disk: bounded, whole, and never run if somebody else may have written it."""

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tacit.engines.native import code_cache as store

posix = pytest.mark.skipif(not hasattr(os, "getuid"), reason="folders are the user's own")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    found = tmp_path / "code"
    monkeypatch.setenv(store.VARIABLE, str(found))
    store._warn_once.cache_clear()
    return found


def path_of(folder, key):
    return folder / f"{key}{store.SUFFIX}"


def age(path, seconds):
    when = path.stat().st_mtime - seconds
    os.utime(path, (when, when))


def test_what_is_kept_is_found_again(folder):
    assert store.load("a") is None
    for content in (b"code", b"", b"other code"):
        store.save("a", content)
        assert store.load("a") == content
    assert [file.name for file in folder.iterdir()] == [f"a{store.SUFFIX}"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: b"",
        lambda whole: whole[:10],
        lambda whole: whole[:-1],
        lambda whole: whole[:-1] + bytes([whole[-1] ^ 1]),
        lambda whole: bytes(len(whole)),
        lambda whole: whole + b"x",
    ],
)
def test_damaged_files_are_replaced(folder, damage):
    store.save("a", b"some machine code")
    path = path_of(folder, "a")
    path.write_bytes(damage(path.read_bytes()))
    assert store.load("a") is None
    store.save("a", b"some machine code")
    assert store.load("a") == b"some machine code"


def test_what_was_not_used_for_longest_goes_first(folder, monkeypatch):
    monkeypatch.setattr(store, "SHRINK_EVERY", 1)
    monkeypatch.setattr(store, "MAX_BYTES", 3 * (1000 + store.CHECKSUM))
    for i, key in enumerate("abc"):
        store.save(key, bytes(1000))
        age(path_of(folder, key), 100 - i)
    (folder / "a note of the user").write_bytes(bytes(10_000))
    assert store.load("a") is not None  # used now
    store.save("d", bytes(1000))
    assert [key for key in "abcd" if store.load(key)] == ["a", "c", "d"]
    store.save("e", bytes(2500))
    assert store.load("e") is not None
    assert sum(file.stat().st_size for file in folder.glob(f"*{store.SUFFIX}")) <= store.MAX_BYTES
    assert (folder / "a note of the user").exists()


def test_files_of_killed_processes_go_too(folder, monkeypatch):
    store.save("a", b"x")
    left = folder / f".left{store.SUFFIX}"
    left.write_bytes(bytes(5000))
    age(left, 100)
    monkeypatch.setattr(store, "SHRINK_EVERY", 1)
    monkeypatch.setattr(store, "MAX_BYTES", 1000)
    store.save("b", b"y")
    assert not left.exists()
    assert (store.load("a"), store.load("b")) == (b"x", b"y")


@posix
@pytest.mark.parametrize("mode", [0o770, 0o777, 0o702])
def test_a_folder_that_others_can_write_is_not_used(folder, mode):
    store.save("a", b"code")
    folder.chmod(mode)
    with pytest.warns(UserWarning, match="TACIT_CACHE_DIR is .*this user alone can write"):
        assert store.load("a") is None
    store.save("b", b"code")  # warned of once
    folder.chmod(0o700)
    assert (store.load("a"), store.load("b")) == (b"code", None)


@posix
def test_a_folder_beside_which_others_can_write_is_not_used(folder):
    folder.parent.chmod(0o777)  # somebody could put another folder in its place
    with pytest.warns(UserWarning, match="TACIT_CACHE_DIR"):
        store.save("a", b"code")
    assert store.load("a") is None
    folder.parent.chmod(0o1777)  # but not here
    store.save("a", b"code")
    assert store.load("a") == b"code"


@posix
@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_can_write_is_not_run(folder, mode):
    store.save("a", b"code")
    path_of(folder, "a").chmod(mode)
    assert store.load("a") is None
    store.save("a", b"code")
    assert store.load("a") == b"code"
    assert path_of(folder, "a").stat().st_mode & 0o777 == 0o600


@posix
def test_what_belongs_to_others_is_not_run(folder, monkeypatch):
    store.save("a", b"code")
    user = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: user + 1)
    with pytest.warns(UserWarning, match="TACIT_CACHE_DIR"):
        assert store.load("a") is None
    with pytest.raises(PermissionError, match="another user"):
        store._read(path_of(folder, "a"))


@posix
def test_links_are_not_followed(folder, tmp_path, monkeypatch):
    store.save("a", b"code")
    elsewhere = tmp_path / "elsewhere"
    path_of(folder, "a").rename(elsewhere)
    path_of(folder, "a").symlink_to(elsewhere)
    assert store.load("a") is None
    before = elsewhere.read_bytes()
    store.save("a", b"other")
    assert store.load("a") == b"other"
    assert elsewhere.read_bytes() == before
    link = tmp_path / "link"
    link.symlink_to(folder)
    monkeypatch.setenv(store.VARIABLE, str(link))
    with pytest.warns(UserWarning, match="TACIT_CACHE_DIR"):
        assert store.load("a") is None


@posix
def test_a_generous_umask_changes_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv(store.VARIABLE, str(tmp_path / "new" / "code"))
    before = os.umask(0o002)
    try:
        store.save("a", b"code")
        assert store.load("a") == b"code"
    finally:
        os.umask(before)


@pytest.mark.parametrize("place", ["home", "XDG_CACHE_HOME", "neither", "no home"])
def test_the_folder_of_the_user(tmp_path, monkeypatch, place):
    monkeypatch.delenv(store.VARIABLE)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    expected = tmp_path / "home" / ".cache" / "tacit"
    if place == "XDG_CACHE_HOME":
        monkeypatch.setenv(place, str(tmp_path / "xdg"))
        expected = tmp_path / "xdg" / "tacit"
    elif place != "home":
        expected = tmp_path / f"tacit-code-{os.getuid()}"
        if place == "neither":
            (tmp_path / "home" / ".cache").write_text("no folder")
        else:
            monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as where the system knows of none
    store.save("a", b"code")
    assert path_of(expected, "a").exists()
    assert store.load("a") == b"code"


def test_nowhere_to_write(folder, monkeypatch):
    for home in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(home, os.devnull)
    monkeypatch.setattr(tempfile, "tempdir", os.devnull)
    monkeypatch.delenv(store.VARIABLE)
    store.save("a", b"code")
    assert store.load("a") is None
    monkeypatch.setenv(store.VARIABLE, f"{os.devnull}/code")
    with pytest.warns(UserWarning, match="compiled by every process"):
        store.save("a", b"code")


def test_a_full_disk_is_no_error(folder, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        store.save("a", b"code")
    assert store.load("a") is None
    assert list(folder.iterdir()) == []


def test_what_cannot_be_written_can_be_read(folder, monkeypatch):
    store.save("a", b"code")

    def refused(*_):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "utime", refused)
    assert store.load("a") == b"code"


BUSY = """
import sys
from tacit.engines.native import code_cache as store
store.SHRINK_EVERY = 1
store.MAX_BYTES = 40_000
for turn in range(120):
    key = str(turn % 7)
    found = store.load(key)
    assert found is None or found == key.encode() * 9000, len(found)
    store.save(key, key.encode() * 9000)
"""


def test_processes_that_write_the_same(folder):
    running = [subprocess.Popen([sys.executable, "-c", BUSY], stderr=subprocess.PIPE) for _ in range(3)]
    for process in running:
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors.decode()
    assert {path.name[0] for path in folder.iterdir()} <= set("0123456")
    for path in folder.iterdir():
        whole = path.read_bytes()
        assert hashlib.sha256(whole[store.CHECKSUM :]).digest() == whole[: store.CHECKSUM]
    assert sum(path.stat().st_size for path in Path(folder).iterdir()) <= 40_000
