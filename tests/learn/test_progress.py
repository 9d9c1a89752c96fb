"""The line in the terminal."""

import io

from tacit.learn.progress_line import Bar, clock


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_sees_loss_rate_and_time_left():
    stream = Terminal()
    bar = Bar(10, True, before=(2, 50), stream=stream)
    bar.started -= 4.0  # four seconds ago
    bar.show(4, 250, "loss 0.1")
    assert "4/10  loss 0.1" in stream.getvalue()
    assert "50 steps/s" in stream.getvalue()
    assert "12.0 s left" in stream.getvalue()
    bar.end("loss 0.05")
    assert stream.getvalue().endswith("\n")


def test_other_streams_see_nothing():
    stream = io.StringIO()
    Bar(10, True, stream=stream).show(1, 1, "loss")
    quiet = Terminal()
    Bar(10, False, stream=quiet).show(1, 1, "loss")
    assert stream.getvalue() == quiet.getvalue() == ""


def test_clock():
    assert [clock(s) for s in (3.14, 59.94, 60, 3725)] == ["3.1 s", "59.9 s", "1:00 min", "62:05 min"]
