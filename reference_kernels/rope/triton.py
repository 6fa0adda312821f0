"""Rotary embedding: a program per position and block of heads, so that the tables are read once for many heads."""

import torch
import triton
import triton.language as tl


@triton.jit
def rope_kernel(x, cos, sin, out, heads, positions, half, stride_b, stride_h, stride_t, stride_d,
                HEADS: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    t = tl.program_id(0).to(tl.int64)
    batch = tl.program_id(2).to(tl.int64)
    head = (tl.program_id(1) * HEADS + tl.arange(0, HEADS)).to(tl.int64)[:, None]
    j = tl.arange(0, BLOCK).to(tl.int64)[None, :]
    mask = (head < heads) & (j < half)
    c = tl.load(cos + t * half + j, mask=j < half, other=0.0)
    s = tl.load(sin + t * half + j, mask=j < half, other=0.0)
    source = x + batch * stride_b + head * stride_h + t * stride_t
    a = tl.load(source + j * stride_d, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(source + (j + half) * stride_d, mask=mask, other=0.0).to(tl.float32)
    target = out + ((batch * heads + head) * positions + t) * 2 * half
    tl.store(target + j, a * c - b * s, mask=mask)
    tl.store(target + half + j, b * c + a * s, mask=mask)


def rope(x, cos, sin):
    batch, heads, positions, head_dim = x.shape
    out = torch.empty((batch, heads, positions, head_dim), dtype=x.dtype, device=x.device)
    half = head_dim // 2
    block = triton.next_power_of_2(half)
    together = min(triton.next_power_of_2(heads), max(1, 2048 // block))
    rope_kernel[(positions, triton.cdiv(heads, together), batch)](
        x, cos, sin, out, heads, positions, half, *x.stride(), HEADS=together, BLOCK=block, num_warps=4
    )
    return out
