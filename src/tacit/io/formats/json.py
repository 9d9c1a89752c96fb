"""Our own format: one versioned JSON document per network, loss-free for float64. See docs/format.md."""

from __future__ import annotations

from tacit.base.errors import FormatError
from tacit.io.parsing.content import check_nodes, is_packed, parse_json
from tacit.model.as_dict import document_text, network_from_dict, network_to_dict
from tacit.query.network import Network


def parse(data: bytes, source: str) -> Network:
    """The network in the content of a file; errors name the file, `source`."""
    try:
        document = parse_json(data.decode("utf-8"))
        if is_packed(source) and isinstance(document, dict) and isinstance(document.get("nodes"), list):
            check_nodes(len(document["nodes"]))
        return network_from_dict(document, Network)
    except UnicodeDecodeError as error:
        raise FormatError(f"{source}: not a text file: byte {error.start} is not UTF-8") from None
    except FormatError as error:
        raise FormatError(f"{source}: {error}") from None


def compose(net: Network) -> str:
    """A network as a JSON document, one node per line: readable, and small differences stay small."""
    return document_text(network_to_dict(net))
