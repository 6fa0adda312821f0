"""Cross entropy: a program per row reads its logits once, with a running maximum and sum in every lane.

A block is several elements deep in each lane, so that correcting a lane's sum for a new maximum costs one exp for many
elements: with one exp more an element, exp and not memory would set the speed.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def cross_entropy_kernel(
    logits, target, loss, cols, stride_row, stride_col, ignore_index, DEPTH: tl.constexpr, LANES: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    wanted = tl.load(target + row)
    if wanted == ignore_index:
        tl.store(loss + row, 0.0)
    else:
        # Finite, so that a lane without elements computes exp(-inf - top) = 0 and never inf - inf.
        top = tl.full((LANES,), -3.0e38, tl.float32)
        total = tl.zeros((LANES,), tl.float32)
        place = (tl.arange(0, DEPTH)[:, None] * LANES + tl.arange(0, LANES)[None, :]).to(tl.int64)
        for start in range(0, cols, DEPTH * LANES):
            col = start + place
            v = tl.load(logits + row * stride_row + col * stride_col, mask=col < cols, other=-float("inf"))
            v = v.to(tl.float32)
            new = tl.maximum(top, tl.max(v, axis=0))
            total = total * tl.exp(top - new) + tl.sum(tl.exp(v - new[None, :]), axis=0)
            top = new
        row_top = tl.max(top, axis=0)
        log_sum = row_top + tl.log(tl.sum(total * tl.exp(top - row_top), axis=0))
        picked = tl.load(logits + row * stride_row + wanted * stride_col).to(tl.float32)
        tl.store(loss + row, log_sum - picked)


def cross_entropy(logits, target, ignore_index):
    rows, cols = logits.shape
    loss = torch.empty((rows,), dtype=torch.float32, device=logits.device)
    lanes = min(2048, triton.next_power_of_2(cols))
    depth = min(4, triton.next_power_of_2(triton.cdiv(cols, lanes)))
    cross_entropy_kernel[(rows,)](
        logits, target, loss, cols, *logits.stride(), ignore_index, DEPTH=depth, LANES=lanes,
        num_warps=max(1, min(8, lanes // 256)),
    )  # fmt: skip
    return loss
