"""A GPU that is this processor: memory is the host's, and kernels run row after row, when they are launched."""

import ctypes
import gc
import weakref
from contextlib import nullcontext
from functools import partial

import numpy as np

from tacit.engines.cuda import cuda_engine, device_kernels, driver
from tacit.engines.native import code_cache
from tacit.engines.native.llvm import Code


class Device:
    name = "this processor"

    def __init__(self, number=0):
        self.number = number

    def current(self):
        return nullcontext()

    def free_bytes(self):
        return 2**30

    def assembled(self, text):
        return text.encode()


class DeviceMemory:
    """Bytes that are not numbers until they are written, and behind them some that must not be."""

    GUARD = 64

    def __init__(self, device, size, pinned=False):
        self.size = max(size, 1)
        self._bytes = np.full(self.size + self.GUARD, 0xFF, dtype=np.uint8)
        self.address = self._bytes.ctypes.data
        weakref.finalize(self, DeviceMemory._check, self._bytes[self.size :])

    @staticmethod
    def _check(guard):
        overwritten.append(bool((guard != 0xFF).any()))

    def array(self, dtype, *shape):
        return self._bytes[: int(np.prod(shape)) * np.dtype(dtype).itemsize].view(dtype).reshape(shape)


overwritten = []  # of all memory that was freed


class Stream:
    def __init__(self, device):
        self.handle = id(self)


class DeviceModule:
    constants = 0

    def __init__(self, device, content, name, constants):
        assert not constants
        self._code = Code(content.decode(), "run")

    def launch(self, given, threads, stream):
        call = np.array(given, dtype=np.int64)  # which must outlive its address
        self._code.run(call.ctypes.data)

    def before_change(self, stream):
        pass


def copy(to, source, size, stream):
    ctypes.memmove(to, source, size)


def emulate(patch):
    """Let the engine for GPUs run on it."""
    patch.setattr(driver, "driver", lambda: None)
    for fake in (Device, DeviceMemory, Stream, DeviceModule):
        patch.setattr(driver, fake.__name__, fake)
    for name in ("copy_in", "copy_out", "copy_within"):
        patch.setattr(driver, name, copy)
    patch.setattr(driver, "clear", lambda address, size, stream: ctypes.memset(address, 0, size))
    patch.setattr(driver, "wait", lambda stream: None)
    for name in ("forward_kernel", "keeping_kernel", "reverse_kernel"):
        patch.setattr(device_kernels, name, partial(getattr(device_kernels, name), device=False))
    patch.setattr(cuda_engine, "ptx", lambda text: text)
    patch.setattr(code_cache, "load", lambda key: None)
    patch.setattr(code_cache, "save", lambda key, content: None)


def check_memory():
    """Nothing was written behind the end of any memory."""
    gc.collect()
    assert not any(overwritten)
    overwritten.clear()
