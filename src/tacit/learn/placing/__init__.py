"""The search for nodes where a test would help."""
