"""Modules for packages that are not installed have no doctests to run."""

from importlib.util import find_spec
from pathlib import Path

PARTS = {"dask": "dask", "ray": "ray", "serve": "starlette", "spark": "pyspark"}
ABSENT = {part for part, package in PARTS.items() if find_spec(package) is None}


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out `src/tacit/dask` where there is no Dask, and so on."""
    return True if ABSENT.intersection(collection_path.parts) and "tacit" in collection_path.parts else None
