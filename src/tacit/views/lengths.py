"""How wide a picture is to be: centimetres, or a text with another unit, such as "3.3in"."""

from __future__ import annotations

import math
import re

from tacit.base.errors import TacitError

CM_PER_INCH = 2.54
PER_INCH = {"in": 1.0, "cm": CM_PER_INCH, "mm": 10 * CM_PER_INCH, "pt": 72.0}
WITH_UNIT = re.compile(r"\s*(\d+\.?\d*|\.\d+)\s*([a-z]*)\s*")


def inches(width: float | str) -> float:
    """A width in inches.

    >>> inches(2.54), inches("3.3in"), inches("36 pt")
    (1.0, 3.3, 0.5)
    """
    number, unit = width, "cm"
    if isinstance(width, str) and (match := WITH_UNIT.fullmatch(width)):
        number, unit = float(match[1]), match[2] or "cm"
    if isinstance(number, bool) or not isinstance(number, int | float) or unit not in PER_INCH:
        number = math.nan
    if not 0 < number < math.inf:
        units = ", ".join(PER_INCH)
        raise TacitError(
            f'width is {width!r}, expected a number of centimetres above 0, or a text such as "3.3in" ({units})'
        )
    return number / PER_INCH[unit]
