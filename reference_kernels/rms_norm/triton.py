"""RMS norm. Short rows share a program, rows up to _WHOLE columns stay in registers, longer ones are read twice."""

import torch
import triton
import triton.language as tl

_WHOLE = 32768


@triton.jit
def rows_kernel(x, weight, y, rows, cols, stride_row, stride_col, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    col = tl.arange(0, BLOCK)[None, :]
    mask = (row < rows) & (col < cols)
    v = tl.load(x + row * stride_row + col * stride_col, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(weight + col, mask=col < cols, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(v * v, axis=1) / cols + eps)
    tl.store(y + row * cols + col, v * scale[:, None] * w, mask=mask)


@triton.jit
def long_row_kernel(x, weight, y, cols, stride_row, stride_col, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, cols, BLOCK):
        col = (start + tl.arange(0, BLOCK)).to(tl.int64)
        v = tl.load(x + row * stride_row + col * stride_col, mask=col < cols, other=0.0).to(tl.float32)
        squares += v * v
    scale = tl.rsqrt(tl.sum(squares, axis=0) / cols + eps)
    for start in range(0, cols, BLOCK):
        col = (start + tl.arange(0, BLOCK)).to(tl.int64)
        v = tl.load(x + row * stride_row + col * stride_col, mask=col < cols, other=0.0).to(tl.float32)
        w = tl.load(weight + col, mask=col < cols, other=0.0).to(tl.float32)
        tl.store(y + row * cols + col, v * scale * w, mask=col < cols)


def rms_norm(x, weight, eps):
    rows, cols = x.shape
    y = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    block = triton.next_power_of_2(cols)
    if block <= _WHOLE:
        together = max(1, 2048 // block)
        warps = min(16, max(4, block // 1024))
        rows_kernel[(triton.cdiv(rows, together),)](
            x, weight, y, rows, cols, *x.stride(), eps, ROWS=together, BLOCK=block, num_warps=warps
        )
    else:
        long_row_kernel[(rows,)](x, weight, y, cols, *x.stride(), eps, BLOCK=8192, num_warps=16)
    return y
