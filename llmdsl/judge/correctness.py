"""Is an output right? Error bounds from float64 and the op's own arithmetic, never a fixed tolerance."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from llmdsl.tasks.meaning import Args, Meaning
from llmdsl.tasks.task import Case, Output, Task

_EXACT = {torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.bool}
# Significand bits (with the hidden one) and smallest normal exponent: half an ulp needs no more.
_FORMAT = {torch.float64: (53, -1022), torch.float32: (24, -126), torch.float16: (11, -14), torch.bfloat16: (8, -126),
           torch.float8_e4m3fn: (4, -6), torch.float8_e5m2: (3, -14)}  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    """One output against its expectation. `error` is the largest error in units of the bound (right: <= 1)."""

    passed: bool
    error: float
    reason: str = ""
    index: tuple[int, ...] = ()
    got: float | int | None = None
    expected: float | int | None = None
    wrong: int = 0
    total: int = 0


@dataclass(frozen=True)
class Expected:
    """What one output of one case must be: the truth and the bound per element."""

    spec: Output
    dtype: torch.dtype
    truth: torch.Tensor
    bound: torch.Tensor | None  # None: must match exactly

    @property
    def shape(self) -> torch.Size:
        return self.truth.shape


def half_ulp(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Half the spacing of `dtype` at |x|: the largest rounding error of a value of that size. Shape of x, float64."""
    bits, least = _FORMAT[dtype]
    _, exponent = torch.frexp(x.abs().double())  # |x| in [2^(e-1), 2^e), but e = 0 for zero
    exponent = torch.where(x == 0, least, exponent - 1).clamp(min=least)
    return torch.ldexp(torch.ones_like(x, dtype=torch.float64), exponent - bits)


def unit_roundoff(dtype: torch.dtype) -> float:
    """2^-p for a significand of p bits: the largest relative error of rounding to nearest (Higham 2002, section 2.1)."""
    return math.ldexp(1.0, -_FORMAT[dtype][0])


def expect(meaning: Meaning, case: Case, args: Args) -> tuple[Expected, ...]:
    """The truth and the error bounds of a case's outputs. See `Tolerance` for the rule."""
    task: Task = meaning.task
    truth = meaning.truth(args)
    magnitude = meaning.magnitude(args, truth)
    good = meaning.good(case, args)
    compute = torch.float32 if task.tolerance.compute == "float32" else getattr(torch, case.dtype)
    expected = []
    for spec, t, m, g in zip(task.outputs, truth, magnitude, good, strict=True):
        dtype = getattr(torch, task.dtype_of(spec, case))
        if dtype in _EXACT:
            expected.append(Expected(spec, dtype, t.to(dtype), None))
            continue
        unit = half_ulp(t, dtype) + unit_roundoff(compute) * m
        finite = torch.isfinite(t.to(dtype).double()) & torch.isfinite(g.double())
        ratio = ((g.double() - t).abs() / unit)[finite]
        level = max(1.0, float(ratio.max())) if ratio.numel() else 1.0
        units = spec.units if spec.units is not None else task.tolerance.units
        expected.append(Expected(spec, dtype, t, unit * (units * level)))
    return tuple(expected)


def compare(expected: Expected, got: torch.Tensor) -> Comparison:
    """`got` against the expectation: shape and dtype, the exact non-finite mask, then every element within its bound."""
    name = expected.spec.name
    if tuple(got.shape) != tuple(expected.shape):
        return Comparison(
            False, math.inf, f"{name} has shape {tuple(got.shape)}, expected {tuple(expected.shape)}"
        )
    if got.dtype != expected.dtype:
        return Comparison(False, math.inf, f"{name} has dtype {got.dtype}, expected {expected.dtype}")
    total = got.numel()
    if total == 0:
        return Comparison(True, 0.0)
    if expected.bound is None:
        bad = got != expected.truth
        return _verdict(expected, got, bad.double() * 2, bad, total, "differs; integers must match exactly")
    value = got.double()
    rounded = expected.truth.to(expected.dtype).double()
    finite = torch.isfinite(rounded)
    # Where the truth rounds to a non-finite value the answer must be that very value; a NaN matches only a NaN.
    same = torch.where(rounded.isnan(), value.isnan(), value == rounded)
    # A truth within its bound of the overflow threshold may round either way.
    largest = torch.finfo(expected.dtype).max
    near_overflow = (expected.truth.abs() + expected.bound >= largest) & (
        value.abs() >= largest - expected.bound
    )
    near_overflow &= torch.sign(value) == torch.sign(expected.truth)
    error = (value - expected.truth).abs() / expected.bound
    bad = torch.where(finite, ~(error <= 1), ~same) & ~(near_overflow & ~value.isnan())
    error = torch.where(finite & torch.isfinite(value), error, torch.where(bad, torch.inf, 0.0))
    return _verdict(expected, got, error, bad, total, "is outside its error bound")


def _verdict(expected: Expected, got: torch.Tensor, error: torch.Tensor, bad: torch.Tensor, total: int,
             what: str) -> Comparison:  # fmt: skip
    wrong = int(bad.sum())
    if not wrong:
        return Comparison(True, float(error.max()), total=total)
    first = int(torch.nonzero(bad.reshape(-1))[0])
    index = tuple(int(i) for i in torch.unravel_index(torch.tensor(first), bad.shape)) if bad.dim() else ()
    got_value, want = got.reshape(-1)[first].item(), expected.truth.reshape(-1)[first].item()
    place = f"{expected.spec.name}[{', '.join(map(str, index))}]"
    reason = f"{place} = {got_value!r} {what}: expected {want!r}; {wrong} of {total} elements are wrong"
    return Comparison(False, float(error.reshape(-1).max()), reason, index, got_value, want, wrong, total)
