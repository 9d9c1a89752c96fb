"""What the strict build of the documentation does not check: navigation, pictures, and how docstrings are arranged."""

import importlib.util
import re

import pytest

from tests.pages import ROOT, listed

PICTURE = re.compile(r"!\[[^\]]*\]\(([^)]+)\)")
DOCSTRING = """Adds.

Parameters
----------
x, y
    The numbers.
z
    Another.

>>> print("one\\n\\ntwo")
one
<BLANKLINE>
two

Slowly.
"""


def test_every_page_is_in_the_navigation() -> None:
    pages = {path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.md")}
    assert sorted(listed()) == sorted(pages)


def test_pictures_exist() -> None:
    found = 0
    for page in ROOT.rglob("*.md"):
        for target in PICTURE.findall(page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} shows {target}"
            found += 1
    assert found > 10


def test_docstrings_are_arranged_for_the_reference() -> None:
    griffe = pytest.importorskip("griffe")
    spec = importlib.util.spec_from_file_location("docstrings", ROOT / "docstrings.py")
    assert spec is not None
    assert spec.loader is not None
    docstrings = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(docstrings)
    docstring = docstrings.Docstring(docstrings.arranged(DOCSTRING))
    prose, parameters, examples = docstring.parse("numpy", warnings=False)
    assert prose.value == "Adds.\n\nSlowly."
    assert [item.name for item in parameters.value] == ["x, y", "z"]
    assert examples.value == [(griffe.DocstringSectionKind.examples, '>>> print("one\\n\\ntwo")\none\n\ntwo')]
