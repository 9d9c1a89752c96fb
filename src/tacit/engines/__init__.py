"""What evaluates a compiled query."""
