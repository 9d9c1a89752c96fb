"""Reading and writing models."""

from tacit.io.draft import RoundingWarning
from tacit.io.files import read, write
from tacit.io.json import load, save

__all__ = ["RoundingWarning", "load", "read", "save", "write"]
