"""Cumulative sum: a program walks along some rows, block by block, and carries the running sums."""

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def add(a, b):
    return a + b


@gluon.jit
def cumsum_kernel(x, y, rows, cols, stride_row, stride_col, ROWS: gl.constexpr, BLOCK: gl.constexpr,
                  layout: gl.constexpr):  # fmt: skip
    row = (gl.program_id(0) * ROWS + gl.arange(0, ROWS, layout=gl.SliceLayout(1, layout))).to(gl.int64)[:, None]
    lane = gl.arange(0, BLOCK, layout=gl.SliceLayout(0, layout))[None, :]
    source = x + row * stride_row
    carry = gl.zeros([ROWS], gl.float32, gl.SliceLayout(1, layout))
    ahead = gl.load(source + lane.to(gl.int64) * stride_col, mask=(row < rows) & (lane < cols), other=0.0)
    for start in range(0, cols, BLOCK):
        v = ahead.to(gl.float32)
        # Nothing is pipelined here but by hand: the next block is on its way while this one's sums are made.
        col = (start + BLOCK + lane).to(gl.int64)
        ahead = gl.load(source + col * stride_col, mask=(row < rows) & (col < cols), other=0.0)
        sums = gl.associative_scan(v, 1, add) + carry[:, None]
        col = (start + lane).to(gl.int64)
        gl.store(y + row * cols + col, sums, mask=(row < rows) & (col < cols))
        # The last lane of the block is the new carry (lanes past the row added 0).
        carry = gl.sum(gl.where(lane == BLOCK - 1, sums, 0.0), axis=1)


def cumsum(x):
    rows, cols = x.shape
    y = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    block = min(4096, triton.next_power_of_2(cols))
    together = max(1, 2048 // block)
    warps = max(4, block // 512)
    wide = min(16 // x.element_size(), block)
    threads = min(32, block // wide)
    across = min(warps, max(1, block // (wide * threads)))
    layout = gl.BlockedLayout([1, wide], [32 // threads, threads], [warps // across, across], [1, 0])
    cumsum_kernel[(triton.cdiv(rows, together),)](
        x, y, rows, cols, *x.stride(), ROWS=together, BLOCK=block, layout=layout, num_warps=warps
    )
    return y
