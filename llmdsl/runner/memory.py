"""Tensors of a case: mapped from the judge's shared memory, or made empty where only shapes matter."""

from __future__ import annotations

import mmap
from typing import Any

import torch

# Every byte 0xff is a NaN in each floating-point format and -1 in each signed integer: what nobody wrote shows.
CANARY = 0xFF


class Region:
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
            bytes_ = tensor.contiguous().reshape(-1).view(torch.uint8)
            torch.frombuffer(self._map, dtype=torch.uint8, count=size, offset=offset).copy_(bytes_)


def shapes_only(spec: dict[str, Any]) -> torch.Tensor:
    """A tensor of that shape and stride whose values nobody will read: its pages are never touched."""
    return torch.empty_strided(spec["shape"], spec["stride"], dtype=getattr(torch, spec["dtype"]))
