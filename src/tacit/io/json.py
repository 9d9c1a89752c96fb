"""Our own format: one versioned JSON document per network, loss-free for float64. See docs/format.md."""

from __future__ import annotations

import json
from typing import Any

from tacit.errors import FormatError
from tacit.io.content import check_nodes, is_packed
from tacit.network import Network
from tacit.plain import network_from_dict, network_to_dict


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


def parse_json(text: str) -> Any:
    """What a JSON text says; an error names line and column."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise FormatError(f"line {error.lineno}, column {error.colno}: {error.msg}") from None
    except (ValueError, RecursionError) as error:  # an integer of thousands of digits, or deep nesting
        raise FormatError(str(error)) from None


def compose(net: Network) -> str:
    """A network as a JSON document, one node per line: readable, and small differences stay small."""
    data = network_to_dict(net)
    nodes = data.pop("nodes")
    head = json.dumps(data, ensure_ascii=False, indent=1)[1:-2]
    lines = ",\n".join("  " + json.dumps(node, ensure_ascii=False, allow_nan=False) for node in nodes)
    document = "{" + head + ',\n "nodes": [\n' + lines + "\n ]\n}\n"
    return document.encode("utf-8", "backslashreplace").decode("utf-8")  # lone surrogates become JSON escapes
