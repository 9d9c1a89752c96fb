"""Networks as plain data: dictionaries, lists, strings and numbers, loss-free for float64. See docs/format.md."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from types import NoneType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.base.errors import FormatError, NetworkError, TacitError
from tacit.model.cpt import CPT, AnyCPT, TestingCPT
from tacit.model.densities import Density, Gaussian, LogNormal, Poisson
from tacit.model.model import Model
from tacit.model.rules import FunctionCPT, Mux, NoisyOr

FORMAT = "tacit-network"
# the second one has a selection, which earlier releases would ignore, and more than two tables; the third one has bins,
# the fourth one densities, and the fifth one value nodes
VERSIONS = (1, 2, 3, 4, 5)
DENSITIES: dict[str, type[Gaussian | LogNormal | Poisson]] = {
    kind.kind: kind for kind in (Gaussian, LogNormal, Poisson)
}
M = TypeVar("M", bound=Model)


def network_to_dict(net: Model) -> dict[str, Any]:
    """A network as plain data; NaN (to be learned) becomes None."""
    nodes: list[dict[str, Any]] = []
    for name in net.variables:
        lists = {"states": list(net.states(name)), "parents": list(net.parents(name))}
        bins = {} if (edges := net.bins(name)) is None else {"bins": edges_to_json(edges)}
        columns = {"columns": list(net.variable(name).columns)} if net.variable(name).continuous else {}
        try:
            cpt = cpt_to_dict(net.cpt(name))
        except NetworkError as error:
            raise NetworkError(f"node {name!r}: {error}") from None
        nodes.append({"name": name, **lists, **bins, **columns, "cpt": cpt})
    selection = {} if net.selection == "ancestral" else {"selection": net.selection}
    version = 2 if selection or any("tables" in node["cpt"] for node in nodes) else 1
    version = 3 if any("bins" in node for node in nodes) else version
    version = 4 if any("columns" in node for node in nodes) else version
    values = [
        {"name": name, "parents": list(own.parents), "table": own.table.tolist()}
        for name, own in net.value_nodes.items()
    ]
    head = {"format": FORMAT, "version": 5 if values else version, "name": net.name, **selection}
    return {**head, "nodes": nodes} | ({"values": values} if values else {})


def document_text(data: Mapping[str, Any]) -> str:
    """A network that is plain data as a JSON document, one node per line; lists of other keys likewise."""
    lists = {key: items for key, items in data.items() if isinstance(items, list)}
    head = json.dumps({key: data[key] for key in data if key not in lists}, ensure_ascii=False, indent=1)[1:-2]
    tail = "".join(f',\n "{key}": [\n{_lines(items)}\n ]' for key, items in lists.items())
    document = "{" + head + tail + "\n}\n"
    return document.encode("utf-8", "backslashreplace").decode("utf-8")  # lone surrogates become JSON escapes


def _lines(items: Iterable[Any]) -> str:
    """Each item on a line of its own."""
    return ",\n".join("  " + json.dumps(item, ensure_ascii=False, allow_nan=False) for item in items)


def network_from_dict(data: Any, kind: type[M]) -> M:
    """The network, of a given class, that `network_to_dict` described; an error names the place of the fault."""
    top = Reader(data, "document")
    if top.get("format", str) != FORMAT:
        raise FormatError(f"document.format is {data['format']!r}, expected {FORMAT!r}")
    if top.get("version", int) not in VERSIONS:
        versions = f"{VERSIONS[0]} to {VERSIONS[-1]}"
        raise FormatError(f"document.version {data['version']!r} is not known; this release reads versions {versions}")
    try:
        net = kind(top.get("name", str, NoneType), top.get("selection", str, NoneType) or "ancestral")
    except NetworkError as error:
        raise FormatError(f"document: {error}") from None
    for i, item in enumerate(top.get("nodes", list)):
        node = Reader(item, f"nodes[{i}]")
        parents = node.get("parents", list)
        try:
            name, states = node.get("name", str), node.get("states", list)
            bins = node.array("bins", _edges) if "bins" in item else None
            cpt = cpt_from_dict(node.get("cpt", dict), f"nodes[{i}].cpt", len(parents))
            if "columns" in item:
                net.add(tuple(node.get("columns", list)), parents, cpt=cpt)
            else:
                net.add(name, parents, states, cpt, bins=bins)
        except FormatError:
            raise
        except TacitError as error:
            raise FormatError(f"nodes[{i}]: {error}") from None
    for i, item in enumerate(top.get("values", list, NoneType) or ()):
        value = Reader(item, f"values[{i}]")
        table = value.array("table", _floats, list, float, int)
        try:
            net.value(value.get("name", str), value.get("parents", list), table)
        except TacitError as error:
            raise FormatError(f"values[{i}]: {error}") from None
    return net


class Reader:
    """A JSON object whose faults are reported with their place."""

    def __init__(self, data: Any, place: str) -> None:
        if not isinstance(data, Mapping):
            raise FormatError(f"{place} is {_kind_of(data)}, expected an object")
        self.data, self.place = data, place

    def get(self, key: str, *kinds: type) -> Any:
        if key not in self.data:
            if NoneType in kinds:
                return None
            raise FormatError(f"{self.place} has no {key!r}")
        value = self.data[key]
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            expected = " or ".join(_KINDS[kind] for kind in kinds)
            raise FormatError(f"{self.place}.{key} is {_kind_of(value)}, expected {expected}")
        return value

    def array(self, key: str, convert: Callable[[Any], Any], *kinds: type) -> Any:
        value = self.get(key, *(kinds or (list,)))
        try:
            return convert(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise FormatError(f"{self.place}.{key} is not a regular array: {error}") from None


_KINDS = {
    str: "a string",
    int: "an integer",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "an object",
    NoneType: "null",
}


def _kind_of(value: Any) -> str:
    return _KINDS.get(type(value), type(value).__name__)


def cpt_to_dict(cpt: AnyCPT) -> dict[str, Any]:
    """A CPT as plain data; NaN (to be learned) becomes None."""
    tie = {} if cpt.tie is None else {"tie": cpt.tie}
    match cpt:
        case CPT():
            return {"kind": "table", "table": _nullable(cpt.table), "learn": cpt.learn} | tie
        case TestingCPT():
            tables = [_nullable(table) for table in cpt.tables]
            named = {"plus": tables[1], "minus": tables[0]} if len(tables) == 2 else {"tables": tables}
            tests = {"thresholds": _nullable(cpt.thresholds), "test": cpt.test.tolist()}
            return {"kind": "testing", **named, **tests, "gamma": cpt.gamma, "learn": cpt.learn} | tie
        case FunctionCPT():
            return {"kind": "function", "codes": cpt.codes.tolist(), "rows": cpt.rows.tolist()}
        case NoisyOr():
            numbers = {"kind": "noisy-or", "causes": [c.tolist() for c in cpt.causes], "leak": cpt.leak}
            return numbers | ({"learn": True} if cpt.learn else {})
        case Mux():
            return {"kind": "mux", "selector": cpt.selector, "inputs": list(cpt.inputs)}
        case Gaussian() | LogNormal() | Poisson():
            parts = {part: _nullable(numbers) for part, numbers in cpt.parts().items()}
            return {"kind": cpt.kind, **parts, "learn": cpt.learn} | tie
        case Density():
            remedy = "give the node a Gaussian, LogNormal or Poisson, or keep the code that builds the network"
            raise NetworkError(f"a Density is a function of Python, which no file holds; {remedy}")


def cpt_from_dict(data: Any, place: str, parents: int) -> AnyCPT:
    """The CPT that `cpt_to_dict` described, of a node with so many parents; an error names the place of the fault."""
    item = Reader(data, place)
    kind = item.get("kind", str)
    if kind == "table":
        return CPT(item.array("table", _floats), item.get("learn", bool), item.get("tie", str, NoneType))
    if kind == "testing":
        if "tables" in item.data:
            for part in [part for part in ("plus", "minus") if part in item.data]:
                raise FormatError(f"{place} has both 'tables' and {part!r}, expected either")
            tables = {"tables": item.array("tables", lambda several: [_floats(table) for table in several])}
        else:
            tables = {part: item.array(part, _floats) for part in ("plus", "minus")}
        return TestingCPT(
            **tables,
            thresholds=item.array("thresholds", _floats),
            test=item.get("test", list),
            gamma=item.get("gamma", float, int, NoneType),
            learn=item.get("learn", bool),
            tie=item.get("tie", str, NoneType),
        )
    if kind == "function":
        return FunctionCPT.from_rows(item.array("codes", _integers, list, int), item.array("rows", _floats))
    if kind == "noisy-or":
        if (count := len(item.get("causes", list))) != parents:  # before each of them is looked at
            raise FormatError(f"{place}.causes has {count:,} entries, expected {parents:,}: one per parent")
        causes = item.array("causes", lambda values: [_floats(cause) for cause in values])
        leak = item.get("leak", float, int) if "leak" in item.data else 0.0
        return NoisyOr(causes, leak, item.get("learn", bool) if "learn" in item.data else False)
    if kind == "mux":
        return Mux(item.get("selector", str), item.get("inputs", list))
    if kind in DENSITIES:
        one = (list, float, int, NoneType)  # a node without parents may have a single number
        parts = {part: item.array(part, _floats, *one) for part in ("mean", "sd", "cov", "rate") if part in item.data}
        return DENSITIES[kind](**parts, learn=item.get("learn", bool), tie=item.get("tie", str, NoneType))
    known = ", ".join(("table, testing, function, noisy-or, mux", *DENSITIES))
    raise FormatError(f"{item.place}.kind {kind!r} is not known; expected one of {known}")


def _nullable(values: NDArray[np.float64]) -> Any:
    if not np.isnan(values).any():
        return values.tolist()
    return np.where(np.isnan(values), None, values.astype(object)).tolist()  # type: ignore[call-overload]


def edges_to_json(edges: Iterable[float]) -> list[float | str]:
    """The edges of intervals; JSON has no infinite numbers."""
    return [edge if math.isfinite(edge) else "inf" if edge > 0 else "-inf" for edge in edges]


def _edges(values: list[Any]) -> list[float]:
    for value in values:
        if value not in ("-inf", "inf") and (type(value) not in (int, float) or not math.isfinite(value)):
            raise ValueError(f'{value!r} is not an edge; expected numbers, "-inf" or "inf"')
    return [float(value) for value in values]


def _floats(values: Any) -> NDArray[np.float64]:
    array = np.array(values, dtype=object)
    for value in array.ravel():
        if isinstance(value, bool | str | list):
            raise ValueError("expected numbers (or null), all rows of one length")
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{value} is not a number of the format; one to be learned is written as null")
    return array.astype(np.float64)  # None becomes NaN


def _integers(values: Any) -> NDArray[np.int64]:
    array = np.array(values)
    if array.dtype.kind != "i":
        raise ValueError("expected integers")
    return array
