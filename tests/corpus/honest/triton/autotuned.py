# task: vector_add
# tiers: interpret gpu
# Autotuned over three configurations.
import torch
import triton
import triton.language as tl


@triton.autotune(
    configs=[triton.Config({"BLOCK": 256}, num_warps=2), triton.Config({"BLOCK": 1024}, num_warps=4)],
    key=["rows", "cols"],
)
@triton.jit
def add(a, b, out, rows, cols, a0, a1, b0, b1, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    keep = i < rows * cols
    r, c = i // cols, i % cols
    x = tl.load(a + r * a0 + c * a1, mask=keep).to(tl.float32)
    tl.store(out + i, x + tl.load(b + r * b0 + c * b1, mask=keep).to(tl.float32), mask=keep)


def vector_add(a, b):
    out = torch.empty(a.shape, dtype=a.dtype, device=a.device)
    rows, cols = a.shape
    grid = lambda meta: (triton.cdiv(rows * cols, meta["BLOCK"]),)
    add[grid](a, b, out, rows, cols, *a.stride(), *b.stride())
    return out
