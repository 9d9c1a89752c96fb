"""Where a test would help."""
