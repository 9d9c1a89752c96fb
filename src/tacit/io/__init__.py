"""Reading and writing models."""

from tacit.io.json import load, save

__all__ = ["load", "save"]
