"""The codes of a column that are not the place of a state."""

MISSING = -1  # the code of no value
UNKNOWN = -2  # the code of what is not a state
