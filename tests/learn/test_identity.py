"""What tells one loss from another: the same in every process, different wherever the loss may be."""

import functools
import json
import subprocess
import sys
import textwrap
from types import ModuleType

import numpy as np
import pytest
from numba import njit
from scipy.special import logsumexp, xlogy

from tacit import TacitError
from tacit.learn.identity import identity


def text(function):
    return json.dumps(identity(function, "loss"))


def power(n):
    return lambda p, y: (p - y) ** n


def scaled(factor, shift=0.0):
    def loss(p, y, *, scale=factor):
        return scale * helper(p, y) + shift

    return loss


def helper(p, y):
    return p - y


def other_helper(p, y):
    return y - p


class Huber:
    """A loss with settings of its own."""

    def __init__(self, delta):
        self.delta = delta

    def __call__(self, p, y):
        return self.cost(p - y)

    def cost(self, error):
        return np.minimum(abs(error), self.delta)


class Steep(Huber):
    def cost(self, error):
        return np.minimum(error**2, self.delta)


def defined(source, **names):
    """A function from source text, with globals of its own."""
    space = {"__name__": "own", "np": np, **names}
    exec(textwrap.dedent(source), space)
    return space["loss"]


def recursive(n):
    def loss(p, y):
        return p if n == 0 else loss(p, y)

    return loss


def module(**attributes):
    made = ModuleType("users_own")
    vars(made).update(attributes)
    return made


SUM = "def loss(p, y):\n    return np.sum(p - y) * FACTOR"
ATTRIBUTE = "def loss(p, y):\n    return settings.inner.FACTOR * p"

PAIRS = {
    "closure cell": (lambda: power(2), lambda: power(6)),
    "type of a cell": (lambda: power(2), lambda: power(2.0)),
    "cell of 0 and its negative": (lambda: power(0.0), lambda: power(-0.0)),
    "keyword default": (lambda: scaled(1.0), lambda: scaled(2.0)),
    "second cell": (lambda: scaled(1.0), lambda: scaled(1.0, 0.5)),
    "code": (lambda: lambda p, y: p + y, lambda: lambda p, y: p - y),
    "constant": (lambda: lambda p, y: 2 * p, lambda: lambda p, y: 3 * p),
    "nested constant": (lambda: lambda p, y: [q * 2 for q in p], lambda: lambda p, y: [q * 3 for q in p]),
    "attribute": (lambda: lambda p, y: p.min(), lambda: lambda p, y: p.max()),
    "default": (lambda: lambda p, y, n=2: p**n, lambda: lambda p, y, n=3: p**n),
    "array": (lambda: power(np.array([1.0, 2.0])), lambda: power(np.array([1.0, 2.5]))),
    "shape": (lambda: power(np.zeros((2, 1))), lambda: power(np.zeros((1, 2)))),
    "list": (lambda: power([1, 2]), lambda: power([2, 1])),
    "dict": (lambda: power({"a": 1}), lambda: power({"a": 2})),
    "function in a cell": (lambda: power(helper), lambda: power(other_helper)),
    "function of NumPy in a cell": (lambda: power(np.mean), lambda: power(np.median)),
    "ufunc in a cell": (lambda: power(np.sin), lambda: power(xlogy)),
    "partial": (lambda: functools.partial(helper, y=1), lambda: functools.partial(helper, y=2)),
    "partial of another": (lambda: functools.partial(helper, y=1), lambda: functools.partial(other_helper, y=1)),
    "method": (lambda: Huber(1.0).cost, lambda: Huber(2.0).cost),
    "instance": (lambda: Huber(1.0), lambda: Huber(2.0)),
    "class": (lambda: Huber(1.0), lambda: Steep(1.0)),
    "global": (lambda: defined(SUM, FACTOR=1.0), lambda: defined(SUM, FACTOR=2.0)),
    "module of one's own": (
        lambda: defined(ATTRIBUTE, settings=module(inner=module(FACTOR=1))),
        lambda: defined(ATTRIBUTE, settings=module(inner=module(FACTOR=2))),
    ),
    "recursion": (lambda: recursive(0), lambda: recursive(1)),
    "range": (lambda: power(range(3)), lambda: power(range(4))),
    "slice": (lambda: power(slice(0, 2)), lambda: power(slice(1, 2))),
    "cached": (lambda: functools.cache(power(2)), lambda: functools.cache(power(3))),
    "compiled": (lambda: njit(power(2)), lambda: njit(power(3))),
}


@pytest.mark.parametrize("name", PAIRS)
def test_losses_that_may_differ_are_told_apart(name):
    one, other = PAIRS[name]
    assert text(one()) != text(other())


@pytest.mark.parametrize("name", PAIRS)
def test_the_same_loss_made_again_is_the_same(name):
    for make in PAIRS[name]:
        assert text(make()) == text(make())


def test_library_functions_are_known_by_name():
    names = [json.dumps(identity(f, "loss")) for f in (np.mean, np.exp, xlogy, logsumexp, abs, json.dumps)]
    assert [json.loads(name)[0] for name in names] == ["named"] * 6
    assert len(set(names)) == 6


WORDS = """
import numpy as np

def make(words):
    return lambda p, y: sum(w in {"alpha", "beta", "gamma", "delta"} for w in words) + np.sum(p) + FACTOR

FACTOR = 3
loss = make({"one", "two", "three", "four", "five"})
"""


def test_it_is_the_same_in_another_process():
    """Where sets have another order."""
    script = f"import json\nfrom tacit.learn.identity import identity\n{WORDS}"
    script += "print(json.dumps(identity(loss, 'loss')))"
    environment = {"PYTHONHASHSEED": "1", "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, check=True, text=True)
    assert done.stdout.strip() == text(defined(WORDS))


CALL = "def loss(p, y):\n    return F(p)"


def nested():
    value = []
    for _ in range(10_000):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (
            power(np.random.default_rng(0)),
            r"loss uses a Generator \('n' in power.<locals>.<lambda>\)",
        ),
        (power(object()), "uses a object"),
        (power(np.array([None])), "uses a ndarray"),
        (power(module(x=1)), "uses a module"),
        (power(iter([])), "uses a list_iterator"),
        (power(nested()), "nested too deeply"),
        (defined("def loss(p, y):\n    import users_settings\n    return p"), "an import of 'users_settings'"),
        (
            defined("def loss(p, y):\n    return F(p)", F=np.frompyfunc(lambda p: p, 1, 1)),
            "uses a ufunc \\('F' in loss",
        ),
    ],
)
def test_what_cannot_be_looked_into_is_refused(loss, message):
    with pytest.raises(TacitError, match=message):
        identity(loss, "loss")
