"""XML, element by element, with places: what the readers of XMLBIF and of SamIam's evidence share.

Any encoding that the XML declaration names is read, and a document type; not the declaration of entities, which can
make a small file explode.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn
from xml.parsers import expat

from tacit.base.errors import FormatError
from tacit.io.parsing.scanner import Position, fault, show


class Elements:
    """Calls `start` and `end` for every element of a document; `text` gathers what is between."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.text: list[str] = []
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.text.append
        self.parser.EntityDeclHandler = self._refuse
        self.parser.SkippedEntityHandler = self._refuse

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        raise NotImplementedError

    def end(self, tag: str) -> None:
        raise NotImplementedError

    def read(self, data: bytes) -> None:
        """Go through a document."""
        try:
            self.parser.Parse(data, True)
        except expat.ExpatError as error:
            place = Position(error.lineno, error.offset + 1)
            raise self.error(expat.ErrorString(error.code), place) from None
        except FormatError:
            raise
        except (LookupError, ValueError) as error:  # from an odd encoding in the XML declaration
            raise self.error(str(error), Position(1, 1)) from None

    def here(self) -> Position:
        return Position(self.parser.CurrentLineNumber, self.parser.CurrentColumnNumber + 1)

    def error(self, problem: str, place: Position | None = None) -> FormatError:
        """An error at a place: where the reading is, if left out."""
        return fault(self.source, place or self.here(), problem)

    def _refuse(self, entity: str, *_: object) -> NoReturn:
        raise self.error(f"entity {show(entity)}: declared entities are not read; write it out")
