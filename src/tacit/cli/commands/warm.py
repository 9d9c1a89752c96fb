"""The command that compiles all kernels ahead."""

from __future__ import annotations

import time
from functools import partial

from tacit.base.errors import TacitError


def warm() -> None:
    """Compile all kernels now, so that nobody waits for them later.

    Most queries need none: code is generated for each of them. Large networks and some questions run on kernels, which
    are compiled on first use, once: half a minute, or a minute for all. Do it while the image of a container is built,
    or before tests start in several processes. They are kept beside the package if that can be written, else in the
    cache of the user; NUMBA_CACHE_DIR names another folder. Whoever can read them uses them.

    \b
    Example, in a Dockerfile, after tacit was installed:
      RUN tacit warm
    """
    from tacit.cli.shared.all_kernels import compile_all  # loads numba

    began = time.monotonic()
    folder = compile_all(partial(print, flush=True))
    if folder is None:
        raise TacitError(
            "all kernels are compiled, but nothing can be kept: set NUMBA_CACHE_DIR to a folder to write to"
        )
    print(f"all kernels are compiled, in {time.monotonic() - began:.0f} s; those of engines are in {folder}")
