"""Networks as pictures and pages."""
