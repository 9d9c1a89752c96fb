"""What pytest leaves out: modules of packages that are not installed have doctests that cannot run."""

from importlib.util import find_spec

TORCH = ["src/tacit/torch.py", "src/tacit/engines/torch.py", "src/tacit/engines/torch_steps.py"]

collect_ignore = [] if find_spec("torch") else TORCH
