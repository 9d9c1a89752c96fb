"""Networks that are ready to use: of medicine, and those of the paper."""

from tacit.examples.medicine import alarm, asia, kidney_stones
from tacit.examples.paper import abc, chain, diamond, etq, hmm, layer, noisy_or_classifier, split_layer

__all__ = [
    "abc",
    "alarm",
    "asia",
    "chain",
    "diamond",
    "etq",
    "hmm",
    "kidney_stones",
    "layer",
    "noisy_or_classifier",
    "split_layer",
]


def __dir__() -> list[str]:
    return __all__
