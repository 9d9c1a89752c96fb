"""The exponential of the kernels against the library's."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tacit.engines.tape.exponential import exp_of_negative


@given(st.floats(-708, 0))
def test_within_one_unit_in_the_last_place(x):
    assert abs(exp_of_negative(x) - math.exp(x)) <= np.spacing(math.exp(x))


def test_far_below_the_range_it_is_next_to_nothing():
    assert exp_of_negative(0.0) == 1.0
    assert 0 < exp_of_negative(-1e6) < 1e-300
    assert 0 < exp_of_negative(-math.inf) < 1e-300
