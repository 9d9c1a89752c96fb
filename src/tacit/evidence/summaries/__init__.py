"""What the columns of a table hold, summed up: distinct values, states, and edges of intervals for numbers."""
