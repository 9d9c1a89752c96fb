"""A compiled query as a PyTorch module, from evidence tensors to the posterior."""

from tacit.base.version import how_to_install

try:
    import torch  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(f"tacit.torch needs PyTorch: {how_to_install('torch')}", name="torch") from error

from tacit.torch.tac_module import TACModule

__all__ = ["TACModule"]
