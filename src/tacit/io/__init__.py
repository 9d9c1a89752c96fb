"""Reading and writing models."""

from tacit.io.files import load, read, read_evidence, save, write
from tacit.io.parsing.draft import RoundingWarning

__all__ = ["RoundingWarning", "load", "read", "read_evidence", "save", "write"]
