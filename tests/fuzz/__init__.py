"""Random trials without end, for as long as one likes: `make fuzz MINUTES=5`."""
