"""Tools that know nothing of networks."""
