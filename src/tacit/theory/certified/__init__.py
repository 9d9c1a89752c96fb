"""What holds for all evidence in a box: bounds, monotonicity, robustness."""
