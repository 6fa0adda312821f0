# task: layer_norm
# tiers: interpret gpu
# Statistics in one kernel, normalisation in a second, with a helper function.
import torch
import triton
import triton.language as tl


@triton.jit
def load_row(x, row, s0, s1, c, cols):
    return tl.load(x + row * s0 + c * s1, mask=c < cols, other=0.0).to(tl.float32)


@triton.jit
def statistics(x, means, scales, cols, s0, s1, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, BLOCK)
    v = load_row(x, row, s0, s1, c, cols)
    mean = tl.sum(v, 0) / cols
    d = tl.where(c < cols, v - mean, 0.0)
    tl.store(means + row, mean)
    tl.store(scales + row, 1.0 / tl.sqrt(tl.sum(d * d, 0) / cols + eps))


@triton.jit
def normalise(x, means, scales, weight, bias, y, cols, s0, s1, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, BLOCK)
    v = load_row(x, row, s0, s1, c, cols)
    w = tl.load(weight + c, mask=c < cols).to(tl.float32)
    b = tl.load(bias + c, mask=c < cols).to(tl.float32)
    tl.store(y + row * cols + c, (v - tl.load(means + row)) * tl.load(scales + row) * w + b, mask=c < cols)


def layer_norm(x, weight, bias, eps):
    rows, cols = x.shape
    means = torch.empty(rows, dtype=torch.float32, device=x.device)
    scales = torch.empty_like(means)
    y = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    block = triton.next_power_of_2(cols)
    statistics[(rows,)](x, means, scales, cols, *x.stride(), eps, BLOCK=block, num_warps=8)
    normalise[(rows,)](x, means, scales, weight, bias, y, cols, *x.stride(), BLOCK=block, num_warps=8)
    return y
