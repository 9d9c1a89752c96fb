"""The number of the flag by which processors note an underflow."""

# What is built into kernels: see `jit`.

from __future__ import annotations

import platform
import sys

# FE_UNDERFLOW of the C library, which differs between systems and processors.
UNDERFLOW = (
    0x02
    if sys.platform == "win32"
    else {"x86_64": 0x10, "AMD64": 0x10, "aarch64": 0x08, "arm64": 0x08, "ppc64le": 0x08000000}.get(
        platform.machine(), 0x10
    )
)
