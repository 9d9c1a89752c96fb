"""Searches for a graph: tabu, orders, exact, tree, PC."""
