"""What answers hold: the joint with its exponent, how testing nodes were decided, and probabilities with names."""
