"""Inputs of a case: seeded, signed, of varied scale and structure, in the memory layout the case asks for."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from llmdsl.tasks.task import Case

VALUES = ("normal", "large", "small", "mixed", "structured", "spiky")
LAYOUTS = ("contiguous", "transposed", "sliced", "offset")


class InputMaker:
    """Makes a case's tensors. `reference.py` gets one per call and never touches global random state.

    values: `normal` N(0, 1); `large` N(0, 1) x 64 (float16-safe: |x| < 400); `small` N(0, 1) / 1024;
    `mixed` every row of its own scale, 2^-6 to 2^6; `structured` a signed ramp with position-dependent values, so
    that swapped or shifted elements show; `spiky` N(0, 1) with one element in 64 multiplied by 100.
    layout: `contiguous`; `transposed` last two dimensions swapped in memory; `sliced` rows cut out of wider rows
    (last stride 1, row stride padded); `offset` contiguous but starting 1 element into its buffer (16-byte
    alignment lost).
    """

    def __init__(self, case: Case, seed: int, device: str = "cpu"):
        self.case = case
        self.dtype: torch.dtype = getattr(torch, case.dtype)
        self.device = device
        self._host = torch.Generator().manual_seed(seed)
        # On "meta" only shapes and strides are made: what a compiler needs to know of a case.
        self._generator = None if device == "meta" else torch.Generator(device=device).manual_seed(seed)

    def tensor(self, shape: tuple[int, ...], *, dtype: torch.dtype | None = None, values: str | None = None,
               layout: str | None = None, scale: float = 1.0, shift: float = 0.0) -> torch.Tensor:  # fmt: skip
        """A floating-point tensor of the case's dtype, values and layout unless overridden; value*scale + shift."""
        x = self._values(shape, values or self.case.values) * scale + shift
        return self.lay_out(x.to(dtype or self.dtype), layout or self.case.layout)

    def integers(
        self, shape: tuple[int, ...], low: int, high: int, *, dtype: torch.dtype = torch.int64
    ) -> torch.Tensor:
        """Uniform integers in [low, high), contiguous."""
        return torch.randint(low, high, shape, generator=self._generator, device=self.device, dtype=dtype)

    def integer(self, low: int, high: int) -> int:
        """One uniform Python integer in [low, high)."""
        return int(torch.randint(low, high, (1,), generator=self._host))

    def _values(self, shape: tuple[int, ...], values: str) -> torch.Tensor:
        x = torch.randn(shape, generator=self._generator, device=self.device, dtype=torch.float32)
        match values:
            case "normal":
                return x
            case "large":
                return x.clamp(-6, 6) * 64
            case "small":
                return x / 1024
            case "mixed":
                rows = torch.rand((*shape[:-1], 1), generator=self._generator, device=self.device) * 12 - 6
                return x * torch.exp2(rows)
            case "structured":
                index = torch.arange(math.prod(shape), device=self.device, dtype=torch.float64).reshape(shape)
                # A period coprime to every power of two: a kernel off by a tile or a row sees other values.
                return (((index * 37) % 1009) / 252 - 2).float()
            case "spiky":
                spikes = torch.rand(shape, generator=self._generator, device=self.device) < 1 / 64
                return torch.where(spikes, x * 100, x)
        raise ValueError(f"values must be one of {', '.join(VALUES)}, not {values!r}")

    def lay_out(self, x: torch.Tensor, layout: str) -> torch.Tensor:
        """The same values in another memory layout; tensors with too few dimensions for it stay contiguous."""
        match layout:
            case "contiguous":
                return x.contiguous()
            case "transposed" if x.dim() >= 2:
                return x.transpose(-1, -2).contiguous().transpose(-1, -2)
            case "sliced" if x.dim() >= 2:
                wide = torch.zeros(*x.shape[:-1], x.shape[-1] + 24, dtype=x.dtype, device=x.device)
                wide[..., 8 : 8 + x.shape[-1]] = x
                return wide[..., 8 : 8 + x.shape[-1]]
            case "offset":
                flat = torch.zeros(x.numel() + 1, dtype=x.dtype, device=x.device)
                flat[1:] = x.reshape(-1)
                return flat[1:].view(x.shape)
            case "transposed" | "sliced":
                return x.contiguous()
        raise ValueError(f"layout must be one of {', '.join(LAYOUTS)}, not {layout!r}")
