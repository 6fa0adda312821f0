"""Tensors of a case: mapped from the judge's shared memory, or made empty where only shapes matter."""

from __future__ import annotations

import mmap
from typing import Any

import torch

from .cuda import SharedMemory

# Every byte 0xff is a NaN in each floating-point format and -1 in each signed integer: what nobody wrote shows.
CANARY = 0xFF


class HostRegion:
    """The judge's memory of one case, mapped shared: inputs between guard bands, then room for the outputs."""

    def __init__(self, fd: int, nbytes: int):
        self._map = mmap.mmap(fd, nbytes)

    def tensor(self, spec: dict[str, Any]) -> torch.Tensor:
        """The tensor described by {dtype, shape, stride, offset, extent}; its storage holds its extent and no guard."""
        dtype = getattr(torch, spec["dtype"])
        if not spec["extent"]:
            return torch.empty(spec["shape"], dtype=dtype)
        flat = torch.frombuffer(self._map, dtype=dtype, count=spec["extent"], offset=spec["offset"])
        return flat.as_strided(spec["shape"], spec["stride"])

    def write(self, offset: int, tensor: torch.Tensor) -> None:
        """Copies a tensor's values, row-major, to `offset`."""
        size = tensor.numel() * tensor.element_size()
        if size:
            target = torch.frombuffer(self._map, dtype=torch.uint8, count=size, offset=offset)
            target.copy_(tensor.contiguous().reshape(-1).view(torch.uint8))

    def close(self) -> None:
        """Tensors that a candidate kept stay valid: the map goes with the last of them."""


class DeviceRegion:
    """The same on the GPU."""

    def __init__(self, fd: int, nbytes: int):
        self._memory = SharedMemory(nbytes, fd)

    def tensor(self, spec: dict[str, Any]) -> torch.Tensor:
        dtype = getattr(torch, spec["dtype"])
        empty = torch.empty(0, dtype=dtype, device="cuda")
        if not spec["extent"]:
            return torch.empty(spec["shape"], dtype=dtype, device="cuda")
        storage = self._memory.storage(spec["offset"], spec["extent"] * dtype.itemsize)
        return empty.set_(storage, 0, spec["shape"], spec["stride"])

    def holds(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor's memory is the judge's: an argument, or a part of one."""
        return (
            self._memory.address
            <= tensor.untyped_storage().data_ptr()
            < self._memory.address + self._memory.nbytes
        )

    def write(self, offset: int, tensor: torch.Tensor) -> None:
        size = tensor.numel() * tensor.element_size()
        if size:
            storage = self._memory.storage(offset, size)
            target = torch.empty(0, dtype=torch.uint8, device="cuda").set_(storage, 0, (size,), (1,))
            target.copy_(tensor.contiguous().reshape(-1).view(torch.uint8))

    def close(self) -> None:
        """Unmaps: a candidate that kept a tensor of an earlier call faults when it uses it."""
        torch.cuda.synchronize()
        self._memory.close()


def shapes_only(spec: dict[str, Any]) -> torch.Tensor:
    """A tensor of that shape and stride whose values nobody will read: its pages are never touched."""
    return torch.empty_strided(spec["shape"], spec["stride"], dtype=getattr(torch, spec["dtype"]))
