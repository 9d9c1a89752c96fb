"""What models are made of: variables, the intervals and distributions of their states, and what all CPTs share."""
