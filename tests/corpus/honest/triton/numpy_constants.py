# task: rope
# tiers: interpret gpu
# Tables and shapes handled with numpy and math on the host, tensors only in the kernel.
import torch
import triton
import triton.language as tl


import math

import numpy as np


@triton.jit
def rotate(x, cos, sin, out, heads, positions, half, s0, s1, s2, s3, BLOCK: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    t, h, b = pid % positions, pid // positions % heads, pid // positions // heads
    j = tl.arange(0, BLOCK)
    keep = j < half
    base = x + b * s0 + h * s1 + t * s2
    a = tl.load(base + j * s3, mask=keep).to(tl.float32)
    d = tl.load(base + (j + half) * s3, mask=keep).to(tl.float32)
    c = tl.load(cos + t * half + j, mask=keep)
    s = tl.load(sin + t * half + j, mask=keep)
    tl.store(out + pid * 2 * half + j, a * c - d * s, mask=keep)
    tl.store(out + pid * 2 * half + half + j, d * c + a * s, mask=keep)


def rope(x, cos, sin):
    batch, heads, positions, dim = x.shape
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    block = 2 ** math.ceil(math.log2(max(2, dim // 2)))
    grid = (int(np.prod([batch, heads, positions])),)
    rotate[grid](x, cos, sin, out, heads, positions, dim // 2, *x.stride(), BLOCK=block, num_warps=1)
    return out
