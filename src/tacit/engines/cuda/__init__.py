"""Code generated for GPUs."""
