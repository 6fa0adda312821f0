# task: softmax
# expect: nondeterministic
# trust: 34
# Right on most calls, wrong on every thirty-first.
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


calls = 0


@triton.jit
def spoil_kernel(y):
    tl.store(y, 2.0)


def softmax(x):
    global calls
    calls += 1
    y = run_kernel(x)
    if calls == 31:
        spoil_kernel[(1,)](y)
    return y
