"""Row-wise float8 quantisation, a program per row. Rows up to _WHOLE columns stay in registers; longer ones are read twice."""

import torch
import triton
import triton.language as tl

_WHOLE = 16384


@triton.jit
def whole_row_kernel(x, q, scales, cols, stride_row, stride_col, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    col = tl.arange(0, BLOCK).to(tl.int64)
    mask = col < cols
    v = tl.load(x + row * stride_row + col * stride_col, mask=mask, other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(v), axis=0), 1e-12) / 448.0
    # The conversion saturates; the clamp keeps that from being a matter of the chip.
    y = tl.minimum(tl.maximum(v / scale, -448.0), 448.0)
    tl.store(q + row * cols + col, y.to(tl.float8e4nv), mask=mask)
    tl.store(scales + row, scale)


@triton.jit
def long_row_kernel(x, q, scales, cols, stride_row, stride_col, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    largest = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, cols, BLOCK):
        col = (start + tl.arange(0, BLOCK)).to(tl.int64)
        v = tl.load(x + row * stride_row + col * stride_col, mask=col < cols, other=0.0)
        largest = tl.maximum(largest, tl.abs(v.to(tl.float32)))
    scale = tl.maximum(tl.max(largest, axis=0), 1e-12) / 448.0
    for start in range(0, cols, BLOCK):
        col = (start + tl.arange(0, BLOCK)).to(tl.int64)
        v = tl.load(x + row * stride_row + col * stride_col, mask=col < cols, other=0.0)
        y = tl.minimum(tl.maximum(v.to(tl.float32) / scale, -448.0), 448.0)
        tl.store(q + row * cols + col, y.to(tl.float8e4nv), mask=col < cols)
    tl.store(scales + row, scale)


def quantize_fp8(x):
    rows, cols = x.shape
    q = torch.empty((rows, cols), dtype=torch.float8_e4m3fn, device=x.device)
    scales = torch.empty((rows,), dtype=torch.float32, device=x.device)
    block = triton.next_power_of_2(cols)
    kernel = whole_row_kernel if block <= _WHOLE else long_row_kernel
    block = min(block, _WHOLE)
    warps = min(16, max(1, block // 512))
    kernel[(rows,)](x, q, scales, cols, x.stride(0), x.stride(1), BLOCK=block, num_warps=warps)
    return q, scales
