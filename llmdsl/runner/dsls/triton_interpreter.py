"""Triton's interpreter, made fit to judge: exact 8- and 16-bit floats, checked bounds, ghost runs.

As shipped the interpreter holds bfloat16 and float8 values as integers and does arithmetic on those bits, rounds
conversions to them wrongly, and reads and writes any address. Here such values are computed in float32 and rounded to
nearest even, as the hardware does; every access must lie inside a tensor passed to the kernel.
What it cannot do at all (inline PTX, most of libdevice) raises `Unjudgeable`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import triton.language as tl
from triton.runtime import interpreter
from triton.runtime.autotuner import Autotuner
from triton.runtime.interpreter import InterpreterBuilder, ReduceScanOpInterface, TensorHandle

from . import LaunchLog, Unjudgeable

_TORCH = {tl.bfloat16: torch.bfloat16, tl.float8e4nv: torch.float8_e4m3fn, tl.float8e5: torch.float8_e5m2,
          tl.float16: torch.float16, tl.float32: torch.float32, tl.float64: torch.float64}  # fmt: skip
_BITS = {
    1: (np.uint8, torch.uint8),
    2: (np.uint16, torch.uint16),
    4: (np.uint32, torch.uint32),
    8: (np.uint64, torch.uint64),
}
_ODD = {tl.bfloat16, tl.float8e4nv, tl.float8e5}  # held as integers: numpy has no such types
_LIBDEVICE = {"tanh": np.tanh, "exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2, "log1p": np.log1p,
              "expm1": np.expm1, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "sin": np.sin, "cos": np.cos,
              "pow": np.power, "fast_expf": np.exp, "fast_logf": np.log, "fast_tanhf": np.tanh, "rint": np.rint,
              "nearbyint": np.rint, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "fabs": np.abs}  # fmt: skip


class OutOfBounds(Exception):
    """A kernel read or wrote outside every tensor it was given."""


def install(arch: str, log: LaunchLog, watch: Any) -> None:
    """Patches the interpreter of this process."""
    memory = _Memory(log)
    _patch_scalars()
    _patch_formats()
    _patch_memory(memory)
    _patch_launch(memory, log, watch)
    # An autotuner asks the driver for a clock, and there is none: all configurations are equally fast, the first runs.
    Autotuner._bench = lambda self, *args, config, **meta: [1.0, 1.0, 1.0]


def _patch_scalars() -> None:
    """Triton 3.6 turns arrays of one element into integers in a way that numpy 2.4 forbids."""
    shipped = interpreter._patch_lang_tensor

    def patch(tensor: Any, scope: Any) -> None:
        shipped(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

    interpreter._patch_lang_tensor = patch


# Formats that numpy lacks


def convert(data: np.ndarray, source: Any, target: Any) -> np.ndarray:
    """Bits of `source` format → bits of `target` format, rounded to nearest even; float8 saturates as the chip's cvt does."""
    values = torch.from_numpy(np.ascontiguousarray(data).view(_BITS[_TORCH[source].itemsize][0])).view(
        _TORCH[source]
    )
    if target in (tl.float8e4nv, tl.float8e5):
        largest = torch.finfo(_TORCH[target]).max
        values = values.float().clamp(-largest, largest)
    return values.to(_TORCH[target]).view(_BITS[_TORCH[target].itemsize][1]).numpy().reshape(data.shape)


def _is_odd(handle: Any) -> bool:
    return isinstance(handle, TensorHandle) and handle.dtype.scalar in _ODD


def _up(handle: Any) -> Any:
    """An odd format as float32; anything else as it is."""
    if not _is_odd(handle):
        return handle
    return TensorHandle(convert(handle.data, handle.dtype.scalar, tl.float32).view(np.float32), tl.float32)


def _down(handle: TensorHandle, target: Any) -> TensorHandle:
    if handle.data.dtype != np.float32:
        return TensorHandle(handle.data, target)  # a comparison's booleans
    bits = convert(handle.data.view(np.uint32), tl.float32, target)
    return TensorHandle(bits.view(interpreter._get_np_dtype(target)), target)


def _patch_formats() -> None:
    def rounded(method: Any, operands: int) -> Any:
        def call(self: Any, *args: Any) -> Any:
            odd = next((a.dtype.scalar for a in args[:operands] if _is_odd(a)), None)
            if odd is None:
                return method(self, *args)
            return _down(method(self, *(_up(a) for a in args[:operands]), *args[operands:]), odd)

        return call

    builder = InterpreterBuilder
    builder.binary_op = rounded(builder.binary_op, 2)
    builder.unary_op = rounded(builder.unary_op, 1)
    builder.create_fma = rounded(builder.create_fma, 3)
    builder.create_rsqrt = rounded(builder.create_rsqrt, 1)
    builder.create_erf = rounded(builder.create_erf, 1)
    builder.get_bf16 = lambda self, value: _down(
        TensorHandle(np.array([value], np.float32), tl.float32), tl.bfloat16
    )

    shipped_clamp, shipped_dot = builder.create_clampf, builder.create_dot
    builder.create_clampf = lambda self, x, lo, hi, nans: (
        _down(shipped_clamp(self, _up(x), _up(lo), _up(hi), nans), x.dtype.scalar)
        if _is_odd(x)
        else shipped_clamp(self, x, lo, hi, nans)
    )
    builder.create_dot = lambda self, a, b, d, precision, imprecise: shipped_dot(
        self, _up(a), _up(b), d, precision, imprecise
    )

    shipped_cast = builder.cast_impl

    def cast(self: Any, src: TensorHandle, dst_type: Any) -> TensorHandle:
        source, target = src.dtype.scalar, dst_type.scalar
        if target in _ODD:
            if source in _TORCH:
                return TensorHandle(
                    convert(src.data, source, target).view(interpreter._get_np_dtype(target)), target
                )
            return _down(TensorHandle(src.data.astype(np.float32), tl.float32), target)
        return shipped_cast(self, _up(src), dst_type)

    builder.cast_impl = cast
    builder.create_fp_to_fp = lambda self, src, dst_type, rounding: cast(self, src, dst_type)
    # dot's own conversion of float8 operands goes through this function.
    interpreter._convert_float = lambda data, source, target, rounding: convert(data, source, target)

    shipped_apply = ReduceScanOpInterface.apply

    def apply(self: Any, value: Any) -> Any:
        if isinstance(value, tuple) or not _is_odd(value.handle):
            return shipped_apply(self, value)
        odd = value.handle.dtype.scalar
        wide = tl.tensor(_up(value.handle), tl.block_type(tl.float32, value.shape))
        result = shipped_apply(self, wide)
        shape = [int(s) for s in getattr(result, "shape", ())]
        return tl.tensor(_down(result.handle, odd), tl.block_type(odd, shape) if shape else odd)

    ReduceScanOpInterface.apply = apply

    def inline_asm(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise Unjudgeable("the interpreter cannot run inline PTX")

    def libdevice(self: Any, lib: str, path: str, symbol: str, args: list, result: Any, pure: bool) -> Any:
        name = symbol.removeprefix("__nv_")
        function = _LIBDEVICE.get(name) or _LIBDEVICE.get(name.removesuffix("f"))
        if function is None:
            raise Unjudgeable(f"the interpreter cannot run libdevice's {symbol}")
        dtype = interpreter._get_np_dtype(result)
        return TensorHandle(function(*(a.data for a in args)).astype(dtype), result.scalar)

    builder.create_inline_asm = inline_asm
    builder.create_extern_elementwise = libdevice


# Memory


class _Memory:
    """Address ranges of the tensors that the running kernel was given."""

    def __init__(self, log: LaunchLog):
        self.log = log
        self.starts = self.ends = np.empty(0, np.uint64)
        self.kernel = ""
        self._shadow: dict[int, np.ndarray] = {}

    def give(self, kernel: str, tensors: list[torch.Tensor]) -> None:
        spans = {(s.data_ptr(), s.data_ptr() + s.nbytes()) for s in (t.untyped_storage() for t in tensors)}
        self.kernel = kernel
        self.starts, self.ends = (
            (np.array(x, np.uint64) for x in zip(*sorted(spans), strict=True))
            if spans
            else (np.empty(0, np.uint64),) * 2
        )

    def check(self, what: str, pointers: TensorHandle, mask: Any) -> None:
        size = max(1, pointers.get_element_ty().primitive_bitwidth // 8)
        addresses = pointers.data
        if mask is not None:
            addresses = addresses[np.broadcast_to(np.asarray(mask, bool), addresses.shape)]
        addresses = addresses.reshape(-1)
        if not addresses.size:
            return
        slot = np.searchsorted(self.starts, addresses, side="right").astype(np.int64) - 1
        inside = slot >= 0
        inside[inside] = addresses[inside] + np.uint64(size) <= self.ends[slot[inside]]
        if inside.all():
            return
        bad = int(addresses[~inside][0])
        raise OutOfBounds(
            f"kernel {self.kernel}: out-of-bounds {what} of {int((~inside).sum())} elements, {self._where(bad, size)}"
        )

    def _where(self, address: int, size: int) -> str:
        after = [(address - int(e), i) for i, e in enumerate(self.ends) if address >= int(e)]
        before = [(int(s) - address, i) for i, s in enumerate(self.starts) if address < int(s)]
        if after and (not before or min(after) <= min(before)):
            return f"the first {min(after)[0] // size} elements past the end of a tensor"
        if before:
            return f"the first {min(before)[0] // size} elements before the start of a tensor"
        return "the kernel was given no tensor"


def _patch_memory(memory: _Memory) -> None:
    builder = InterpreterBuilder
    load, store = builder.create_masked_load, builder.create_masked_store
    cas, rmw = builder.create_atomic_cas, builder.create_atomic_rmw

    def bits(mask: Any) -> Any:
        return mask.data if isinstance(mask, TensorHandle) else mask

    def as_handle(mask: Any) -> Any:
        return mask if isinstance(mask, TensorHandle) else TensorHandle(np.asarray(mask), tl.int1)

    def masked_load(self: Any, ptrs: Any, mask: Any, other: Any, *rest: Any, **named: Any) -> Any:
        memory.check("load", ptrs, bits(mask))
        return load(self, ptrs, as_handle(mask), other, *rest, **named)

    def masked_store(self: Any, ptrs: Any, value: Any, mask: Any, *rest: Any, **named: Any) -> Any:
        memory.check("store", ptrs, bits(mask))
        if not memory.log.ghost:
            return store(self, ptrs, value, as_handle(mask), *rest, **named)

    def atomic_cas(self: Any, ptr: Any, cmp: Any, val: Any, *rest: Any) -> Any:
        memory.check("atomic", ptr, None)
        return (
            TensorHandle(cmp.data, cmp.dtype.scalar) if memory.log.ghost else cas(self, ptr, cmp, val, *rest)
        )

    def atomic_rmw(self: Any, op: Any, ptr: Any, val: Any, mask: Any, *rest: Any) -> Any:
        memory.check("atomic", ptr, bits(mask))
        if _is_odd(val):
            raise Unjudgeable("the interpreter cannot do atomics on bfloat16 or float8")
        return (
            TensorHandle(val.data, val.dtype.scalar)
            if memory.log.ghost
            else rmw(self, op, ptr, val, mask, *rest)
        )

    builder.create_masked_load, builder.create_masked_store = masked_load, masked_store
    builder.create_atomic_cas, builder.create_atomic_rmw = atomic_cas, atomic_rmw


# Launches


def _patch_launch(memory: _Memory, log: LaunchLog, watch: Any) -> None:
    shipped = interpreter.GridExecutor.__call__

    def launch(self: Any, *args: Any, **kwargs: Any) -> Any:
        memory.give(self.fn.__name__, _tensors([*args, *kwargs.values()]))
        log.launched(self.fn.__name__)
        with watch.paused(), np.errstate(all="ignore"):
            return shipped(self, *args, **kwargs)

    interpreter.GridExecutor.__call__ = launch


def _tensors(values: list[Any]) -> list[torch.Tensor]:
    found: list[torch.Tensor] = []
    for value in values:
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, (tuple, list)):
            found += _tensors(list(value))
        elif hasattr(value, "base"):  # tensor descriptors and reinterpreted tensors
            found += _tensors([value.base])
    return found
