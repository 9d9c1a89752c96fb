"""What tests skip where it is missing is there, so that nothing is skipped without a word."""

from importlib import import_module

import pytest

# fmt: off
PACKAGES = (
    "matplotlib", "mpmath", "onnx", "onnxruntime", "pandas", "pgmpy.models", "polars", "pyagrum", "pyarrow", "rich",
    "sklearn", "torch", "typer",
)
# fmt: on


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.filterwarnings("ignore")
def test_packages_that_tests_need_are_installed(package: str) -> None:
    import_module(package)
