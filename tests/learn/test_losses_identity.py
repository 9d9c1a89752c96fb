"""What tells one loss from another: what it computes, however it was made."""

import functools
import subprocess
import sys

import numpy as np
import pytest
from numba import njit

from tacit import TacitError
from tacit.learn.fitting.losses import identity


def both(values, slopes):
    return values.sum(axis=1), slopes


def power(n):
    return lambda p, y: both(abs(p - y) ** n, n * (p - y))


def scaled(factor, shift=0.0):
    def loss(p, y, *, scale=factor):
        return both(scale * (p - y) ** 2 + shift, 2 * scale * (p - y))

    return loss


class Huber:
    """A loss with settings of its own."""

    def __init__(self, delta):
        self.delta = delta

    def __call__(self, p, y):
        return both(self.cost(p - y), p - y)

    def cost(self, error):
        return np.minimum(abs(error), self.delta)


class Steep(Huber):
    def cost(self, error):
        return np.minimum(error**2, self.delta)


def safe_log(epsilon):
    """Losses that differ only where a probability is tiny."""
    return lambda p, y: both(-y * np.log(p + epsilon), -y / (p + epsilon))


@njit
def squares(p, y):
    return ((p - y) ** 2).sum(axis=1), 2 * (p - y)


@njit
def halves(p, y):
    return 0.5 * ((p - y) ** 2).sum(axis=1), p - y


PAIRS = {
    "closure": (lambda: power(2), lambda: power(6)),
    "keyword default": (lambda: scaled(1.0), lambda: scaled(2.0)),
    "second cell": (lambda: scaled(1.0), lambda: scaled(1.0, 0.5)),
    "array": (lambda: scaled(np.array([1.0, 2.0])), lambda: scaled(np.array([1.0, 2.5]))),
    "partial": (lambda: functools.partial(scaled(1.0), scale=3.0), lambda: functools.partial(scaled(1.0), scale=4.0)),
    "instance": (lambda: Huber(0.2), lambda: Huber(0.4)),
    "class": (lambda: Huber(0.2), lambda: Steep(0.2)),
    "tiny probabilities": (lambda: safe_log(1e-9), lambda: safe_log(1e-12)),
    "slopes alone": (lambda: lambda p, y: both(p, p), lambda: lambda p, y: both(p, y)),
    "compiled": (lambda: squares, lambda: halves),
    "name": (lambda: "mse", lambda: "cross_entropy"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PAIRS)
def test_losses_that_differ_are_told_apart(name):
    one, other = PAIRS[name]
    assert identity(one(), 2) != identity(other(), 2)


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n == "compiled")) for n in PAIRS])
def test_the_same_loss_made_again_is_the_same(name):
    for make in PAIRS[name]:
        assert identity(make(), 2) == identity(make(), 2)


def test_it_is_what_a_loss_computes_that_counts_not_how():
    assert identity(power(2.0), 2) == identity(power(np.float64(2)), 2)


def test_it_is_the_same_in_another_process():
    script = (
        "import numpy as np\nfrom tacit.learn.fitting.losses import identity\n"
        "print(identity(lambda p, y: ((abs(p - y) ** 2).sum(axis=1), 2 * (p - y)), 2))"
    )
    environment = {"PYTHONHASHSEED": "1", "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, check=True, text=True)
    assert done.stdout.strip() == identity(power(2), 2)


def test_a_random_loss_is_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(TacitError, match="other numbers each time"):
        identity(lambda p, y: both(p + rng.random(p.shape), p), 2)


def test_a_loss_cannot_change_what_it_is_asked_about():
    def greedy(p, y):
        p[:] = 0.0
        return both(p, p)

    assert identity(greedy, 2) == identity(greedy, 2)
