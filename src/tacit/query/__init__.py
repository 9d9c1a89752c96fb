"""Everything that can be asked: queries, networks and their answers."""
