"""Softmax. Short rows share a program, rows up to _WHOLE columns stay in registers, longer ones are read twice."""

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

_WHOLE = 16384


@gluon.jit
def rows_kernel(x, y, rows, cols, stride_row, stride_col, ROWS: gl.constexpr, BLOCK: gl.constexpr,
                layout: gl.constexpr):
    row = (gl.program_id(0) * ROWS + gl.arange(0, ROWS, layout=gl.SliceLayout(1, layout))).to(gl.int64)[:, None]
    col = gl.arange(0, BLOCK, layout=gl.SliceLayout(0, layout))[None, :]
    mask = (row < rows) & (col < cols)
    v = gl.load(x + row * stride_row + col * stride_col, mask=mask, other=-float("inf")).to(gl.float32)
    # A row past the end is all -inf: subtract 0 there, so that its lanes hold 0 and not NaN.
    top = gl.max(v, axis=1)
    e = gl.exp(v - gl.where(top == -float("inf"), 0.0, top)[:, None])
    gl.store(y + row * cols + col, e / gl.sum(e, axis=1)[:, None], mask=mask)


@gluon.jit
def long_row_kernel(x, y, cols, stride_row, stride_col, BLOCK: gl.constexpr, layout: gl.constexpr):
    row = gl.program_id(0).to(gl.int64)
    # Every lane keeps a maximum and a sum of its own, so that the loop has no reduction in it.
    top = gl.full([BLOCK], -3.0e38, gl.float32, layout)
    total = gl.zeros([BLOCK], gl.float32, layout)
    for start in range(0, cols, BLOCK):
        col = (start + gl.arange(0, BLOCK, layout=layout)).to(gl.int64)
        v = gl.load(x + row * stride_row + col * stride_col, mask=col < cols, other=-float("inf")).to(gl.float32)
        new = gl.maximum(top, v)
        total = total * gl.exp(top - new) + gl.exp(v - new)
        top = new
    row_top = gl.max(top, axis=0)
    scale = 1.0 / gl.sum(total * gl.exp(top - row_top), axis=0)
    for start in range(0, cols, BLOCK):
        col = (start + gl.arange(0, BLOCK, layout=layout)).to(gl.int64)
        v = gl.load(x + row * stride_row + col * stride_col, mask=col < cols, other=-float("inf")).to(gl.float32)
        gl.store(y + row * cols + col, gl.exp(v - row_top) * scale, mask=col < cols)


def rows_layout(block, warps, itemsize):
    """16 bytes a thread, neighbours side by side along the row; threads and warps that a row does not need take others."""
    wide = min(16 // itemsize, block)
    threads = min(32, block // wide)
    across = min(warps, max(1, block // (wide * threads)))
    return gl.BlockedLayout([1, wide], [32 // threads, threads], [warps // across, across], [1, 0])


def softmax(x):
    rows, cols = x.shape
    y = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    block = triton.next_power_of_2(cols)
    if block <= _WHOLE:
        together = max(1, 2048 // block)
        warps = min(16, max(4, block // 1024))
        rows_kernel[(triton.cdiv(rows, together),)](
            x, y, rows, cols, *x.stride(), ROWS=together, BLOCK=block,
            layout=rows_layout(block, warps, x.element_size()), num_warps=warps
        )
    else:
        layout = gl.BlockedLayout([16 // x.element_size()], [32], [16], [0])
        long_row_kernel[(rows,)](x, y, cols, *x.stride(), BLOCK=8192, layout=layout, num_warps=16)
    return y
