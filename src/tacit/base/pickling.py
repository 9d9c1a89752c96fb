"""Pickles of structure and numbers, without engines and what else is made from these on first use."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from typing import Any

from tacit.base.errors import FormatError
from tacit.base.version import VERSION

ADVICE = "pickles are for processes that run the same release, tacit.save keeps a network for later ones"
MOVED = {  # modules of earlier releases that pages or pickles name, and where their contents are now
    "answer": "query.answers.answer",
    "assignments": "query.assignments",
    "circuit": "engines.circuit",
    "cpt": "model.cpt",
    "errors": "base.errors",
    "factor_graph": "model.factor_graph",
    "factor_query": "query.factor_query",
    "factored": "model.rules",
    "io.onnx": "io.bridges.onnx",
    "learn.estimation": "learn.estimating.estimation",
    "learn.placement": "learn.placing.placement",
    "learn.run": "learn.fitting.run",
    "learn.training": "learn.fitting.training",
    "model.base_cpt": "model.elements.base_cpt",
    "model.distributions": "model.elements.distributions",
    "model.variable": "model.elements.variable",
    "naming": "evidence.column_names",
    "network": "query.network",
    "pickling": "base.pickling",
    "probabilities": "query.answers.probabilities",
    "selection": "query.answers.selection",
    "sensitivity": "query.sensitivity",
    "sklearn.estimators": "sklearn.classifier",
    "tac": "query.tac",
    "theory.approximation": "theory.universal.approximation",
    "theory.bounding": "theory.certified.bounding",
    "theory.monotonicity": "theory.certified.monotonicity",
    "theory.neural": "theory.universal.neural",
    "theory.robustness": "theory.certified.robustness",
    "unrolling": "model.unrolling",
    "variable": "model.elements.variable",
}
FORM = 3  # raise it whenever what one release pickles would be something else in the next


class Form:
    """Stands first in what is pickled, so that a pickle of another form is refused before anything else is read."""

    def __reduce__(self) -> tuple[Any, tuple[int, str]]:
        return check_form, (FORM, VERSION)


def check_form(form: int, release: str) -> Form:
    """Refuse a pickle whose form this release would misunderstand."""
    if form != FORM:
        raise FormatError(_refused(f"tacit {release} pickled it in form {form}"))
    return Form()


def state(thing: object, *left_out: str) -> dict[str, Any]:
    """The attributes to pickle, with the form first."""
    return {"form": Form(), **{name: value for name, value in vars(thing).items() if name not in left_out}}


def unmarked(state: dict[str, Any]) -> dict[str, Any]:
    """The attributes from a pickle, without the form."""
    if not isinstance(state.get("form"), Form):
        raise FormatError(_refused("it was pickled before tacit marked the form"))
    return {name: value for name, value in state.items() if name != "form"}


class FormerModules(MetaPathFinder):
    """Says where modules have gone, which pickles of earlier releases name before their form.

    It is asked last, after all that is installed. Other names are none of its business: people probe for modules.
    """

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        now = MOVED.get(fullname.removeprefix("tacit.")) if fullname.startswith("tacit.") else None
        if now is not None:
            why = f"it is tacit.{now} now; if a pickle names it, another release wrote that; {ADVICE}"
            raise ModuleNotFoundError(f"No module named {fullname!r}: {why}", name=fullname)


def explain_former_modules() -> None:
    """Add `FormerModules` to Python's finders, as the last one, once."""
    if not any(isinstance(finder, FormerModules) for finder in sys.meta_path):
        sys.meta_path.append(FormerModules())


def _refused(why: str) -> str:
    return f"this pickle cannot be read: {why}, and tacit {VERSION} reads form {FORM}; {ADVICE}"
