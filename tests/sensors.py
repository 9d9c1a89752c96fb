"""A network of a machine with sensors: two discrete causes, and readings of every kind of density below them."""

from tacit import Gaussian, LogNormal, Network, Poisson

READINGS = {"heat": [82.5, None, 60.0], "x": [1.0, 0.5, None], "trips": [3, None, 0], "shake": [None, 1.5, 1.0]}


def sensors() -> Network:
    """Load and Fault are discrete; heat has both as parents, x and y are one node, "x, y"."""
    net = Network("sensors")
    net.add("Load", states=["low", "mid", "high"], cpt=[0.3, 0.5, 0.2])
    net.add("Fault", ["Load"], cpt=[[0.1, 0.9], [0.2, 0.8], [0.4, 0.6]])
    net.add("heat", ["Fault", "Load"], cpt=Gaussian([[80, 85, 95], [60, 65, 75]], [[5, 6, 8], [3, 4, 6]]))
    net.add(("x", "y"), ["Fault"], cpt=Gaussian([[1, 2], [0, 0]], cov=[[[1, 0.5], [0.5, 2]], [[1, 0], [0, 1]]]))
    net.add("trips", ["Fault"], cpt=Poisson([4.0, 0.5]))
    net.add("shake", ["Load"], cpt=LogNormal([0.0, 0.5, 1.0], 0.4))
    return net
