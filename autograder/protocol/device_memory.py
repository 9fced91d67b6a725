"""Memory of a GPU that two processes share by a file descriptor: the driver's virtual memory calls, by ctypes.

Unlike the older IPC handles, a descriptor needs no common namespaces, so it reaches into a sandbox like any other. Both
sides need a current CUDA context, which `torch.cuda.init()` and a first tensor make. Names and layouts are those of
the CUDA driver API, section Virtual Memory Management.
"""

import ctypes
from ctypes import byref, c_int, c_size_t, c_ubyte, c_uint, c_uint64, c_ushort, c_void_p
from typing import Any, Self

PINNED, POSIX_FILE_DESCRIPTOR, DEVICE, READ_AND_WRITE = 1, 1, 1, 3


class DeviceMemoryError(Exception):
    """A call of the driver failed; the message names it and its status."""


class _Location(ctypes.Structure):
    _fields_ = (("type", c_int), ("id", c_int))


class _Flags(ctypes.Structure):
    _fields_ = (
        ("compression_type", c_ubyte),
        ("gpu_direct_rdma_capable", c_ubyte),
        ("usage", c_ushort),
        ("reserved", c_ubyte * 4),
    )


class _Properties(ctypes.Structure):
    _fields_ = (
        ("type", c_int),
        ("requested_handle_types", c_int),
        ("location", _Location),
        ("win32_handle_meta_data", c_void_p),
        ("alloc_flags", _Flags),
    )


class _Access(ctypes.Structure):
    _fields_ = (("location", _Location), ("flags", c_int))


class SharedBlock:
    """Hold a block of a GPU's memory, mapped at `pointer`; `size_bytes` is the requested size, rounded up.

    >>> mine = SharedBlock.made(1 << 20, device=0)  # the host's
    >>> theirs = SharedBlock.of_descriptor(mine.descriptor(), mine.size_bytes, device=0)  # the worker's
    """

    def __init__(self, driver: Any, handle: int, size_bytes: int, device: int) -> None:
        self._driver, self._handle, self.size_bytes = driver, c_uint64(handle), size_bytes
        pointer = c_uint64()
        _call(
            driver, "cuMemAddressReserve", byref(pointer), c_size_t(size_bytes), c_size_t(0), c_uint64(0), c_uint64(0)
        )
        _call(driver, "cuMemMap", pointer, c_size_t(size_bytes), c_size_t(0), self._handle, c_uint64(0))
        access = _Access(_Location(DEVICE, device), READ_AND_WRITE)
        _call(driver, "cuMemSetAccess", pointer, c_size_t(size_bytes), byref(access), c_size_t(1))
        self._pointer = pointer

    @classmethod
    def made(cls, size_bytes: int, *, device: int, driver: Any = None) -> Self:
        """Allocate a block that can be shared."""
        driver = driver or _libcuda()
        wanted = _Properties(PINNED, POSIX_FILE_DESCRIPTOR, _Location(DEVICE, device))
        granularity = c_size_t()
        _call(driver, "cuMemGetAllocationGranularity", byref(granularity), byref(wanted), c_int(0))
        rounded = -(-size_bytes // granularity.value) * granularity.value
        handle = c_uint64()
        _call(driver, "cuMemCreate", byref(handle), c_size_t(rounded), byref(wanted), c_uint64(0))
        return cls(driver, handle.value, rounded, device)

    @classmethod
    def of_descriptor(cls, descriptor: int, size_bytes: int, *, device: int, driver: Any = None) -> Self:
        """Map a block that another process allocated."""
        driver = driver or _libcuda()
        handle = c_uint64()
        _call(
            driver,
            "cuMemImportFromShareableHandle",
            byref(handle),
            c_void_p(descriptor),  # the descriptor's number, passed as a pointer
            c_int(POSIX_FILE_DESCRIPTOR),
        )
        return cls(driver, handle.value, size_bytes, device)

    @property
    def pointer(self) -> int:
        """Return where the block begins, on the device."""
        return self._pointer.value

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        """Return the data from which `torch.as_tensor(block, device="cuda")` makes a tensor of the block's bytes."""
        return {"shape": (self.size_bytes,), "typestr": "|u1", "data": (self.pointer, False), "version": 3}

    def descriptor(self) -> int:
        """Return a new descriptor that stands for the block; the caller closes it."""
        descriptor = c_int(-1)
        kind, none = c_int(POSIX_FILE_DESCRIPTOR), c_uint64(0)
        _call(self._driver, "cuMemExportToShareableHandle", byref(descriptor), self._handle, kind, none)
        return descriptor.value

    def close(self) -> None:
        """Unmap the block; its memory is freed after all processes have unmapped it."""
        _call(self._driver, "cuMemUnmap", self._pointer, c_size_t(self.size_bytes))
        _call(self._driver, "cuMemAddressFree", self._pointer, c_size_t(self.size_bytes))
        _call(self._driver, "cuMemRelease", self._handle)


def _libcuda() -> Any:
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise DeviceMemoryError(f"The CUDA driver is not here: {error}.") from None


def _call(driver: Any, name: str, *arguments: Any) -> None:
    function = getattr(driver, name)
    function.restype = c_uint
    status = function(*arguments)
    if status:
        raise DeviceMemoryError(f"{name} failed with status {status}.")
