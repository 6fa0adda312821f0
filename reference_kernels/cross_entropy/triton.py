"""Cross entropy: a program per row reads the logits once, with a running maximum and sum in every lane."""

import torch
import triton
import triton.language as tl


@triton.jit
def cross_entropy_kernel(
    logits, target, loss, cols, stride_row, stride_col, ignore_index, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    wanted = tl.load(target + row)
    if wanted == ignore_index:
        tl.store(loss + row, 0.0)
    else:
        top = tl.full((BLOCK,), -3.0e38, tl.float32)
        total = tl.zeros((BLOCK,), tl.float32)
        for start in range(0, cols, BLOCK):
            col = (start + tl.arange(0, BLOCK)).to(tl.int64)
            v = tl.load(logits + row * stride_row + col * stride_col, mask=col < cols, other=-float("inf"))
            v = v.to(tl.float32)
            new = tl.maximum(top, v)
            total = total * tl.exp(top - new) + tl.exp(v - new)
            top = new
        row_top = tl.max(top, axis=0)
        log_sum = row_top + tl.log(tl.sum(total * tl.exp(top - row_top), axis=0))
        picked = tl.load(logits + row * stride_row + wanted * stride_col).to(tl.float32)
        tl.store(loss + row, log_sum - picked)


def cross_entropy(logits, target, ignore_index):
    rows, cols = logits.shape
    loss = torch.empty((rows,), dtype=torch.float32, device=logits.device)
    block = min(8192, triton.next_power_of_2(cols))
    warps = max(1, min(16, block // 512))
    cross_entropy_kernel[(rows,)](
        logits, target, loss, cols, *logits.stride(), ignore_index, BLOCK=block, num_warps=warps
    )
    return loss
