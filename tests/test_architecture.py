"""The imports of the package go one way: the order of its parts is the table in docs/architecture.md."""

import ast
import re
from collections.abc import Collection, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
IN_FUNCTIONS = {
    ("tacit.engines", "tacit.engines.native.engine"),  # loads llvmlite
    ("tacit.engines", "tacit.engines.auto"),  # loads llvmlite
    ("tacit.engines", "tacit.engines.native.target"),  # likewise
    ("tacit.engines", "tacit.engines.tape"),  # loads numba
    ("tacit.jit", "tacit.jit.cache"),  # loads numba
    ("tacit.learn.objective", "tacit.learn.kernels"),  # loads numba
    ("tacit.learn.tallies", "tacit.learn.count_kernels"),  # loads numba
    ("tacit.engines", "tacit.engines.torch"),  # torch is optional
    ("tacit.engines.native.engine", "tacit.engines.tape"),  # loads numba
    ("tacit.engines", "tacit.engines.cuda"),  # loads llvmlite
    ("tacit.engines", "tacit.engines.native.cuda"),  # asks a driver, which few machines have
    ("tacit.engines", "tacit.engines.native.ptx"),  # loads llvmlite
    ("tacit.circuit.circuit", "tacit.circuit.tape"),  # loads numba
    ("tacit.compiler.structuring", "tacit.compiler.structured"),  # loads numba
    ("tacit.network", "tacit.explorer"),  # a page is needed by few, and takes long to load
    ("tacit.tac", "tacit.io.onnx"),  # as for the page
    ("tacit.tac", "tacit.sensitivity"),  # as for the page
    ("tacit.tac", "tacit.theory.explain"),  # as for the page
    ("tacit.cli", "tacit.cli.app"),  # typer is optional
    ("tacit.cli.warm", "tacit.cli.all_kernels"),  # loads numba
    ("tacit.cli.serving", "tacit.serve"),  # starlette and uvicorn are optional
}


class Import(NamedTuple):
    """One module uses another; `inside` a function or not."""

    user: str
    used: str
    inside: bool


def sources() -> dict[str, str]:
    """The text of every module, by its name."""
    found = {}
    for path in sorted((ROOT / "src" / "tacit").rglob("*.py")):
        name = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
        found[name.removesuffix(".__init__")] = path.read_text(encoding="utf-8")
    return found


def imports(user: str, node: ast.AST, modules: Collection[str], inside: bool = False) -> Iterator[Import]:
    """All imports of modules of the package, wherever they stand."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            names = [alias.name for alias in child.names]
        elif isinstance(child, ast.ImportFrom):
            assert not child.level, f"{user}: imports say the whole name of a module"
            whole = [f"{child.module}.{alias.name}" for alias in child.names]
            names = [name if name in modules else str(child.module) for name in whole]
        else:
            names = []
            within = inside or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from imports(user, child, modules, within)
        yield from (Import(user, name, inside) for name in names if name.split(".")[0] == "tacit")


def part(module: str) -> str:
    """The file or folder that a module belongs to."""
    return module.split(".")[:2][-1]


def order(page: str) -> list[str]:
    """The parts, as the first table of the page lists them."""
    table = page.split("## The parts")[1].split("\n## ")[0]
    return [name for line in re.findall(r"^\|(.*?)\|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", line)]


def wrong(found: list[Import], parts: list[str]) -> list[Import]:
    """The imports of parts that come later."""
    place = {name: i for i, name in enumerate(parts)}
    return [one for one in found if place[part(one.used)] > place[part(one.user)]]


def hidden(found: list[Import]) -> set[tuple[str, str]]:
    """The imports inside functions."""
    return {(one.user, one.used) for one in found if one.inside}


def sort(found: list[Import]) -> None:
    """An error if modules use each other in a circle."""
    users = TopologicalSorter[str]()
    for one in found:
        users.add(one.user, one.used)
    users.prepare()


MODULES = sources()
FOUND = [one for name, text in MODULES.items() for one in imports(name, ast.parse(text), MODULES)]
PARTS = order(PAGE)


def test_the_page_lists_every_part_once():
    assert len(PARTS) == len(set(PARTS))
    assert set(PARTS) == {part(name) for name in MODULES}


def test_imports_go_one_way():
    assert wrong(FOUND, PARTS) == []
    assert {part(one.user) for one in FOUND} >= {"cli", "tac", "network", "compiler"}  # they were read at all
    sort(FOUND)


def test_few_imports_are_inside_functions():
    assert hidden(FOUND) == IN_FUNCTIONS


@pytest.mark.parametrize(
    "text",
    [
        "from tacit.network import Network",
        "import tacit.network",
        "from tacit import network",
        "def f():\n    from tacit.network import Network",
        "if TYPE_CHECKING:\n    from tacit.network import Network",
        "class A:\n    async def f(self):\n        import tacit.network as net",
    ],
)
def test_an_import_in_the_wrong_direction_is_found(text):
    found = [*FOUND, *imports("tacit.variable", ast.parse(text), MODULES)]
    assert [one[:2] for one in wrong(found, PARTS)] == [("tacit.variable", "tacit.network")]
    assert (hidden(found) != IN_FUNCTIONS) == ("def " in text)
    with pytest.raises(CycleError):
        sort(found)


def test_a_new_part_must_be_on_the_page():
    assert part("tacit.cellar.wine") not in PARTS
    assert order(PAGE.replace("`model`", "`cellar`")).index("cellar") == PARTS.index("model")
