"""A program as a list of scalar instructions, and the interpreter that runs it."""
