"""Shared memory of one case: the judge writes inputs between guard bands, the runner maps it, the judge reads it back."""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from typing import Any

import torch

from llmdsl.judge.correctness import Expected
from llmdsl.tasks.meaning import Args

_GUARD = (
    4096  # bytes around every buffer; a kernel that strays further is found by the interpreter's bounds check
)
_CANARY = 0xFF  # a NaN in every floating-point format


def _span(tensor: torch.Tensor) -> int:
    """Elements from the first to the last one of a strided tensor."""
    if tensor.numel() == 0:
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))


def describe(args: Args) -> list[dict[str, Any]]:
    """Arguments as the wire names them, without memory: for tiers where only shapes matter."""
    return [_spec(a) if isinstance(a, torch.Tensor) else {"value": a} for a in args.values()]


def _spec(tensor: torch.Tensor) -> dict[str, Any]:
    return {"dtype": str(tensor.dtype).removeprefix("torch."), "shape": list(tensor.shape),
            "stride": list(tensor.stride()), "extent": _span(tensor)}  # fmt: skip


class CaseRegion:
    """One case's memory. Gaps of strided inputs are canary too, so that a kernel which reads them shows.

    `specs` goes over the wire with `fd`; after the call `inputs_intact` and `output` read what the runner left.
    """

    def __init__(self, args: Args, expected: Sequence[Expected]):
        self.specs: list[dict[str, Any]] = []
        placed: list[tuple[torch.Tensor, dict[str, Any]]] = []
        at = _GUARD
        for value in args.values():
            if not isinstance(value, torch.Tensor):
                self.specs.append({"value": value})
                continue
            # The same misalignment as the original has, so that vectorised kernels meet what the case promises.
            shift = (value.storage_offset() * value.element_size()) % 16
            spec = {**_spec(value), "offset": at + shift}
            self.specs.append(spec)
            placed.append((value, spec))
            at = _align(at + shift + spec["extent"] * value.element_size() + _GUARD)
        self.output_at = at
        self.nbytes = at + sum(_align(e.truth.numel() * e.dtype.itemsize) for e in expected) + _GUARD
        self.fd = os.memfd_create("llmdsl-case", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, self.nbytes)
        _seal(self.fd)
        self._map = mmap.mmap(self.fd, self.nbytes)
        self._bytes = torch.frombuffer(self._map, dtype=torch.uint8)
        self._bytes.fill_(_CANARY)
        for value, spec in placed:
            if spec["extent"]:
                flat = torch.frombuffer(
                    self._map, dtype=value.dtype, count=spec["extent"], offset=spec["offset"]
                )
                flat.as_strided(value.shape, value.stride()).copy_(value)
        self._before = self._bytes[: self.output_at].clone()

    def intact(self) -> str:
        """Empty if inputs and guards are as they were; else which of the two was written."""
        changed = torch.nonzero(self._bytes[: self.output_at] != self._before).reshape(-1)
        if not changed.numel():
            return ""
        first = int(changed[0])
        for spec in self.specs:
            size = spec.get("extent", 0) * (getattr(torch, spec["dtype"]).itemsize if "dtype" in spec else 0)
            if "offset" in spec and spec["offset"] <= first < spec["offset"] + size:
                return f"input: {changed.numel()} bytes of the inputs changed"
        return f"guard: {changed.numel()} bytes around the inputs were overwritten"

    def output(self, described: dict[str, Any]) -> torch.Tensor | None:
        """The runner's output tensor, copied out; None where the description does not fit the region."""
        dtype = getattr(torch, described["dtype"], None)
        shape, offset = described["shape"], described.get("offset")
        if not isinstance(dtype, torch.dtype) or not isinstance(offset, int):
            return None
        count = 1
        for size in shape:
            count *= size
        if count == 0:
            return torch.empty(shape, dtype=dtype)
        if (
            offset < self.output_at
            or offset % dtype.itemsize
            or offset + count * dtype.itemsize > self.nbytes
        ):
            return None
        return torch.frombuffer(self._map, dtype=dtype, count=count, offset=offset).clone().reshape(shape)

    def close(self) -> None:
        os.close(self.fd)


def _align(nbytes: int) -> int:
    return -(-nbytes // 64) * 64


def _seal(fd: int) -> None:
    import fcntl

    # The runner may write but not resize: a truncated region would kill the judge with SIGBUS.
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
