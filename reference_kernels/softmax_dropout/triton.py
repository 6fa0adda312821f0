"""Softmax with dropout, a program per row. Rows up to _WHOLE columns stay in registers; longer ones are read twice."""

import math

import torch
import triton
import triton.language as tl

_WHOLE = 16384


@triton.jit
def keep(counter, seed, threshold):
    """The stated generator: MurmurHash3's finaliser over counter + seed * golden ratio."""
    h = counter.to(tl.uint32) + seed.to(tl.uint32) * 0x9E3779B9
    h = (h ^ (h >> 16)) * 0x85EBCA6B
    h = (h ^ (h >> 13)) * 0xC2B2AE35
    h = h ^ (h >> 16)
    return (h >> 1).to(tl.int32) >= threshold


# A seed of 1 must stay a run-time value: Triton would turn it into a constant, which has no unsigned type.
@triton.jit(do_not_specialize=["seed", "threshold"])
def whole_row_kernel(x, y, cols, stride_row, stride_col, seed, threshold, scale, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    col = tl.arange(0, BLOCK)
    mask = col < cols
    v = tl.load(x + row * stride_row + col * stride_col, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, axis=0))
    out = e * (scale / tl.sum(e, axis=0))
    out = tl.where(keep(row * cols + col, seed, threshold), out, 0.0)
    tl.store(y + row * cols + col, out, mask=mask)


@triton.jit(do_not_specialize=["seed", "threshold"])
def long_row_kernel(x, y, cols, stride_row, stride_col, seed, threshold, scale, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    top = tl.full((BLOCK,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, cols, BLOCK):
        col = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * stride_row + col.to(tl.int64) * stride_col, mask=col < cols, other=-float("inf"))
        v = v.to(tl.float32)
        new = tl.maximum(tl.maximum(top, v), -3.0e38)  # a lane that saw nothing yet must not make inf - inf
        total = total * tl.exp(top - new) + tl.exp(v - new)
        top = new
    row_top = tl.max(top, axis=0)
    factor = scale / tl.sum(total * tl.exp(top - row_top), axis=0)
    for start in range(0, cols, BLOCK):
        col = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * stride_row + col.to(tl.int64) * stride_col, mask=col < cols, other=-float("inf"))
        out = tl.exp(v.to(tl.float32) - row_top) * factor
        out = tl.where(keep(row * cols + col, seed, threshold), out, 0.0)
        tl.store(y + row * cols + col, out, mask=col < cols)


def softmax_dropout(x, p, seed):
    rows, cols = x.shape
    y = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    threshold, scale = math.floor(p * 2**31), 1 / (1 - p)
    block = triton.next_power_of_2(cols)
    kernel = whole_row_kernel if block <= _WHOLE else long_row_kernel
    block = min(block, _WHOLE)
    warps = min(16, max(1, block // 512))
    kernel[(rows,)](x, y, cols, x.stride(0), x.stride(1), seed, threshold, scale, BLOCK=block, num_warps=warps)
    return y
