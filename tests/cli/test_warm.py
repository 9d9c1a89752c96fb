"""All kernels can be compiled ahead, by a command that says how far it is."""

import importlib
from pathlib import Path

import numba
import pytest

import tacit
from tacit.base.jit import is_compiled
from tacit.base.jit import kernel_files as kept
from tacit.cli.shared import all_kernels
from tests.cli.helpers import tacit_

PACKAGE = Path(tacit.__file__).parent


def kernels():
    """All kernels that have code of their own, by name; others are built into them."""
    for room in kept.ROOMS:
        for file in kept.sources(PACKAGE / room, f"{room}/"):
            module = importlib.import_module(f"tacit.{file.removesuffix('.py').replace('/', '.')}")
            for name, kernel in vars(module).items():
                is_kernel = isinstance(kernel, numba.core.dispatcher.Dispatcher)
                if is_kernel and kernel.__module__ == module.__name__ and not kernel.targetoptions.get("inline"):
                    yield f"{module.__name__}.{name}"


def test_every_kernel_is_compiled():
    lines = tacit_("warm").splitlines()
    count = len(all_kernels.COMPILATIONS)
    assert lines[:count] == [f"{i}/{count} {what}" for i, what in enumerate(all_kernels.COMPILATIONS, start=1)]
    assert lines[count].startswith("all kernels are compiled")
    assert len(found := list(kernels())) > 30
    assert [name for name in found if not is_compiled(name)] == []


def test_where_nothing_can_be_kept_it_fails(monkeypatch):
    monkeypatch.setattr(all_kernels, "compile_all", lambda report: None)
    assert "NUMBA_CACHE_DIR" in tacit_("warm", code=1)


def test_its_help_says_what_for():
    assert "RUN tacit warm" in tacit_("warm", "--help")


@pytest.mark.parametrize("question", ["sum", "max"])
def test_diagrams_are_made_even_where_tables_would_do(question):
    net = tacit.examples.kidney_stones()
    if question == "sum":
        asked = all_kernels.Question(("recovery",), ("size", "treatment"))
    else:
        asked = all_kernels.Question((), ("size",), best=tuple(net))
    program = all_kernels.by_diagrams(net, asked)
    assert program.structured
