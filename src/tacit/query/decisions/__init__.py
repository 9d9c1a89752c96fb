"""Decisions: which action is best for each row of evidence, and what it is worth to know more."""
