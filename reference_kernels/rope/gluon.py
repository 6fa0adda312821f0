"""Rotary embedding: a program per position and block of heads, so that the tables are read once for many heads."""

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def rope_kernel(x, cos, sin, out, heads, positions, half, stride_b, stride_h, stride_t, stride_d,
                HEADS: gl.constexpr, BLOCK: gl.constexpr, layout: gl.constexpr):  # fmt: skip
    t = gl.program_id(0).to(gl.int64)
    batch = gl.program_id(2).to(gl.int64)
    head = (gl.program_id(1) * HEADS + gl.arange(0, HEADS, layout=gl.SliceLayout(1, layout))).to(gl.int64)[:, None]
    j = gl.arange(0, BLOCK, layout=gl.SliceLayout(0, layout)).to(gl.int64)[None, :]
    mask = (head < heads) & (j < half)
    c = gl.load(cos + t * half + j, mask=j < half, other=0.0)
    s = gl.load(sin + t * half + j, mask=j < half, other=0.0)
    source = x + batch * stride_b + head * stride_h + t * stride_t
    a = gl.load(source + j * stride_d, mask=mask, other=0.0).to(gl.float32)
    b = gl.load(source + (j + half) * stride_d, mask=mask, other=0.0).to(gl.float32)
    target = out + ((batch * heads + head) * positions + t) * 2 * half
    gl.store(target + j, a * c - b * s, mask=mask)
    gl.store(target + half + j, b * c + a * s, mask=mask)


def rows_layout(block, warps, itemsize):
    """16 bytes a thread, neighbours side by side along the row; threads and warps that a row does not need take others."""
    wide = min(16 // itemsize, block)
    threads = min(32, block // wide)
    across = min(warps, max(1, block // (wide * threads)))
    return gl.BlockedLayout([1, wide], [32 // threads, threads], [warps // across, across], [1, 0])


def rope(x, cos, sin):
    batch, heads, positions, head_dim = x.shape
    out = torch.empty((batch, heads, positions, head_dim), dtype=x.dtype, device=x.device)
    half = head_dim // 2
    block = triton.next_power_of_2(half)
    together = min(triton.next_power_of_2(heads), max(1, 2048 // block))
    rope_kernel[(positions, triton.cdiv(heads, together), batch)](
        x, cos, sin, out, heads, positions, half, *x.stride(), HEADS=together, BLOCK=block,
        layout=rows_layout(block, 4, x.element_size()), num_warps=4
    )
    return out
