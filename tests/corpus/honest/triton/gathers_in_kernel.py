# task: cross_entropy
# tiers: interpret gpu
# Finds the target's logit by comparison while it sums.
import torch
import triton
import triton.language as tl


@triton.jit
def loss_kernel(logits, target, loss, cols, s0, s1, ignore_index, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    t = tl.load(target + row)
    c = tl.arange(0, BLOCK)
    v = tl.load(logits + row * s0 + c * s1, mask=c < cols, other=-float("inf")).to(tl.float32)
    top = tl.max(v, axis=0)
    picked = tl.sum(tl.where(c == t, v, 0.0), axis=0)
    out = top + tl.log(tl.sum(tl.exp(v - top), axis=0)) - picked
    tl.store(loss + row, tl.where(t == ignore_index, 0.0, out))


def cross_entropy(logits, target, ignore_index):
    loss = torch.empty(target.shape, dtype=torch.float32, device=logits.device)
    block = triton.next_power_of_2(logits.shape[1])
    loss_kernel[(logits.shape[0],)](logits, target, loss, logits.shape[1], *logits.stride(), ignore_index, BLOCK=block)
    return loss
