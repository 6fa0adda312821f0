"""RMS norm. Short rows share a program, rows up to _WHOLE columns stay in registers, longer ones are read twice."""

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

_WHOLE = 32768


@gluon.jit
def rows_kernel(x, weight, y, rows, cols, stride_row, stride_col, eps, ROWS: gl.constexpr, BLOCK: gl.constexpr,
                layout: gl.constexpr):
    row = (gl.program_id(0) * ROWS + gl.arange(0, ROWS, layout=gl.SliceLayout(1, layout))).to(gl.int64)[:, None]
    col = gl.arange(0, BLOCK, layout=gl.SliceLayout(0, layout))[None, :]
    mask = (row < rows) & (col < cols)
    v = gl.load(x + row * stride_row + col * stride_col, mask=mask, other=0.0).to(gl.float32)
    w = gl.load(weight + col, mask=col < cols, other=0.0).to(gl.float32)
    scale = gl.rsqrt(gl.sum(v * v, axis=1) / cols + eps)
    gl.store(y + row * cols + col, v * scale[:, None] * w, mask=mask)


@gluon.jit
def long_row_kernel(x, weight, y, cols, stride_row, stride_col, eps, BLOCK: gl.constexpr, layout: gl.constexpr):
    row = gl.program_id(0).to(gl.int64)
    squares = gl.zeros([BLOCK], gl.float32, layout)
    for start in range(0, cols, BLOCK):
        col = (start + gl.arange(0, BLOCK, layout=layout)).to(gl.int64)
        v = gl.load(x + row * stride_row + col * stride_col, mask=col < cols, other=0.0).to(gl.float32)
        squares += v * v
    scale = gl.rsqrt(gl.sum(squares, axis=0) / cols + eps)
    for start in range(0, cols, BLOCK):
        col = (start + gl.arange(0, BLOCK, layout=layout)).to(gl.int64)
        v = gl.load(x + row * stride_row + col * stride_col, mask=col < cols, other=0.0).to(gl.float32)
        w = gl.load(weight + col, mask=col < cols, other=0.0).to(gl.float32)
        gl.store(y + row * cols + col, v * scale * w, mask=col < cols)


def rows_layout(block, warps, itemsize):
    """16 bytes a thread, neighbours side by side along the row; threads and warps that a row does not need take others."""
    wide = min(16 // itemsize, block)
    threads = min(32, block // wide)
    across = min(warps, max(1, block // (wide * threads)))
    return gl.BlockedLayout([1, wide], [32 // threads, threads], [warps // across, across], [1, 0])


def rms_norm(x, weight, eps):
    rows, cols = x.shape
    y = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    block = triton.next_power_of_2(cols)
    if block <= _WHOLE:
        together = max(1, 2048 // block)
        warps = min(16, max(4, block // 1024))
        rows_kernel[(triton.cdiv(rows, together),)](
            x, weight, y, rows, cols, *x.stride(), eps, ROWS=together, BLOCK=block,
            layout=rows_layout(block, warps, x.element_size()), num_warps=warps
        )
    else:
        layout = gl.BlockedLayout([16 // x.element_size()], [32], [16], [0])
        long_row_kernel[(rows,)](x, weight, y, cols, *x.stride(), eps, BLOCK=8192, layout=layout, num_warps=16)
    return y
