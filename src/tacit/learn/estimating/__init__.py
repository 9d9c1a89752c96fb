"""Tables by counting, and by EM where values are missing."""
