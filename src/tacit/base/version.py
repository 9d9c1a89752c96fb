"""The version, and the name under which tacit is installed, which differs from the one under which it is imported.

The distribution is `tacit-circuits`. The one that is called `tacit` on the public index is another project, and has a
package `tacit`, too: where both are installed in one place, each overwrites files of the other.
"""

from __future__ import annotations

import os
from typing import Any

from tacit.base.errors import TacitError

VERSION = "0.1.0"  # the package that is built takes it from here
NAME = "tacit-circuits"
AUTHOR = "Author: The tacit contributors"  # as the metadata of an installation say it


_CLI = ("pyarrow>=17", "rich>=13.8", "typer>=0.20")
EXTRAS = {  # what each extra of pyproject.toml installs that users may lack
    "cli": _CLI,
    "dask": ("dask[array,dataframe,distributed]>=2025.1", "pyarrow>=17"),
    "frames": ("pandas>=2.2", "polars>=1.0"),
    "networkx": ("networkx>=3.2",),
    "onnx": ("onnx>=1.15",),
    "pgmpy": ("pgmpy>=1.0",),
    "plot": ("matplotlib>=3.8",),
    "pyagrum": ("pyagrum>=2.0",),
    "y0": ("y0>=0.2.11", "networkx>=3.2"),
    "ray": ("ray[data]>=2.40", "pyarrow>=17"),
    "serve": (*_CLI, "starlette>=0.46", "uvicorn>=0.34"),
    "sklearn": ("scikit-learn>=1.6",),
    "spark": ("pyspark>=4.0", "pandas>=2.2", "pyarrow>=17"),
    "torch": ("torch>=2.4",),
}


def how_to_install(extra: str) -> str:
    """The command that installs what an extra needs, wherever tacit itself came from: a checkout, a file or an index.

    >>> how_to_install("serve")
    "pip install 'pyarrow>=17' 'rich>=13.8' 'typer>=0.20' 'starlette>=0.46' 'uvicorn>=0.34'"
    """
    return " ".join(["pip install", *(f"'{needed}'" for needed in EXTRAS[extra])])


def package(name: str, extra: str, what: str = "this") -> Any:
    """A package that an extra installs; an error that says how, if it is not there."""
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError:
        raise TacitError(f"{what} needs {name}, which is not installed: {how_to_install(extra)}") from None


def refuse_a_mixture(package: str = os.path.dirname(os.path.dirname(__file__))) -> None:
    """Refuse an installation that has the distribution `tacit` in the same place as this package."""
    place = os.path.dirname(package)  # its names tell: importlib.metadata takes far longer, at every import
    for entry in os.listdir(place) if os.path.isdir(place) else ():  # else in an archive, which nobody installs into
        name, _, rest = entry.lower().partition("-")
        if name == "tacit" and rest.endswith((".dist-info", ".egg-info")) and not _is_ours(os.path.join(place, entry)):
            raise ImportError(
                f"{NAME} and {entry.rpartition('.')[0]}, another project, are both installed in {place}; both are "
                f"imported as tacit, and their files are mixed now. Uninstall both (pip uninstall tacit {NAME}), then "
                "install the one you want",
                name="tacit",
            )


def _is_ours(info: str) -> bool:
    """Whether a distribution called `tacit` is this project, which was called so itself at first."""
    try:
        with open(os.path.join(info, "METADATA"), encoding="utf-8") as file:
            return AUTHOR in map(str.rstrip, file)
    except OSError:
        return False
