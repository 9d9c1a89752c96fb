"""Words and numbers as people read them."""

import pytest

from tacit.base.text import bars, large


@pytest.mark.parametrize(("number", "text"), [(1, "1"), (12345, "12,345"), (2**2000, "about 10^602")])
def test_large_numbers_are_rounded_to_a_power_of_ten(number, text):
    assert large(number) == text


def test_bars_are_as_long_as_the_probabilities():
    assert bars(["yes", 0], [0.75, 0.25], width=4) == "yes  0.750000  ███\n  0  0.250000  █"
