"""Device memory that two processes share: CUDA's virtual memory calls through ctypes.

The judge creates an allocation and exports it as a file descriptor, the runner imports and maps it. Unlike handles of
the older CUDA IPC calls, descriptors work across PID and user namespaces, and what the runner maps dies with it.
(CUDA driver API, section "Virtual Memory Management".)
"""

from __future__ import annotations

import ctypes as c
from functools import cache
from typing import Any

_PINNED, _POSIX_FD, _DEVICE, _READ_WRITE = 1, 1, 1, 3


class _Location(c.Structure):
    _fields_ = (("type", c.c_int), ("id", c.c_int))


class _Property(c.Structure):
    _fields_ = (("type", c.c_int), ("handles", c.c_int), ("location", _Location), ("win32", c.c_void_p),
                ("flags", c.c_ubyte * 8))  # fmt: skip


class _Access(c.Structure):
    _fields_ = (("location", _Location), ("flags", c.c_int))


class CudaError(RuntimeError):
    """A driver call failed; `code` is its CUresult."""

    def __init__(self, call: str, code: int):
        super().__init__(f"{call} failed with CUDA error {code}")
        self.code = code


@cache
def driver() -> Any:
    """libcuda; every call raises CudaError unless it returns 0."""

    class Driver:
        def __init__(self) -> None:
            self._library = c.CDLL("libcuda.so.1")

        def __getattr__(self, name: str) -> Any:
            function = getattr(self._library, name)

            def call(*args: Any) -> None:
                if code := function(*args):
                    raise CudaError(name, code)

            setattr(self, name, call)
            return call

    return Driver()


def _property(device: int) -> _Property:
    return _Property(type=_PINNED, handles=_POSIX_FD, location=_Location(_DEVICE, device))


@cache
def granularity(device: int = 0) -> int:
    """Bytes that allocations are rounded up to (2 MiB on current chips)."""
    size = c.c_size_t()
    driver().cuMemGetAllocationGranularity(c.byref(size), c.byref(_property(device)), 0)
    return size.value


class SharedMemory:
    """One allocation of device memory, mapped in this process. The primary context must be current.

    Without `fd` it is created (and `export()` gives descriptors for others), with `fd` it is another process's.
    """

    def __init__(self, nbytes: int, fd: int | None = None, device: int = 0):
        unit = granularity(device)
        self.nbytes = -(-nbytes // unit) * unit
        self._handle, self._address = c.c_uint64(), c.c_uint64()
        size, zero = c.c_size_t(self.nbytes), c.c_uint64(0)
        if fd is None:
            driver().cuMemCreate(c.byref(self._handle), size, c.byref(_property(device)), zero)
        else:
            driver().cuMemImportFromShareableHandle(c.byref(self._handle), c.c_void_p(fd), _POSIX_FD)
        try:
            driver().cuMemAddressReserve(c.byref(self._address), size, c.c_size_t(0), zero, zero)
            driver().cuMemMap(self._address, size, c.c_size_t(0), self._handle, zero)
            access = _Access(_Location(_DEVICE, device), _READ_WRITE)
            driver().cuMemSetAccess(self._address, size, c.byref(access), c.c_size_t(1))
        except CudaError:
            driver().cuMemRelease(self._handle)
            raise

    @property
    def address(self) -> int:
        return int(self._address.value)

    def export(self) -> int:
        """A descriptor that another process can import. The caller closes it."""
        fd = c.c_int(-1)
        driver().cuMemExportToShareableHandle(c.byref(fd), self._handle, _POSIX_FD, c.c_uint64(0))
        return fd.value

    def storage(self, offset: int, nbytes: int) -> Any:
        """A torch storage over [offset, offset + nbytes) of this memory. It must not outlive `close()`."""
        import torch

        device = torch.device("cuda", 0)
        return torch._C._construct_storage_from_data_pointer(self.address + offset, device, nbytes)

    def close(self) -> None:
        """Unmaps and frees; another process's mapping keeps the memory alive until it ends."""
        size = c.c_size_t(self.nbytes)
        driver().cuMemUnmap(self._address, size)
        driver().cuMemAddressFree(self._address, size)
        driver().cuMemRelease(self._handle)
