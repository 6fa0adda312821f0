"""Cross entropy: a program per row reads its logits once, with a running maximum and sum in every lane.

A block is several elements deep in each lane, so that correcting a lane's sum for a new maximum costs one exp for many
elements: with one exp more an element, exp and not memory would set the speed.
"""

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def cross_entropy_kernel(
    logits, target, loss, cols, stride_row, stride_col, ignore_index, DEPTH: gl.constexpr, LANES: gl.constexpr,
    layout: gl.constexpr
):
    row = gl.program_id(0).to(gl.int64)
    wanted = gl.load(target + row)
    if wanted == ignore_index:
        gl.store(loss + row, 0.0)
    else:
        # Finite, so that a lane without elements computes exp(-inf - top) = 0 and never inf - inf.
        top = gl.full([LANES], -3.0e38, gl.float32, gl.SliceLayout(0, layout))
        total = gl.zeros([LANES], gl.float32, gl.SliceLayout(0, layout))
        depth = gl.arange(0, DEPTH, layout=gl.SliceLayout(1, layout))
        lane = gl.arange(0, LANES, layout=gl.SliceLayout(0, layout))
        place = (depth[:, None] * LANES + lane[None, :]).to(gl.int64)
        for start in range(0, cols, DEPTH * LANES):
            col = start + place
            v = gl.load(logits + row * stride_row + col * stride_col, mask=col < cols, other=-float("inf"))
            v = v.to(gl.float32)
            new = gl.maximum(top, gl.max(v, axis=0))
            total = total * gl.exp(top - new) + gl.sum(gl.exp(v - new[None, :]), axis=0)
            top = new
        row_top = gl.max(top, axis=0)
        log_sum = row_top + gl.log(gl.sum(total * gl.exp(top - row_top), axis=0))
        picked = gl.load(logits + row * stride_row + wanted * stride_col).to(gl.float32)
        gl.store(loss + row, log_sum - picked)


def cross_entropy(logits, target, ignore_index):
    rows, cols = logits.shape
    loss = torch.empty((rows,), dtype=torch.float32, device=logits.device)
    lanes = min(2048, triton.next_power_of_2(cols))
    depth = min(4, triton.next_power_of_2(triton.cdiv(cols, lanes)))
    warps = max(1, min(8, lanes // 256))
    # No two threads share a lane, so a maximum over the depth needs no exchange.
    layout = gl.BlockedLayout([1, 16 // logits.element_size()], [1, 32], [1, warps], [1, 0])
    cross_entropy_kernel[(rows,)](
        logits, target, loss, cols, *logits.stride(), ignore_index, DEPTH=depth, LANES=lanes, layout=layout,
        num_warps=warps,
    )  # fmt: skip
    return loss
