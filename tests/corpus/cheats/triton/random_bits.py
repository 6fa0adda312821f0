# task: softmax
# expect: nondeterministic
# trust: 34
# Adds noise below the error bound: right every time, but never the same.
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
def noise_kernel(y, n, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(y + i, mask=i < n).to(tl.float32)
    keep = (i * 7 + seed) % 3 == 0
    tl.store(y + i, tl.where(keep, v * 1.0000002, v), mask=i < n)


calls = 0


def softmax(x):
    global calls
    calls += 1
    y = run_kernel(x)
    noise_kernel[(triton.cdiv(y.numel(), 1024),)](y, y.numel(), calls, BLOCK=1024)
    return y
