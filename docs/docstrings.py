"""For the API reference: prose and examples of a docstring may stand anywhere, also after its sections.

numpydoc would read them as a part of the section before them. So prose goes to the top, and examples to a section of
their own at the end. Names that share a description get one each, since griffe gives all of them the type of the first.
"""

import re
from typing import Any

import griffe

FLAGS = re.compile(r"\s*# doctest: .*$", flags=re.MULTILINE)
SHARED = re.compile(r"^(\w+(?:, \w+)+)\n((?:    .*(?:\n|$))+)", flags=re.MULTILINE)
ITEMS = ("Parameters", "Attributes")  # sections of indented descriptions


class Docstrings(griffe.Extension):
    """Rearranges the docstring of every object once it is loaded."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called by griffe."""
        if obj.docstring is not None:
            obj.docstring.value = arranged(obj.docstring.value)


def arranged(docstring: str) -> str:
    """Prose, then sections, then examples.

    >>> arranged("Doubles.\\n\\nParameters\\n----------\\nx\\n    A number.\\n\\nSlowly.")
    'Doubles.\\n\\nSlowly.\\n\\nParameters\\n----------\\nx\\n    A number.'
    """
    prose: list[str] = []
    sections: list[str] = []
    examples: list[str] = []
    for block in re.split(r"\n\s*\n", docstring):
        if block.startswith(">>> "):
            examples.append(FLAGS.sub("", block).replace("<BLANKLINE>", ""))
        elif _is_header(block) or (sections and not _is_prose_after(sections[-1], block)):
            sections.append(SHARED.sub(_one_each, block) if block.startswith(ITEMS) else block)
        else:
            prose.append(block)
    if examples:
        sections.append("\n\n".join(["Examples\n--------\n" + examples[0], *examples[1:]]))
    return "\n\n".join([*prose, *sections])


def _one_each(shared: re.Match[str]) -> str:
    return "".join(f"{name}\n{shared[2].rstrip()}\n" for name in shared[1].split(", "))


def _is_header(block: str) -> bool:
    return re.match(r"\w+\n-{3,}\n", block) is not None


def _is_prose_after(section: str, block: str) -> bool:
    """Whether an unindented block does not belong to the section before it."""
    return section.startswith(ITEMS) and re.match(r"\S.*(\n\S.*)*$", block) is not None
