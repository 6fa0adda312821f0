"""Cumulative sum: a program walks along some rows, block by block, and carries the running sums."""

import torch
import triton
import triton.language as tl


@triton.jit
def cumsum_kernel(
    x, y, rows, cols, stride_row, stride_col, ROWS: tl.constexpr, BLOCK: tl.constexpr, STAGES: tl.constexpr
):
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    lane = tl.arange(0, BLOCK)[None, :]
    carry = tl.zeros((ROWS,), tl.float32)
    # With stages named here, later blocks are on their way while a block's sums are made.
    for start in tl.range(0, cols, BLOCK, num_stages=STAGES):
        col = (start + lane).to(tl.int64)
        mask = (row < rows) & (col < cols)
        v = tl.load(x + row * stride_row + col * stride_col, mask=mask, other=0.0).to(tl.float32)
        sums = tl.cumsum(v, axis=1) + carry[:, None]
        tl.store(y + row * cols + col, sums, mask=mask)
        # The last lane of the block is the new carry (lanes past the row added 0).
        carry = tl.sum(tl.where(lane == BLOCK - 1, sums, 0.0), axis=1)


def cumsum(x):
    rows, cols = x.shape
    y = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    block = min(4096, triton.next_power_of_2(cols))
    together = max(1, 2048 // block)
    cumsum_kernel[(triton.cdiv(rows, together),)](
        x, y, rows, cols, *x.stride(), ROWS=together, BLOCK=block, STAGES=3 if cols > block else 1,
        num_warps=max(4, block // 512),
    )  # fmt: skip
    return y
