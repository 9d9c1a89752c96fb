"""The networks of the bnlearn repository, from the files inside the pgmpy wheel (which is not imported)."""

from functools import cache
from importlib.util import find_spec
from pathlib import Path

from tacit import CPT, Network, read

# fmt: off
NAMES = (
    "asia", "cancer", "earthquake", "sachs", "survey", "alarm", "barley", "child", "insurance", "mildew", "water",
    "hailfinder", "hepar2", "win95pts", "munin1", "andes", "diabetes", "link", "pathfinder", "pigs",
    "munin", "munin2", "munin3", "munin4",
)
# fmt: on


def folder() -> Path:
    """Where pgmpy keeps its example models."""
    spec = find_spec("pgmpy")
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError("the example networks are inside pgmpy's wheel: pip install --no-deps pgmpy")
    return Path(spec.submodule_search_locations[0]) / "utils" / "example_models"


@cache
def network(name: str) -> Network:
    """A network by its name, e.g. "alarm"."""
    return read(folder() / f"{name}.bif.gz")


@cache
def scaled(name: str, learn: bool = False) -> Network:
    """A network whose rows sum to 1, also for commits of old, which left them as they are rounded in the file."""
    net, made = network(name), Network(name)
    for node in net:
        table = net.table(node)
        cpt = CPT(table / table.sum(axis=-1, keepdims=True), learn=learn)
        made.add(node, net.parents(node), net.states(node), cpt)
    return made


def leaves(net: Network) -> list[str]:
    """The variables without children."""
    parents = {p for n in net for p in net.parents(n)}
    return [n for n in net if n not in parents]


def widest_root(net: Network) -> str:
    """The root with the most descendants."""
    descendants = dict.fromkeys(net.variables, 0)
    for name in net:
        for ancestor in net.ancestors(name):
            descendants[ancestor] += 1
    return max((n for n in net if not net.parents(n)), key=lambda n: descendants[n])
