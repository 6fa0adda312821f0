"""Memory of one case, shared with the runner: the judge writes inputs between guard bands and reads outputs back.

`HostRegion` is a sealed memory file for the CPU tiers, `DeviceRegion` an allocation on the GPU. Both are one flat run of
bytes: guard, input, guard, input, guard, …, outputs.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Sequence
from typing import Any

import torch

from llmdsl.judge.answers import OutputFrame
from llmdsl.judge.correctness import Expected
from llmdsl.runner.cuda import SharedMemory
from llmdsl.tasks.meaning import Args

_GUARD = (
    4096  # bytes around every buffer; a kernel that strays further is found by the interpreter's bounds check
)
_CANARY = 0xFF  # a NaN in every floating-point format


def describe(args: Args) -> list[dict[str, Any]]:
    """Arguments as the wire names them, without memory: for tiers where only shapes matter."""
    return [_spec(a) if isinstance(a, torch.Tensor) else {"value": a} for a in args.values()]


def _spec(tensor: torch.Tensor) -> dict[str, Any]:
    return {
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "shape": list(tensor.shape),
        "stride": list(tensor.stride()),
        "extent": _span(tensor),
    }


def _span(tensor: torch.Tensor) -> int:
    """Elements from the first to the last one of a strided tensor."""
    if tensor.numel() == 0:
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))


class CaseRegion:
    """One case's memory. Gaps of strided inputs are canary too, so that a kernel which reads them shows.

    `specs` goes over the wire with `fd`; after the call `touched` and `output` read what the runner left.
    """

    fd: int

    def __init__(self, args: Args, expected: Sequence[Expected]):
        self.specs: list[dict[str, Any]] = []
        at = _GUARD
        for value in args.values():
            if not isinstance(value, torch.Tensor):
                self.specs.append({"value": value})
                continue
            # The same misalignment as the original has, so that vectorised kernels meet what the case promises.
            shift = (value.storage_offset() * value.element_size()) % 16
            spec = {**_spec(value), "offset": at + shift}
            self.specs.append(spec)
            at = _align(at + shift + spec["extent"] * value.element_size() + _GUARD)
        self.output_at = at
        self.outputs = [
            {"shape": list(e.shape), "dtype": str(e.dtype).removeprefix("torch.")} for e in expected
        ]
        self.nbytes = at + sum(_align(e.truth.numel() * e.dtype.itemsize) for e in expected) + _GUARD
        self._bytes = self._allocate()
        self.reveal(args)

    def _allocate(self) -> torch.Tensor:
        """The whole region as bytes; sets `fd`."""
        raise NotImplementedError

    def reveal(self, args: Args) -> None:
        """Writes the inputs; everything else, old outputs included, becomes canary."""
        self._bytes.fill_(_CANARY)
        for value, spec in zip(args.values(), self.specs, strict=True):
            if spec.get("extent"):
                flat = self._view(spec["offset"], spec["extent"], value.dtype)
                flat.as_strided(value.shape, value.stride(), flat.storage_offset()).copy_(value)
        self._before = self._bytes[: self.output_at].clone()

    def touched(self) -> str:
        """Empty if inputs and guards are as they were; else a text that starts with "input" or "guard"."""
        if torch.equal(self._bytes[: self.output_at], self._before):
            return ""
        changed = torch.nonzero(self._bytes[: self.output_at] != self._before).reshape(-1)
        first = int(changed[0])
        for spec in self.specs:
            if spec.get("extent"):
                size = spec["extent"] * getattr(torch, spec["dtype"]).itemsize
                if spec["offset"] <= first < spec["offset"] + size:
                    return f"inputs: {changed.numel()} bytes of the inputs changed"
        return f"guard: {changed.numel()} bytes around the inputs were overwritten"

    def output(self, described: OutputFrame) -> torch.Tensor | None:
        """The runner's output tensor, copied out; None where the description does not fit the region."""
        dtype = getattr(torch, described.dtype or "", None)
        shape, offset = described.shape, described.offset
        if not isinstance(dtype, torch.dtype) or offset is None:
            return None
        count = 1
        for size in shape:
            count *= size
        if count == 0:
            return torch.empty(shape, dtype=dtype, device=self._bytes.device)
        if (
            offset < self.output_at
            or offset % dtype.itemsize
            or offset + count * dtype.itemsize > self.nbytes
        ):
            return None
        return self._view(offset, count, dtype).clone().reshape(shape)

    def _view(self, offset: int, count: int, dtype: torch.dtype) -> torch.Tensor:
        return self._bytes[offset : offset + count * dtype.itemsize].view(dtype)

    def close(self) -> None:
        """Gives the memory back. Tensors from `output` are copies and live on."""
        os.close(self.fd)


class HostRegion(CaseRegion):
    """In main memory, for the CPU tiers."""

    def _allocate(self) -> torch.Tensor:
        self.fd = os.memfd_create("llmdsl-case", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, self.nbytes)
        # The runner may write but not resize: a truncated region would kill the judge with SIGBUS.
        fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        return torch.frombuffer(mmap.mmap(self.fd, self.nbytes), dtype=torch.uint8)


class DeviceRegion(CaseRegion):
    """On the GPU, shared by descriptor."""

    def _allocate(self) -> torch.Tensor:
        torch.cuda.init()
        torch.empty(1, device="cuda")  # makes the primary context current in this thread
        self._memory = SharedMemory(self.nbytes)
        self.fd = self._memory.export()
        storage = self._memory.storage(0, self.nbytes)
        return torch.empty(0, dtype=torch.uint8, device="cuda").set_(storage, 0, (self.nbytes,), (1,))

    def touched(self) -> str:
        torch.cuda.synchronize()
        return super().touched()

    def close(self) -> None:
        torch.cuda.synchronize()
        del self._bytes
        self._memory.close()
        super().close()


def _align(nbytes: int) -> int:
    return -(-nbytes // 64) * 64
