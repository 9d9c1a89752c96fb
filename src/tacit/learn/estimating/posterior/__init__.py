"""What rows leave open about estimated numbers: their posterior distributions, and draws from these."""
