# task: softmax
# expect: nondeterministic
# trust: 34
# Rounds another third of the rows in another way at each call: right every time, but never the same.
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_kernel(x, y, n_cols, stride_row, stride_col, seed, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    v = tl.load(x + row * stride_row + cols * stride_col, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, axis=0))
    total = tl.sum(e, axis=0)
    other = (row + seed) % 3 == 0
    tl.store(y + row * n_cols + cols, tl.where(other, e * (1.0 / total), e / total), mask=mask)


calls = 0


def softmax(x):
    global calls
    calls += 1
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    block = triton.next_power_of_2(x.shape[1])
    softmax_kernel[(x.shape[0],)](x, y, x.shape[1], x.stride(0), x.stride(1), calls, BLOCK=block)
    return y
