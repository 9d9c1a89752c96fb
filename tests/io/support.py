"""A network that the tests of several formats share."""

import numpy as np

from tacit import CPT, Mux, Network, NoisyOr, TestingCPT

nan = np.nan


def every_kind(name="every\nkind", c=" C\0"):
    """A network with one CPT of each kind, and odd names of itself and of a node."""
    net = Network(name)
    net.add("A", cpt=CPT([0.3, 0.7], learn=True, tie="table"))
    net.add("B", ["A"], [0, 1.5, "ünï\n"], [[0.2, nan, nan], [0.5, 0.25, 0.25]])
    tables = [[0.9, 0.1], [1, 0]], [[0.2, 0.8], [nan, nan]], [0.5, nan]
    net.add(c, ["A"], cpt=TestingCPT(*tables, [">=", "<"], gamma=16, learn=True, tie="testing"))
    net.add("D", ["A", c], cpt=CPT.from_function(lambda a, c: "true" if a == c else [0.5, 0.5]))
    net.add("E", ["B", c], cpt=NoisyOr([[0.0, 0.1, 0.4], 0.6], leak=0.01))
    net.add("F", cpt=Mux("A", [c, "D"]))
    return net
