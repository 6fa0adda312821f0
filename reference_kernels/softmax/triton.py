"""Softmax. Short rows share a program, rows up to _WHOLE columns stay in registers, longer ones are read twice."""

import torch
import triton
import triton.language as tl

_WHOLE = 16384


@triton.jit
def rows_kernel(x, y, rows, cols, stride_row, stride_col, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    col = tl.arange(0, BLOCK)[None, :]
    mask = (row < rows) & (col < cols)
    v = tl.load(x + row * stride_row + col * stride_col, mask=mask, other=-float("inf")).to(tl.float32)
    # A row past the end is all -inf: subtract 0 there, so that its lanes hold 0 and not NaN.
    top = tl.max(v, axis=1)
    e = tl.exp(v - tl.where(top == -float("inf"), 0.0, top)[:, None])
    tl.store(y + row * cols + col, e / tl.sum(e, axis=1)[:, None], mask=mask)


@triton.jit
def long_row_kernel(x, y, cols, stride_row, stride_col, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    # Every lane keeps a maximum and a sum of its own, so that the loop has no reduction in it.
    top = tl.full((BLOCK,), -3.0e38, tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, cols, BLOCK):
        col = (start + tl.arange(0, BLOCK)).to(tl.int64)
        v = tl.load(x + row * stride_row + col * stride_col, mask=col < cols, other=-float("inf")).to(tl.float32)
        new = tl.maximum(top, v)
        total = total * tl.exp(top - new) + tl.exp(v - new)
        top = new
    row_top = tl.max(top, axis=0)
    scale = 1.0 / tl.sum(total * tl.exp(top - row_top), axis=0)
    for start in range(0, cols, BLOCK):
        col = (start + tl.arange(0, BLOCK)).to(tl.int64)
        v = tl.load(x + row * stride_row + col * stride_col, mask=col < cols, other=-float("inf")).to(tl.float32)
        tl.store(y + row * cols + col, tl.exp(v - row_top) * scale, mask=col < cols)


def softmax(x):
    rows, cols = x.shape
    y = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    block = triton.next_power_of_2(cols)
    if block <= _WHOLE:
        together = max(1, 2048 // block)
        warps = min(16, max(4, block // 1024))
        rows_kernel[(triton.cdiv(rows, together),)](
            x, y, rows, cols, *x.stride(), ROWS=together, BLOCK=block, num_warps=warps
        )
    else:
        long_row_kernel[(rows,)](x, y, cols, *x.stride(), BLOCK=8192, num_warps=16)
    return y
