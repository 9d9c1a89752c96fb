"""NVIDIA's driver, by `ctypes`: kernels are loaded and launched, and memory is moved, without any other package.

The driver's functions have kept their signatures for more than ten years, and every machine with a GPU has it. All work
is done in a device's primary context, which PyTorch and CuPy use, too: their arrays and streams are taken as they are.
"""

from __future__ import annotations

import ctypes
import sys
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_void_p
from functools import cache, cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.base.errors import TacitError
from tacit.engines.cuda.device_kernels import THREADS_PER_BLOCK

LIBRARY = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
PTX_INPUT = 1  # of the linker
CAPABILITY = (75, 76)  # attributes: the major and the minor number
PORTABLE = 1  # pinned memory for all contexts


@cache
def driver() -> Any:
    """The driver; an error where there is none, or no GPU."""
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError as error:
        raise TacitError(f"engine='cuda' needs NVIDIA's driver, and {LIBRARY} cannot be loaded: {error}") from None
    code = library.cuInit(0)
    count = c_int()
    if code == 0:
        code = library.cuDeviceGetCount(byref(count))
    if code != 0 or count.value == 0:
        raise TacitError(f"engine='cuda' needs an NVIDIA GPU, and the driver finds none (code {code})")
    return library


def call(name: str, *arguments: Any) -> None:
    """Call a function of the driver; an error if it fails."""
    loaded = driver()
    code = getattr(loaded, name)(*arguments)
    if code != 0:
        text = c_char_p()
        loaded.cuGetErrorString(code, byref(text))
        told = text.value.decode() if text.value else f"code {code}"
        raise TacitError(f"the GPU driver's {name} failed: {told}")


class Device:
    """A GPU, by its number."""

    def __init__(self, number: int = 0) -> None:
        driver()
        self.number, self._device, self._context = number, c_int(), c_void_p()
        call("cuDeviceGet", byref(self._device), c_int(number))
        call("cuDevicePrimaryCtxRetain", byref(self._context), self._device)

    @cached_property
    def name(self) -> str:
        """What code for this GPU depends on: its generation, and the driver."""
        numbers = [c_int() for _ in range(3)]
        for number, attribute in zip(numbers[:2], CAPABILITY, strict=True):
            call("cuDeviceGetAttribute", byref(number), c_int(attribute), self._device)
        call("cuDriverGetVersion", byref(numbers[2]))
        return "cuda {}.{} {}".format(*(number.value for number in numbers))

    @contextmanager
    def current(self) -> Iterator[None]:
        """Work on this GPU, in this thread."""
        call("cuCtxPushCurrent_v2", self._context)
        try:
            yield
        finally:
            call("cuCtxPopCurrent_v2", byref(c_void_p()))

    def free_bytes(self) -> int:
        free, whole = c_size_t(), c_size_t()
        call("cuMemGetInfo_v2", byref(free), byref(whole))
        return free.value

    def assembled(self, text: str) -> bytes:
        """PTX as code of this GPU."""
        state, content, size = c_void_p(), c_void_p(), c_size_t()
        given = text.encode() + b"\0"
        call("cuLinkCreate_v2", c_uint(0), None, None, byref(state))
        try:
            call(
                "cuLinkAddData_v2", state, c_int(PTX_INPUT), c_char_p(given), c_size_t(len(given)), b"tape", c_uint(0),
                None, None,
            )  # fmt: skip
            call("cuLinkComplete", state, byref(content), byref(size))
            return ctypes.string_at(content, size.value)
        finally:
            call("cuLinkDestroy", state)


class DeviceMemory:
    """Some bytes of a GPU's memory, or of the host's that the GPU can reach (`pinned`), freed with this object."""

    def __init__(self, device: Device, size: int, pinned: bool = False) -> None:
        self.size, pointer = max(size, 1), c_void_p()
        with device.current():
            if pinned:
                call("cuMemHostAlloc", byref(pointer), c_size_t(self.size), c_uint(PORTABLE))
            else:
                call("cuMemAlloc_v2", byref(pointer), c_size_t(self.size))
        self.address = pointer.value or 0
        weakref.finalize(self, _destroy, device, "cuMemFreeHost" if pinned else "cuMemFree_v2", self.address)

    def array(self, dtype: Any, *shape: int) -> NDArray[Any]:
        """The first bytes of pinned memory as an array."""
        count = int(np.prod(shape)) * np.dtype(dtype).itemsize
        buffer = (ctypes.c_char * count).from_address(self.address)
        array = np.frombuffer(buffer, dtype=dtype).reshape(shape)
        buffer._keep = self  # the array holds the buffer, and that this
        return array


class Stream:
    """Work that is done in turn."""

    def __init__(self, device: Device) -> None:
        pointer = c_void_p()
        with device.current():
            call("cuStreamCreate", byref(pointer), c_uint(1))  # that does not wait for the default stream
        self.handle = pointer.value or 0
        weakref.finalize(self, _destroy, device, "cuStreamDestroy_v2", self.handle)


def _destroy(device: Device, name: str, handle: int) -> None:
    with device.current():
        driver()[name](c_void_p(handle))


def wait(stream: int) -> None:
    """Until all work of a stream is done."""
    call("cuStreamSynchronize", c_void_p(stream))


def clear(address: int, size: int, stream: int) -> None:
    """Set bytes of the GPU to 0."""
    call("cuMemsetD8Async", c_void_p(address), c_uint(0), c_size_t(size), c_void_p(stream))


def _copy(name: str, to: int, source: int, size: int, stream: int) -> None:
    call(name, c_void_p(to), c_void_p(source), c_size_t(size), c_void_p(stream))


# Copy bytes to the GPU, from it, and within it: to where, from where, how many, on which stream.
copy_in = partial(_copy, "cuMemcpyHtoDAsync_v2")
copy_out = partial(_copy, "cuMemcpyDtoHAsync_v2")
copy_within = partial(_copy, "cuMemcpyDtoDAsync_v2")


class DeviceModule:
    """A loaded kernel, with the variable that holds its constants, if it has one."""

    def __init__(self, device: Device, content: bytes, name: str, constants: bool) -> None:
        module, self._function, self.constants = c_void_p(), c_void_p(), 0
        with device.current():
            call("cuModuleLoadData", byref(module), c_char_p(content))
            call("cuModuleGetFunction", byref(self._function), module, name.encode())
            if constants:
                pointer, size = c_void_p(), c_size_t()
                call("cuModuleGetGlobal_v2", byref(pointer), byref(size), module, b"constants")
                self.constants = pointer.value or 0
            self._event = c_void_p()
            call("cuEventCreate", byref(self._event), c_uint(2))  # without times
        weakref.finalize(self, _destroy, device, "cuEventDestroy_v2", self._event.value or 0)
        self._stream: int | None = None
        weakref.finalize(self, _destroy, device, "cuModuleUnload", module.value or 0)

    def launch(self, given: Sequence[int], threads: int, stream: int) -> None:
        """Run so many threads, with parameters that are numbers of 64 bits."""
        if not threads:
            return
        numbers = np.array(given, dtype=np.int64)
        addresses = np.arange(numbers.ctypes.data, numbers.ctypes.data + numbers.nbytes, 8)
        places = c_void_p(addresses.ctypes.data)
        blocks = -(-threads // THREADS_PER_BLOCK)
        sizes = [c_uint(size) for size in (blocks, 1, 1, THREADS_PER_BLOCK, 1, 1)]
        call("cuLaunchKernel", self._function, *sizes, c_uint(0), c_void_p(stream), places, None)
        self._stream = stream

    def before_change(self, stream: int) -> None:
        """What comes next on a stream changes the constants: launches on another stream may still read them."""
        if self._stream is not None and self._stream != stream:
            call("cuEventRecord", self._event, c_void_p(self._stream))
            call("cuStreamWaitEvent", c_void_p(stream), self._event, c_uint(0))
