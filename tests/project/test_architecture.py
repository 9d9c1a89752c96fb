"""Rooms use what the table in docs/architecture.md says; doors, sizes, and private members."""

import ast
from collections import Counter
from collections.abc import Collection, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest
from docs.make_rooms import PAGE, TARGET, Room, picture, rooms

SOURCES = Path(__file__).parents[2] / "src"
MOST_FILES = 17  # of a room, or of a folder inside it
WITH_CONTENT = {"semantics", "examples", "tacit"}  # doors that hold more than names: a definition, data, lazy imports
UPWARDS = {  # methods of what users hold, for what most programs never call
    ("tacit.query.network", "tacit.views.page"),
    ("tacit.query.network", "tacit.views.drawing"),
    ("tacit.query.numbers.mixture", "tacit.views.densities"),
    ("tacit.query.answers.probabilities", "tacit.views.charts"),
    ("tacit.query.answers.credible", "tacit.views.charts"),
    ("tacit.query.decisions.decision", "tacit.views.charts"),
    ("tacit.theory.explain", "tacit.views.charts"),
    ("tacit.theory.explain_difference", "tacit.views.charts"),
    ("tacit.learn.discovering.discovery", "tacit.views.drawing"),  # the type of a picture
    ("tacit.query.network", "tacit.theory.explain"),
    ("tacit.query.network", "tacit.theory.explain_difference"),
    ("tacit.learn.discovering.discovery", "tacit.views.page"),
    ("tacit.query.tac", "tacit.theory.explain"),
    ("tacit.query.tac", "tacit.theory.explain_difference"),
    ("tacit.query.tac", "tacit.io.bridges.onnx"),
    ("tacit.query.tac", "tacit.query.decisions.decision_query"),
    ("tacit.query.tac", "tacit.bounds.querying.bounded_query"),
    ("tacit.query.tac", "tacit.bounds.querying.bounded_decision"),
    ("tacit.query.ensemble", "tacit.io.formats.ensemble"),
    ("tacit.compiler.diagram_choice", "tacit.compiler.diagrams.structured_elimination"),  # loads numba
    ("tacit.engines.choice", "tacit.engines.native.llvm"),  # loads llvmlite
}
IN_FUNCTIONS = UPWARDS | {
    ("tacit.engines", "tacit.engines.native.native_engine"),  # loads llvmlite
    ("tacit.engines", "tacit.engines.native.auto"),  # loads llvmlite
    ("tacit.engines", "tacit.engines.cuda.cuda_engine"),  # loads llvmlite
    ("tacit.engines", "tacit.engines.cuda.ptx"),  # loads llvmlite
    ("tacit.engines", "tacit.engines.cuda.driver"),  # asks a driver, which few machines have
    ("tacit.engines", "tacit.engines.tape.tape_engine"),  # loads numba
    ("tacit.engines", "tacit.engines.arrays.torch_engine"),  # torch is optional
    ("tacit.engines.native.auto", "tacit.engines.tape.tape_engine"),  # loads numba
    ("tacit.engines.native.normal_code", "tacit.engines.native.llvm"),  # loads llvmlite
    ("tacit.engines.circuit.circuit", "tacit.engines.circuit.circuit_tape"),  # loads numba
    ("tacit.base.jit", "tacit.base.jit.cached_njit"),  # loads numba
    ("tacit.learn.fitting.objective", "tacit.learn.fitting.loss_kernels"),  # loads numba
    ("tacit.learn.estimating.families", "tacit.learn.estimating.count_kernels"),  # loads numba
    ("tacit.learn.discovering.scoring.family_scores", "tacit.learn.discovering.scoring.score_kernels"),  # loads numba
    ("tacit.learn.discovering.searches.orders", "tacit.learn.discovering.searches.order_kernels"),  # loads numba
    ("tacit.learn.discovering.searches.parent_sets", "tacit.learn.discovering.searches.order_kernels"),  # loads numba
    ("tacit.learn.discovering.searches.tabu", "tacit.learn.discovering.searches.graph_kernels"),  # loads numba
    ("tacit.compiler.order.long_search", "tacit.compiler.order.anneal_kernels"),  # loads numba
    ("tacit.compiler.operations.dense", "tacit.compiler.operations.dense_kernels"),  # loads numba
    ("tacit.learn.discovering.searches.tabu", "tacit.learn.discovering.searches.cluster_kernels"),  # loads numba
    ("tacit.learn.discovering.searches.clusters", "tacit.learn.discovering.searches.graph_kernels"),  # loads numba
    ("tacit.learn.discovering.searches.clusters", "tacit.learn.discovering.searches.cluster_kernels"),  # loads numba
    ("tacit.views.axes", "tacit.views.figures"),  # matplotlib is optional
    ("tacit.query.numbers.continuous", "tacit.query.numbers.components"),  # loads scipy
    ("tacit.query.network", "tacit.query.sensitivity"),  # as for the methods that lead upwards
    ("tacit.query.tac", "tacit.query.sensitivity"),  # as for the methods that lead upwards
    ("tacit.query.user_query", "tacit.query.credible"),  # as for the methods that lead upwards
    ("tacit.cli", "tacit.cli.app"),  # typer is optional
    ("tacit.cli.commands.warm", "tacit.cli.shared.all_kernels"),  # loads numba
    ("tacit.cli.commands.batch", "tacit.cli.shared.batch_files"),  # loads pyarrow
    ("tacit.cli.commands.batch", "tacit.query.answer_columns"),  # loads pyarrow
    ("tacit.cli.commands.serving", "tacit.serve"),  # starlette and uvicorn are optional
}
OTHERS_PRIVATE = {
    "_getframe",
    "_replace",
    "_asdict",
    "_fields",
    "_Cache",
    "_cache",
    "_impl",
    "_meta",
}  # of Python, numba, Dask


class Import(NamedTuple):
    """One module uses another; `inside` a function or not."""

    user: str
    used: str
    inside: bool


def sources() -> dict[str, ast.Module]:
    """Every module, by its name; a package's `__init__` has the name of the package."""
    trees = {}
    for path in sorted((SOURCES / "tacit").rglob("*.py")):
        name = ".".join(path.relative_to(SOURCES).with_suffix("").parts)
        trees[name.removesuffix(".__init__")] = ast.parse(path.read_text(encoding="utf-8"))
    return trees


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


def room(module: str) -> str:
    """The room or door that a module belongs to."""
    return module.split(".")[:2][-1]


def place(module: str) -> str:
    """Where in its room a module is: a folder, "." for the room itself, or "" for its `__init__`."""
    _, _, *rest = [*module.split("."), ""]
    if not rest[:-1]:
        return ""
    return rest[0] if len(rest) > 2 or module in PACKAGES else "."


def allowed(one: Import, plan: dict[str, Room]) -> bool:
    """Whether the table lets a module use another."""
    mine, other = room(one.user), room(one.used)
    if mine != other:
        return other in plan[mine].uses
    order = ["", *plan[mine].inside]  # what uses `__init__` of its own room is caught as a cycle
    return place(one.user) == "" or order.index(place(one.used)) <= order.index(place(one.user))


def wrong(uses: list[Import], plan: dict[str, Room]) -> set[tuple[str, str]]:
    """The imports that the table does not allow, but for those of the methods that lead upwards."""
    return {(one.user, one.used) for one in uses if not allowed(one, plan)} - UPWARDS


def hidden(uses: list[Import]) -> set[tuple[str, str]]:
    """The imports inside functions."""
    return {(one.user, one.used) for one in uses if one.inside}


def sort(uses: list[Import]) -> None:
    """An error if modules use each other in a circle."""
    users = TopologicalSorter[str]()
    for one in uses:
        users.add(one.user, one.used)
    users.prepare()


def definitions(tree: ast.AST) -> set[str]:
    """The private names that a module defines, of its own or of its classes."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.id if isinstance(node, ast.Name) else node.attr)
    return {name for name in names if name.startswith("_")}


def private_uses(module: str, tree: ast.AST) -> Iterator[tuple[str, str]]:
    """The private members of other objects, and of other modules, that a module uses."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and not (
            isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
        ):
            names = [] if isinstance(node.value, ast.Call) and ast.unparse(node.value) == "super()" else [node.attr]
        elif isinstance(node, ast.ImportFrom) and str(node.module).startswith("tacit"):
            names = [alias.name for alias in node.names]
        else:
            names = []
        yield from ((module, name) for name in names if name.startswith("_") and not name.startswith("__"))


def across_rooms(module: str, tree: ast.AST) -> set[tuple[str, str]]:
    """The private members that a module uses although nothing in its room defines them."""
    uses = {(name, member) for name, member in private_uses(module, tree) if member not in OTHERS_PRIVATE}
    return {(name, member) for name, member in uses if (room(name), member) not in DEFINED}


MODULES = sources()
PACKAGES = {name for name in MODULES if (SOURCES.joinpath(*name.split(".")) / "__init__.py").exists()}
USES = [one for name, tree in MODULES.items() for one in imports(name, tree, MODULES)]
DEFINED = {(room(name), member) for name, tree in MODULES.items() for member in definitions(tree)}
PLAN = rooms(PAGE.read_text(encoding="utf-8"))


def test_only_rooms_and_doors_lie_at_the_top():
    assert set(PLAN) == {room(name) for name in MODULES}
    entries = {path.name for path in (SOURCES / "tacit").iterdir()} - {"__pycache__", "py.typed"}
    assert len(entries) <= 26
    assert {name for name, one in PLAN.items() if one.inside} == {name for name in entries if "." not in name}


def test_doors_only_name_what_users_import():
    doors = {name for name, one in PLAN.items() if not one.inside}
    for name in doors - WITH_CONTENT:
        statements = MODULES[f"tacit.{name}"].body
        assert not any(isinstance(node, ast.FunctionDef | ast.ClassDef | ast.For) for node in statements), name
    assert {(one.user, one.used) for one in USES if room(one.used) in doors and room(one.user) not in doors} <= {
        (one.user, "tacit") for one in USES if room(one.user) == "cli"
    }


def test_rooms_use_what_the_table_says():
    assert wrong(USES, PLAN) == set()
    sort(USES)
    assert {(one.user, one.used) for one in USES} >= UPWARDS  # nothing is excused that is not there
    mentioned = {(name, used) for name, one in PLAN.items() for used in one.uses}
    assert mentioned == {(room(one.user), room(one.used)) for one in USES} - {
        *((name, name) for name in PLAN),
        *((room(user), room(used)) for user, used in UPWARDS),
    }


def test_few_imports_are_inside_functions():
    assert hidden(USES) == IN_FUNCTIONS


def test_rooms_are_small():
    folders = Counter(path.parent for path in (SOURCES / "tacit").rglob("*.py") if path.name != "__init__.py")
    assert {str(folder): files for folder, files in folders.items() if files > MOST_FILES} == {}


def test_private_members_stay_in_their_room():
    assert {use for name, tree in MODULES.items() for use in across_rooms(name, tree)} == set()


def test_tests_have_the_same_rooms():
    tests = {path.name for path in (SOURCES.parent / "tests").iterdir() if path.is_dir()} - {"__pycache__"}
    assert {name for name, one in PLAN.items() if one.inside} <= tests
    assert list((SOURCES.parent / "tests").glob("test_*.py")) == []


def test_the_picture_is_drawn_from_the_table():
    assert TARGET.read_text(encoding="utf-8") == picture(PLAN)


@pytest.mark.parametrize(
    ("user", "used"),
    [
        ("tacit.model.elements.variable", "tacit.query.network"),  # a room above
        ("tacit.compiler.program", "tacit.evidence.read"),  # a room that is below, but is none of its business
        ("tacit.compiler.operations.operation", "tacit.compiler.program"),  # from a folder to what comes after it
        ("tacit.compiler.order.search", "tacit.compiler.diagrams.elimination"),  # between folders
        ("tacit.query.query", "tacit.examples"),  # a door
        ("tacit.query.network", "tacit.views.svg"),  # not what the method that leads upwards is for
    ],
)
@pytest.mark.parametrize(
    "text",
    [
        "from {0} import anything",
        "import {0}",
        "from {1} import {2}",
        "def f():\n    from {0} import anything",
        "if TYPE_CHECKING:\n    from {0} import anything",
        "class A:\n    async def f(self):\n        import {0} as name",
    ],
)
def test_a_planted_import_is_caught(user, used, text):
    folder, _, module = used.rpartition(".")
    planted = [*USES, *imports(user, ast.parse(text.format(used, folder, module)), MODULES)]
    assert wrong(planted, PLAN) == {(user, used)}
    assert (hidden(planted) != IN_FUNCTIONS) == ("def " in text)


def test_a_planted_cycle_is_caught():
    planted = [*USES, Import("tacit.compiler.question", "tacit.compiler.eliminate", False)]
    assert wrong(planted, PLAN) == set()  # both are in one room
    with pytest.raises(CycleError):
        sort(planted)


@pytest.mark.parametrize("text", ["tac._engine_of_mine", "from tacit.query.query import _helper_of_mine"])
def test_a_planted_use_of_a_private_member_is_caught(text):
    assert [module for module, _ in across_rooms("tacit.learn.prior", ast.parse(text))] == ["tacit.learn.prior"]
