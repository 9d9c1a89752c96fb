"""What a function computes, as plain data: another function with the same data computes the same, in any process.

A function is its bytecode with everything that this refers to: constants, defaults, closure cells, globals, and other
functions in turn. What comes with Python or from an installed package is known by its name. Bytecode is that of one
version of Python, so another version gives other data. What cannot be looked into is an error.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import json
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from tacit.errors import TacitError

ATOMS = (type(None), bool, int, float, complex, str, bytes, range, type(...))
INSTALLED = ("site-packages", "dist-packages")  # folders of packages that are not the user's own
UFUNCS = ("numpy", "scipy.special")  # ufuncs do not say where they are from


def identity(function: Any, name: str) -> Any:
    """A function as data that JSON can hold; `name` is what an error calls it."""
    try:
        return _Reader(name).read(function, name)
    except RecursionError:
        raise _unreadable(name, name, "values that are nested too deeply") from None


class _Reader:
    def __init__(self, name: str) -> None:
        self.name = name
        self.seen: dict[int, tuple[int, Any]] = {}  # the values themselves, too, so that no id is used again

    def read(self, value: Any, place: str) -> Any:
        """Any value; `place` is where it was found."""
        if isinstance(value, ATOMS):
            return [type(value).__name__, repr(value)]
        if isinstance(value, tuple | frozenset):
            return self._items(value, place)
        if isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
            digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
            return ["array", value.dtype.str, list(value.shape), digest]
        named = _installed_name(value)
        if named:
            return ["named", named]
        if id(value) in self.seen:  # the rest may refer to itself
            return ["seen", self.seen[id(value)][0]]
        self.seen[id(value)] = len(self.seen), value
        return self._looked_into(value, place)

    def _looked_into(self, value: Any, place: str) -> Any:
        match value:
            case list() | set():
                return self._items(value, place)
            case dict():
                return ["dict", [[self.read(k, place), self.read(v, f"{place}[{k!r}]")] for k, v in value.items()]]
            case FunctionType():
                return ["function", *self._function(value)]
            case MethodType():
                return ["method", self.read(value.__func__, place), self.read(value.__self__, f"{place}.__self__")]
            case functools.partial():
                parts = value.func, value.args, value.keywords
                return ["partial", *(self.read(part, place) for part in parts)]
            case type():
                return ["class", *self._class(value)]
            case slice():
                return ["slice", *(self.read(part, place) for part in (value.start, value.stop, value.step))]
        if not _installed(type(value).__module__) and hasattr(value, "__dict__"):
            return ["instance", self.read(type(value), place), self.read(vars(value), place)]
        inner = getattr(value, "py_func", None) or getattr(value, "__wrapped__", None)  # of numba, of a cache
        if not isinstance(inner, FunctionType):
            raise _unreadable(self.name, place, f"a {type(value).__name__}")
        return ["wrapped", type(value).__qualname__, self.read(inner, place)]

    def _items(self, value: Any, place: str) -> Any:
        items = [self.read(item, place) for item in value]
        if isinstance(value, set | frozenset):  # whose order differs from process to process
            items.sort(key=json.dumps)
        return [type(value).__name__, items]

    def _function(self, function: FunctionType) -> Iterator[Any]:
        name = function.__qualname__
        yield self._code(function.__code__, function.__globals__, name)
        yield self.read(function.__defaults__, f"the defaults of {name}")
        yield self.read(function.__kwdefaults__, f"the defaults of {name}")
        for variable, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            yield self._cell(cell, f"{variable!r} in {name}")

    def _cell(self, cell: CellType, place: str) -> Any:
        try:
            value = cell.cell_contents
        except ValueError:
            return ["empty"]
        return self.read(value, place)

    def _code(self, code: CodeType, names: dict[str, Any], place: str) -> Any:
        """Bytecode, and the globals that it reads."""
        counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
        texts = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
        constants = [
            self._code(c, names, place) if isinstance(c, CodeType) else self.read(c, place) for c in code.co_consts
        ]
        used = [[path, self._global(names, path, place)] for path in _paths(code)]
        exceptions = code.co_exceptiontable.hex()
        return [code.co_code.hex(), exceptions, list(counts), [list(text) for text in texts], constants, used]

    def _global(self, names: dict[str, Any], path: tuple[str, ...], place: str) -> Any:
        """A global, or the attribute of a module of the user's own that is read from it."""
        if path[0] == "import":
            if not _installed(path[1]):
                raise _unreadable(self.name, place, f"an import of {path[1]!r}, which belongs at the top of its file")
            return None
        if path[0] not in names:
            return None  # built in, or missing
        value, rest = names[path[0]], list(path[1:])
        while rest and isinstance(value, ModuleType) and not _installed(value.__name__):
            value = getattr(value, rest.pop(0), None)
        return self.read(value, f"{'.'.join(path[: len(path) - len(rest)])!r} in {place}")

    def _class(self, kind: type) -> Iterator[Any]:
        """The methods and attributes of a class of the user's own; of those with special names, how it is called."""
        yield kind.__qualname__
        for base in kind.__mro__:
            if not _installed(base.__module__):
                for name, value in sorted(vars(base).items()):
                    if name == "__call__" or not (name.startswith("__") and name.endswith("__")):
                        value = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
                        yield [name, self.read(value, f"{name!r} in {kind.__qualname__}")]


def _paths(code: CodeType) -> dict[tuple[str, ...], None]:
    """The globals that bytecode reads, each with the attributes that are read from it at once, and its imports."""
    found: dict[tuple[str, ...], None] = {}
    path: tuple[str, ...] = ()
    for instruction in dis.get_instructions(code):
        if path and instruction.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            path = (*path, instruction.argval)
            continue
        if path:
            found[path] = None
        path = (instruction.argval,) if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME") else ()
        if instruction.opname == "IMPORT_NAME":
            found["import", instruction.argval] = None
    return found


def _installed(module: str) -> bool:
    """Whether a module comes with Python or from an installed package."""
    top = module.partition(".")[0]
    if not top:
        return False  # a relative import
    if top == "builtins" or top in sys.stdlib_module_names:
        return True
    spec = getattr(sys.modules.get(top), "__spec__", None) or (None if top in sys.modules else find_spec(top))
    origin = getattr(spec, "origin", None) or ""
    return any(folder in Path(origin).parts for folder in INSTALLED)


def _installed_name(value: Any) -> str:
    """The name under which something is found in an installed package, if it is."""
    if isinstance(value, ModuleType):
        return value.__name__ if _installed(value.__name__) else ""
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    own = getattr(value, "__module__", None)
    if isinstance(value, BuiltinFunctionType) and isinstance(value.__self__, ModuleType):
        own = value.__self__.__name__
    for module in UFUNCS if isinstance(value, np.ufunc) else (own,):
        if isinstance(name, str) and isinstance(module, str) and _installed(module):
            found: Any = sys.modules.get(module)
            for part in name.split("."):
                found = getattr(found, part, None)
            if found is value:
                return f"{module}.{name}"
    return ""


def _unreadable(name: str, place: str, what: str) -> TacitError:
    where = "" if place == name else f" ({place})"
    return TacitError(
        f"{name} uses {what}{where}, which a checkpoint cannot tell from another one; build it from functions, numbers "
        "and arrays, or train without checkpoint="
    )
