"""What the strict build of the documentation does not check: navigation, pictures, long lines, arranged docstrings."""

import importlib.util
import re
from textwrap import dedent

import pytest

from tests.pages import ROOT, listed

WIDTH = 76  # characters that fit the column on a small laptop
FENCED = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", flags=re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"(?<=\n\n)(?: {4}.*\n)+")
PRINTED = {"text", "json"}  # what programs print and write is as wide as it is; it scrolls or wraps
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


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", *(f"docs/{page}" for page in listed())])
def test_code_fits_the_column(page: str) -> None:
    text = (ROOT.parent / page).read_text(encoding="utf-8")
    code = [block for language, block in FENCED.findall(text) if language not in PRINTED]
    code += [dedent(block) for block in INDENTED.findall(FENCED.sub("", text))]
    long = [line for block in code for line in block.splitlines() if len(line) > WIDTH]
    assert not long, f"{page}: lines of code longer than {WIDTH} characters"


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
