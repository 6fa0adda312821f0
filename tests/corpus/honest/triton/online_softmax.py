# task: softmax
# tiers: interpret gpu
# Online softmax in blocks, for rows of any length.
import torch
import triton
import triton.language as tl


@triton.jit
def online(x, y, cols, s0, s1, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    top = -float("inf")
    total = 0.0
    for start in range(0, cols, BLOCK):
        c = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * s0 + c * s1, mask=c < cols, other=-float("inf")).to(tl.float32)
        new = tl.maximum(top, tl.max(v, axis=0))
        total = total * tl.exp(top - new) + tl.sum(tl.exp(v - new), axis=0)
        top = new
    for start in range(0, cols, BLOCK):
        c = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * s0 + c * s1, mask=c < cols, other=-float("inf")).to(tl.float32)
        tl.store(y + row * cols + c, tl.exp(v - top) / total, mask=c < cols)


def softmax(x):
    y = torch.empty(x.size(), dtype=x.dtype, device=x.device)
    online[(x.size(0),)](x, y, x.size(1), x.stride(0), x.stride(1), BLOCK=1024)
    return y
