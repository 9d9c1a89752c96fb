"""Rows of evidence in files: CSV and Parquet, batch by batch."""
