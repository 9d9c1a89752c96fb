"""Warnings that point at the line of the user's own program."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path


def warn(message: str, category: type[Warning]) -> None:
    """Warn where the user called."""
    here = str(Path(__file__).parents[1]) + os.sep  # not another folder whose name begins alike
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(here):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
