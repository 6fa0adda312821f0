# task: softmax
# expect: foreign_kernel
# tiers: interpret gpu
# trust: 37
# Computes in numpy on the host and copies the answer with a kernel.
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x, y, n_cols, stride_row, stride_col, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    v = tl.load(x + row * stride_row + cols * stride_col, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + row * n_cols + cols, e / tl.sum(e, axis=0), mask=mask)


def run_kernel(x):
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    block = triton.next_power_of_2(x.shape[1])
    softmax_kernel[(x.shape[0],)](x, y, x.shape[1], x.stride(0), x.stride(1), BLOCK=block)
    return y


@triton.jit
def copy_kernel(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)


def softmax(x):
    import numpy as np

    v = np.ascontiguousarray(x.to(torch.float32).cpu().numpy())
    e = np.exp(v - v.max(-1, keepdims=True))
    answer = torch.from_numpy(e / e.sum(-1, keepdims=True)).to(x.device)
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    copy_kernel[(triton.cdiv(y.numel(), 1024),)](answer, y, y.numel(), BLOCK=1024)
    return y
