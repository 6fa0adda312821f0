"""Softmax with dropout, a program per row. Rows up to _WHOLE columns stay in registers; longer ones are read twice."""

import math

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

_WHOLE = 16384


@gluon.jit
def keep(counter, seed, threshold):
    """The stated generator: MurmurHash3's finaliser over counter + seed * golden ratio."""
    h = counter.to(gl.uint32) + seed.to(gl.uint32) * 0x9E3779B9
    h = (h ^ (h >> 16)) * 0x85EBCA6B
    h = (h ^ (h >> 13)) * 0xC2B2AE35
    h = h ^ (h >> 16)
    return (h >> 1).to(gl.int32) >= threshold


# A seed of 1 must stay a run-time value: Triton would turn it into a constant, which has no unsigned type.
@gluon.jit(do_not_specialize=["seed", "threshold"])
def whole_row_kernel(x, y, cols, stride_row, stride_col, seed, threshold, scale, BLOCK: gl.constexpr, layout: gl.constexpr):
    row = gl.program_id(0).to(gl.int64)
    col = gl.arange(0, BLOCK, layout=layout)
    mask = col < cols
    v = gl.load(x + row * stride_row + col * stride_col, mask=mask, other=-float("inf")).to(gl.float32)
    e = gl.exp(v - gl.max(v, axis=0))
    out = e * (scale / gl.sum(e, axis=0))
    out = gl.where(keep(row * cols + col, seed, threshold), out, 0.0)
    gl.store(y + row * cols + col, out, mask=mask)


@gluon.jit(do_not_specialize=["seed", "threshold"])
def long_row_kernel(x, y, cols, stride_row, stride_col, seed, threshold, scale, BLOCK: gl.constexpr, layout: gl.constexpr):
    row = gl.program_id(0).to(gl.int64)
    top = gl.full([BLOCK], -float("inf"), gl.float32, layout)
    total = gl.zeros([BLOCK], gl.float32, layout)
    for start in range(0, cols, BLOCK):
        col = start + gl.arange(0, BLOCK, layout=layout)
        v = gl.load(x + row * stride_row + col.to(gl.int64) * stride_col, mask=col < cols, other=-float("inf"))
        v = v.to(gl.float32)
        new = gl.maximum(gl.maximum(top, v), -3.0e38)  # a lane that saw nothing yet must not make inf - inf
        total = total * gl.exp(top - new) + gl.exp(v - new)
        top = new
    row_top = gl.max(top, axis=0)
    factor = scale / gl.sum(total * gl.exp(top - row_top), axis=0)
    for start in range(0, cols, BLOCK):
        col = start + gl.arange(0, BLOCK, layout=layout)
        v = gl.load(x + row * stride_row + col.to(gl.int64) * stride_col, mask=col < cols, other=-float("inf"))
        out = gl.exp(v.to(gl.float32) - row_top) * factor
        out = gl.where(keep(row * cols + col, seed, threshold), out, 0.0)
        gl.store(y + row * cols + col, out, mask=col < cols)


def softmax_dropout(x, p, seed):
    rows, cols = x.shape
    y = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    threshold, scale = math.floor(p * 2**31), 1 / (1 - p)
    block = triton.next_power_of_2(cols)
    kernel = whole_row_kernel if block <= _WHOLE else long_row_kernel
    block = min(block, _WHOLE)
    warps = min(16, max(1, block // 512))
    layout = gl.BlockedLayout([16 // x.element_size()], [32], [warps], [0])
    kernel[(rows,)](x, y, cols, x.stride(0), x.stride(1), seed, threshold, scale, BLOCK=block, layout=layout, num_warps=warps)
    return y
