"""Well-known networks about patients."""

from __future__ import annotations

import json
from importlib.resources import files

import numpy as np

from tacit.query.network import Network


def asia() -> Network:
    """A chest clinic, with 8 variables: is it tuberculosis, lung cancer or bronchitis?

    Lauritzen and Spiegelhalter, Journal of the Royal Statistical Society B 50 (1988).

    >>> asia().posterior("lung", {"xray": "yes", "smoke": "no"}).round(3)
    array([[0.142, 0.858]])
    """
    return _stored("asia")


def alarm() -> Network:
    """A monitor of patients under anaesthesia, with 37 variables.

    Beinlich, Suermondt, Chavez and Cooper, Proceedings of the European Conference on AI in Medicine (1989).

    >>> alarm()
    Network('alarm': 37 nodes, 46 edges, 752 parameters)
    """
    return _stored("alarm")


def kidney_stones() -> Network:
    """Size -> treatment, size and treatment -> recovery: Simpson's paradox, with the numbers of 700 patients.

    Open surgery (A) and percutaneous nephrolithotomy (B), for small stones (under 2 cm) and large ones: Charig, Webb,
    Payne and Wickham, British Medical Journal 292 (1986). A does better with small stones and with large ones, yet
    worse in all, since it was mostly given to patients with large stones. See `Network.do`.

    >>> net = kidney_stones()
    >>> for size in ("small", "large"):
    ...     net.posterior("recovery", {"size": size, "treatment": ["A", "B"]})[:, 0].round(3)
    array([0.931, 0.867])
    array([0.73 , 0.688])
    >>> net.posterior("recovery", {"treatment": ["A", "B"]})[:, 0].round(3)
    array([0.78 , 0.826])
    """
    patients = np.array([[87, 270], [263, 80]])  # by size and treatment
    recovered = np.array([[81, 234], [192, 55]])
    net = Network("kidney stones")
    net.add("size", states=["small", "large"], cpt=patients.sum(axis=1) / patients.sum())
    net.add("treatment", ["size"], ["A", "B"], patients / patients.sum(axis=1, keepdims=True))
    rate = recovered / patients
    net.add("recovery", ["size", "treatment"], ["yes", "no"], np.stack([rate, 1 - rate], axis=-1))
    return net


def _stored(name: str) -> Network:
    """A network from its file in `networks`."""
    text = files("tacit.examples").joinpath("networks", f"{name}.json").read_text(encoding="utf-8")
    return Network.from_dict(json.loads(text))
