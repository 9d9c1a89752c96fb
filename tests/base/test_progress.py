"""What people see while work takes long, and others do not."""

import io
import sys
import threading
import time
from types import SimpleNamespace

import IPython.display
import pytest

from tacit.base.progress import Notice, Progress, in_notebook, is_terminal, is_watched
from tacit.learn.progress_line import Bar, Line


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def notebook(monkeypatch):
    """What a notebook's kernel shows: each output, and what it was replaced by."""
    shown = []

    def display(content, raw, display_id):
        shown.append([content["text/plain"]])
        return SimpleNamespace(update=lambda content, raw: shown[-1].append(content["text/plain"]))

    monkeypatch.setattr(IPython, "get_ipython", lambda: SimpleNamespace(kernel=object()))
    monkeypatch.setattr(IPython.display, "display", display)
    return shown


def test_a_notebook_is_recognised_without_loading_anything(monkeypatch, notebook):
    assert in_notebook()
    assert is_watched(io.StringIO())
    monkeypatch.setattr(IPython, "get_ipython", lambda: None)
    assert not in_notebook()
    monkeypatch.setattr(IPython, "get_ipython", object)  # IPython in a terminal
    assert not in_notebook()
    monkeypatch.delitem(sys.modules, "IPython")
    assert not is_watched(io.StringIO())
    assert "IPython" not in sys.modules


def test_progress_in_a_notebook_is_one_line_that_is_replaced(notebook):
    bar = Bar(10, True)
    for done in range(1, 6):
        bar.show(done, 5 * done, "loss 0.1")
    bar.end("loss 0.05")
    (texts,) = notebook
    assert texts[0].startswith("██")
    assert len(texts) < 5  # not with every step
    assert texts[-1].startswith("loss 0.05")
    assert "\r" not in "".join(texts)
    Line(False).end("nothing")
    assert len(notebook) == 1


def test_what_takes_long_is_said_once():
    terminal, pipe = Terminal(), io.StringIO()
    for stream in (terminal, pipe):
        notice = Notice(stream, 0.01, in_a_log=0.02)
        notice.begin("compiling")
        notice.begin("compiling inside")
        notice.end()
        time.sleep(0.1)
        notice.end()
        notice.begin("compiling again")
        time.sleep(0.05)
        notice.end()
        assert stream.getvalue() == "tacit: compiling\n"
    later = Notice(terminal, 0.01, soon=0.0)
    for _ in range(2):
        later.begin("compiling more")
        time.sleep(0.1)
        later.end()
    assert terminal.getvalue() == "tacit: compiling\n" + 2 * "tacit: compiling more\n"


def test_a_log_hears_of_it_later_than_a_person():
    terminal, pipe = Terminal(), io.StringIO()
    for stream in (terminal, pipe):
        notice = Notice(stream, 0.01, in_a_log=60.0)
        notice.begin("compiling")
        time.sleep(0.1)
        notice.end()
    assert (terminal.getvalue(), pipe.getvalue()) == ("tacit: compiling\n", "")


def test_many_short_waits_are_a_long_one(monkeypatch):
    pipe, clock = io.StringIO(), [0.0]
    monkeypatch.setattr("tacit.base.progress.time.monotonic", lambda: clock[0])
    notice = Notice(pipe, soon=5.0, in_a_log=10.0)
    for number in range(4):
        notice.begin(f"compiling {number}")
        if number == 3:  # 12 seconds are over
            time.sleep(0.1)
        clock[0] += 4.0
        notice.end()
    assert pipe.getvalue() == "tacit: compiling 3\n"


def test_what_is_quick_is_not_said():
    terminal = Terminal()
    notice = Notice(terminal, 0.2)
    notice.begin("compiling")
    notice.end()
    time.sleep(0.3)
    assert terminal.getvalue() == ""


@pytest.mark.parametrize("closed", [False, True])
def test_without_a_console_nothing_is_watched(monkeypatch, closed):
    stream = Terminal() if closed else None
    if stream is not None:
        stream.close()
    monkeypatch.setattr(sys, "stderr", stream)
    assert not is_terminal(stream)
    assert not is_watched(sys.stderr)
    notice = Notice(patience=0.01)
    notice.begin("compiling")
    time.sleep(0.05)
    notice.end()
    Line(True).end("done")
    Bar(3, True).show(1, 1, "loss")


def test_a_console_that_closes_meanwhile_is_not_written_to(capfd):
    terminal = Terminal()
    notice = Notice(terminal, 0.05)
    notice.begin("compiling")
    terminal.close()
    time.sleep(0.2)
    notice.end()
    assert capfd.readouterr() == ("", "")


def test_progress_is_a_line_that_goes_again():
    stream = Terminal()
    with Progress("marginals", 10, stream, patience=0.0) as progress:
        progress.advance(4)
        assert "\rtacit: marginals: 40%, about 0 s left" in stream.getvalue().replace("\x1b[2K", "")
        progress.advance(9)  # some of it was done again
        time.sleep(0.11)
        progress.advance(0)
        assert "100%" in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[2K")


@pytest.mark.parametrize("stream", [Terminal(), io.StringIO()])
def test_progress_of_short_work_and_in_files_is_not_shown(stream):
    with Progress("marginals", 2, stream, patience=1e3 if stream.isatty() else 0.0) as progress:
        progress.advance(1)
    assert not stream.getvalue()


def test_progress_of_other_threads_is_not_shown():
    stream = Terminal()

    def work():
        with Progress("marginals", 2, stream, patience=0.0) as progress:
            progress.advance(1)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert not stream.getvalue()
