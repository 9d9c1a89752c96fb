"""Evidence in SamIam's `.inst` files: `<instantiation><inst id="X" value="true"/></instantiation>`."""

from __future__ import annotations

from collections.abc import Mapping

from tacit.io.parsing.elements import Elements
from tacit.io.parsing.scanner import MAX_SHOWN, show
from tacit.model.elements.variable import Label, listed_states, similar
from tacit.model.factor_graph import FactorGraph
from tacit.query.network import Network


def parse_evidence(data: bytes, source: str, net: Network | FactorGraph) -> dict[str, Label]:
    """What an evidence file says of a network: the state of each variable observed."""
    reader = _InstReader(source, net)
    reader.read(data)
    return reader.states


class _InstReader(Elements):
    def __init__(self, source: str, net: Network | FactorGraph) -> None:
        super().__init__(source)
        self.net = net
        self.depth = 0
        self.states: dict[str, Label] = {}

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        expected = ("instantiation", "inst")[self.depth] if self.depth < 2 else None
        if tag != expected:
            instead = "nothing inside an inst" if expected is None else f"an element {expected}"
            raise self.error(f"unexpected element {show(tag)}, expected {instead}")
        self.depth += 1
        if tag == "inst":
            for key in ("id", "value"):
                if key not in attributes:
                    raise self.error(f'an inst without {key}; expected <inst id="VARIABLE" value="STATE"/>')
            name, value = attributes["id"], attributes["value"]
            if name not in self.net:
                raise self.error(f"the network has no variable {show(name)}{similar(name[:MAX_SHOWN], self.net)}")
            if name in self.states:
                raise self.error(f"variable {show(name)} is observed twice")
            labels = {str(label): label for label in self.net.states(name)}
            if value not in labels:
                expected = listed_states(self.net.variable(name))
                raise self.error(f"{show(value)} is not a state of {show(name)}; expected one of {expected}")
            self.states[name] = labels[value]

    def end(self, tag: str) -> None:
        self.depth -= 1
        self.text.clear()  # which is ignored
