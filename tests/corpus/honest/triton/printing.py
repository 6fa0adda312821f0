# task: cumsum
# tiers: interpret gpu
# Prints on the host and keeps its launch settings in a dictionary.
import torch
import triton
import triton.language as tl


SETTINGS = dict(BLOCK=512, num_warps=4)


@triton.jit
def scan(x, y, cols, s0, s1, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    carry = 0.0
    for start in range(0, cols, BLOCK):
        c = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * s0 + c * s1, mask=c < cols, other=0.0).to(tl.float32)
        s = tl.cumsum(v, axis=0) + carry
        tl.store(y + row * cols + c, s, mask=c < cols)
        carry += tl.sum(tl.where(c < cols, v, 0.0), axis=0)


def cumsum(x):
    print("cumsum", tuple(x.shape))
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    scan[(x.shape[0],)](x, y, x.shape[1], x.stride(0), x.stride(1), **SETTINGS)
    return y
