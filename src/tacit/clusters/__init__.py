"""What scoring and learning on Dask, Ray and Spark have in common."""
