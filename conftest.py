"""Modules for packages that are not installed have no doctests to run."""

from importlib.util import find_spec
from pathlib import Path

PARTS = {"dask": "dask", "ray": "ray", "serve": "starlette", "spark": "pyspark"}
ABSENT = tuple(part for part, package in PARTS.items() if find_spec(package) is None)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out what is for Dask where there is no Dask, and so on."""
    if "src" not in collection_path.parts:
        return None
    names = (*collection_path.parts[:-1], collection_path.stem)
    return True if any(name.startswith(ABSENT) for name in names[names.index("src") :]) else None
