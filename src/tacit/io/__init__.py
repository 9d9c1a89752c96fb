"""Reading and writing models."""

from tacit.io.draft import RoundingWarning
from tacit.io.evidence import read_evidence
from tacit.io.files import load, read, save, write

__all__ = ["RoundingWarning", "load", "read", "read_evidence", "save", "write"]
