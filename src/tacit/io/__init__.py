"""Reading and writing models."""

from tacit.io.files import LostBinsWarning, load, read, read_evidence, save, write
from tacit.io.parsing.draft import RoundingWarning

__all__ = ["LostBinsWarning", "RoundingWarning", "load", "read", "read_evidence", "save", "write"]
