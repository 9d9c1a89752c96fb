"""Evidence in SamIam's `.inst` files: `<instantiation><inst id="X" value="true"/></instantiation>`."""

from __future__ import annotations

from collections.abc import Mapping

from tacit.factor_graph import FactorGraph
from tacit.io.elements import Elements
from tacit.io.scanner import MAX_SHOWN, show
from tacit.labels import listed_states
from tacit.network import Network
from tacit.variable import Label, similar


def parse_evidence(data: bytes, source: str, net: Network | FactorGraph) -> dict[str, Label]:
    """What an evidence file says of a network: the state of each variable observed."""
    reader = _Reader(source, net)
    reader.read(data)
    return reader.found


class _Reader(Elements):
    def __init__(self, source: str, net: Network | FactorGraph) -> None:
        super().__init__(source)
        self.net = net
        self.depth = 0
        self.found: dict[str, Label] = {}

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        expected = ("instantiation", "inst")[self.depth] if self.depth < 2 else None
        if tag != expected:
            wanted = "nothing inside an inst" if expected is None else f"an element {expected}"
            raise self.error(f"unexpected element {show(tag)}, expected {wanted}")
        self.depth += 1
        if tag == "inst":
            self._observe(self._attribute(attributes, "id"), self._attribute(attributes, "value"))

    def end(self, tag: str) -> None:
        self.depth -= 1
        self.text.clear()  # which says nothing

    def _attribute(self, attributes: Mapping[str, str], key: str) -> str:
        if key not in attributes:
            raise self.error(f'an inst without {key}; expected <inst id="VARIABLE" value="STATE"/>')
        return attributes[key]

    def _observe(self, name: str, value: str) -> None:
        if name not in self.net:
            meant = similar(name[:MAX_SHOWN], self.net)
            raise self.error(f"the network has no variable {show(name)}{meant}")
        if name in self.found:
            raise self.error(f"variable {show(name)} is observed twice")
        labels = {str(label): label for label in self.net.states(name)}
        if value not in labels:
            states = listed_states(self.net.variable(name))
            raise self.error(f"{show(value)} is not a state of {show(name)}; expected one of {states}")
        self.found[name] = labels[value]
