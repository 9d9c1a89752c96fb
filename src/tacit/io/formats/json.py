"""Our own format: one versioned JSON document per network, loss-free for float64. See docs/format.md."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from tacit.base.errors import FormatError
from tacit.io.parsing.content import check_nodes, is_packed, parse_json
from tacit.model.as_dict import network_from_dict, network_to_dict
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
    data = network_to_dict(net)
    lists = {key: data.pop(key) for key in ("nodes", "values") if key in data}
    head = json.dumps(data, ensure_ascii=False, indent=1)[1:-2]
    tail = "".join(f',\n "{key}": [\n{_lines(items)}\n ]' for key, items in lists.items())
    document = "{" + head + tail + "\n}\n"
    return document.encode("utf-8", "backslashreplace").decode("utf-8")  # lone surrogates become JSON escapes


def _lines(items: Iterable[Any]) -> str:
    """Each item on a line of its own."""
    return ",\n".join("  " + json.dumps(item, ensure_ascii=False, allow_nan=False) for item in items)
