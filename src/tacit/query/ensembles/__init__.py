"""Many networks of one structure, and what answers under all of them hold."""
