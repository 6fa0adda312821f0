# task: matmul
# tiers: interpret gpu
# Split-K with atomic additions into a zeroed float32 buffer, a second kernel rounds.
import torch
import triton
import triton.language as tl


@triton.jit
def partial(a, b, c, m, n, k, a0, a1, b0, b1, SPLIT: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i = (tl.program_id(0) * BM + tl.arange(0, BM)).to(tl.int64)
    j = (tl.program_id(1) * BN + tl.arange(0, BN)).to(tl.int64)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(tl.program_id(2) * BK, k, SPLIT * BK):
        d = (start + tl.arange(0, BK)).to(tl.int64)
        x = tl.load(a + i[:, None] * a0 + d[None, :] * a1, mask=(i[:, None] < m) & (d[None, :] < k), other=0.0)
        y = tl.load(b + d[:, None] * b0 + j[None, :] * b1, mask=(d[:, None] < k) & (j[None, :] < n), other=0.0)
        acc = tl.dot(x, y, acc, input_precision="ieee")
    tl.atomic_add(c + i[:, None] * n + j[None, :], acc, mask=(i[:, None] < m) & (j[None, :] < n))


@triton.jit
def rounded(c, out, size, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(c + i, mask=i < size), mask=i < size)


def matmul(a, b):
    (m, k), n = a.shape, b.shape[1]
    c = torch.zeros((m, n), dtype=torch.float32, device=a.device)
    grid = (triton.cdiv(m, 64), triton.cdiv(n, 64), 2)
    partial[grid](a, b, c, m, n, k, *a.stride(), *b.stride(), SPLIT=2, BM=64, BN=64, BK=32)
    out = torch.empty((m, n), dtype=a.dtype, device=a.device)
    rounded[(triton.cdiv(m * n, 1024),)](c, out, m * n, BLOCK=1024)
    return out
