"""Tables, thresholds and slopes by gradient descent, from labelled rows."""
