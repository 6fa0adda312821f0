"""Layer norm. Short rows share a program, rows up to _WHOLE columns stay in registers, longer ones are read three times."""

import torch
import triton
import triton.language as tl

_WHOLE = 32768


@triton.jit
def rows_kernel(x, weight, bias, y, rows, cols, stride_row, stride_col, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    col = tl.arange(0, BLOCK)[None, :]
    mask = (row < rows) & (col < cols)
    v = tl.load(x + row * stride_row + col * stride_col, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(weight + col, mask=col < cols, other=0.0).to(tl.float32)
    b = tl.load(bias + col, mask=col < cols, other=0.0).to(tl.float32)
    mean = tl.sum(v, axis=1) / cols
    # Padding lanes hold 0, not the mean: they must not count in the variance.
    d = tl.where(col < cols, v - mean[:, None], 0.0)
    scale = tl.rsqrt(tl.sum(d * d, axis=1) / cols + eps)
    tl.store(y + row * cols + col, d * scale[:, None] * w + b, mask=mask)


@triton.jit
def long_row_kernel(x, weight, bias, y, cols, stride_row, stride_col, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, cols, BLOCK):
        col = (start + tl.arange(0, BLOCK)).to(tl.int64)
        total += tl.load(x + row * stride_row + col * stride_col, mask=col < cols, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / cols
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, cols, BLOCK):
        col = (start + tl.arange(0, BLOCK)).to(tl.int64)
        v = tl.load(x + row * stride_row + col * stride_col, mask=col < cols, other=0.0).to(tl.float32)
        d = tl.where(col < cols, v - mean, 0.0)
        squares += d * d
    scale = tl.rsqrt(tl.sum(squares, axis=0) / cols + eps)
    for start in range(0, cols, BLOCK):
        col = (start + tl.arange(0, BLOCK)).to(tl.int64)
        v = tl.load(x + row * stride_row + col * stride_col, mask=col < cols, other=0.0).to(tl.float32)
        w = tl.load(weight + col, mask=col < cols, other=0.0).to(tl.float32)
        b = tl.load(bias + col, mask=col < cols, other=0.0).to(tl.float32)
        tl.store(y + row * cols + col, (v - mean) * scale * w + b, mask=col < cols)


def layer_norm(x, weight, bias, eps):
    rows, cols = x.shape
    y = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    block = triton.next_power_of_2(cols)
    if block <= _WHOLE:
        together = max(1, 2048 // block)
        warps = min(16, max(4, block // 1024))
        rows_kernel[(triton.cdiv(rows, together),)](
            x, weight, bias, y, rows, cols, *x.stride(), eps, ROWS=together, BLOCK=block, num_warps=warps
        )
    else:
        long_row_kernel[(rows,)](x, weight, bias, y, cols, *x.stride(), eps, BLOCK=8192, num_warps=16)
    return y
