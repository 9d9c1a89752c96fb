"""For the API reference: prose and examples of a docstring may stand anywhere, also after its sections.

numpydoc would read them as a part of the section before them. So prose goes to the top, and examples to a section of
their own at the end. Names that share a description stay together; griffe would repeat it for each of them.
"""

import re
from copy import copy
from itertools import groupby
from typing import Any

import griffe

ITEMS = ("Parameters", "Attributes")  # sections of indented descriptions


class Docstrings(griffe.Extension):
    """Rearranges the docstring of every object once it is loaded."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called by griffe."""
        if (found := obj.docstring) is not None:
            obj.docstring = Docstring(
                arranged(found.value), parent=obj, parser=found.parser, parser_options=found.parser_options
            )

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Called by griffe. Where a module has `fit = _backend.fit`, that is shown as a function."""
        for module in pkg.modules.values():
            attributes = {name: one for name, one in module.members.items() if isinstance(one, griffe.Attribute)}
            for name, attribute in attributes.items():
                owner, _, method = str(attribute.value).partition(".")
                if method == name and owner in attributes:
                    kind = module[str(attributes[owner].value.function)].final_target
                    function = copy(kind.all_members[name].final_target)
                    function.parameters = griffe.Parameters(*list(function.parameters)[1:])  # without self
                    module.set_member(name, function)


class Docstring(griffe.Docstring):
    """A docstring in which names with a common description are one item."""

    def parse(self, *args: Any, **options: Any) -> list[griffe.DocstringSection]:
        """Called by griffe."""
        sections = super().parse(*args, **options)
        for section in sections:
            if section.kind in (griffe.DocstringSectionKind.parameters, griffe.DocstringSectionKind.attributes):
                items = groupby(section.value, key=lambda item: item.description)
                section.value = [joined(list(same)) for _, same in items]
        return sections


def joined(items: list[Any]) -> Any:
    """One item for neighbours of the same description. Their types, which differ, are in the signature."""
    first = items[0]
    if len(items) == 1:
        return first
    return type(first)(name=", ".join(item.name for item in items), description=first.description)


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
            examples.append(block)
        elif _is_header(block) or (sections and not _is_prose_after(sections[-1], block)):
            sections.append(block)
        else:
            prose.append(block)
    if examples:
        sections.append("\n\n".join(["Examples\n--------\n" + examples[0], *examples[1:]]))
    return "\n\n".join([*prose, *sections])


def _is_header(block: str) -> bool:
    return re.match(r"\w+\n-{3,}\n", block) is not None


def _is_prose_after(section: str, block: str) -> bool:
    """Whether an unindented block does not belong to the section before it."""
    return section.startswith(ITEMS) and re.match(r"\S.*(\n\S.*)*$", block) is not None
