"""Flash attention, forward: a program per block of queries walks over the keys with an online softmax.

Whole blocks of keys below the diagonal need no mask; only the last ones of a causal row, and the ragged end, do.
TMA brings the blocks where it can address the tensors: without pointers in registers the large tiles fit.
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def load_block(source, batch, head, start, length, stride_b, stride_h, stride_n, TMA: tl.constexpr, BLOCK: tl.constexpr,
               HEAD_DIM: tl.constexpr, BLOCK_D: tl.constexpr):  # fmt: skip
    """(BLOCK, BLOCK_D) values of one head from row `start` on; 0 outside of it."""
    if TMA:
        block = source.load([batch, head, start, 0]).reshape(BLOCK, BLOCK_D)
    else:
        n = (start + tl.arange(0, BLOCK)).to(tl.int64)[:, None]
        d = tl.arange(0, BLOCK_D)[None, :]
        pointers = source + batch.to(tl.int64) * stride_b + head.to(tl.int64) * stride_h + n * stride_n + d
        block = tl.load(pointers, mask=(n < length) & (d < HEAD_DIM), other=0.0)
    return block


@triton.jit
def attend(acc, total, top, q, k_source, v_source, batch, head, lo, hi, offset, rows, keys, scale,
           k_b, k_h, k_n, v_b, v_h, v_n, CAUSAL: tl.constexpr, MASKED: tl.constexpr, TMA: tl.constexpr,
           BLOCK_N: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_D: tl.constexpr):  # fmt: skip
    """Online softmax over the keys [lo, hi). `top` is in units of log2."""
    for start in tl.range(lo, hi, BLOCK_N):
        k = load_block(k_source, batch, head, start, keys, k_b, k_h, k_n, TMA, BLOCK_N, HEAD_DIM, BLOCK_D)
        scores = tl.dot(q, k.T, input_precision="ieee")
        if MASKED:
            n = start + tl.arange(0, BLOCK_N)
            seen = n[None, :] < keys
            if CAUSAL:
                seen = seen & (n[None, :] <= rows[:, None] + offset)
            scores = tl.where(seen, scores, -float("inf"))
        # Every row sees key 0 in the first block, so the maximum is never -inf.
        new = tl.maximum(top, tl.max(scores, axis=1) * scale)
        p = tl.exp2(scores * scale - new[:, None])  # one fused multiply-add an element
        shrink = tl.exp2(top - new)
        total = total * shrink + tl.sum(p, axis=1)
        v = load_block(v_source, batch, head, start, keys, v_b, v_h, v_n, TMA, BLOCK_N, HEAD_DIM, BLOCK_D)
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None], input_precision="ieee")
        top = new
    return acc, total, top


@triton.jit
def attention_kernel(q_source, k_source, v_source, out, queries, keys, heads, group, scale, q_b, q_h, q_m, k_b, k_h, k_n,
                     v_b, v_h, v_n, CAUSAL: tl.constexpr, TMA: tl.constexpr, HEAD_DIM: tl.constexpr,
                     BLOCK_D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):  # fmt: skip
    # The longest causal rows first, so that the short ones fill the gaps at the end.
    block = tl.num_programs(0) - 1 - tl.program_id(0) if CAUSAL else tl.program_id(0)
    batch = tl.program_id(1) // heads
    head = tl.program_id(1) % heads
    kv_head = head // group
    rows = block * BLOCK_M + tl.arange(0, BLOCK_M)
    q = load_block(q_source, batch, head, block * BLOCK_M, queries, q_b, q_h, q_m, TMA, BLOCK_M, HEAD_DIM, BLOCK_D)

    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    top = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    scale_log2 = scale * 1.4426950408889634  # exp(x) = exp2(x * log2(e))
    offset = keys - queries
    if CAUSAL:
        whole = (block * BLOCK_M + offset + 1) // BLOCK_N * BLOCK_N
        end = tl.minimum(keys, (block + 1) * BLOCK_M + offset)
    else:
        whole = keys // BLOCK_N * BLOCK_N
        end = keys
    acc, total, top = attend(acc, total, top, q, k_source, v_source, batch, kv_head, 0, whole, offset, rows, keys, scale_log2,
                             k_b, k_h, k_n, v_b, v_h, v_n, CAUSAL, False, TMA, BLOCK_N, HEAD_DIM, BLOCK_D)  # fmt: skip
    acc, total, top = attend(acc, total, top, q, k_source, v_source, batch, kv_head, whole, end, offset, rows, keys, scale_log2,
                             k_b, k_h, k_n, v_b, v_h, v_n, CAUSAL, True, TMA, BLOCK_N, HEAD_DIM, BLOCK_D)  # fmt: skip

    d = tl.arange(0, BLOCK_D)[None, :]
    row = (tl.program_id(1).to(tl.int64) * queries + rows)[:, None] * HEAD_DIM
    tl.store(out + row + d, acc / total[:, None], mask=(rows[:, None] < queries) & (d < HEAD_DIM))


def for_tma(x):
    """TMA wants a last stride of 1, other strides and the base in multiples of 16 bytes."""
    return x.data_ptr() % 16 == 0 and all(stride * x.element_size() % 16 == 0 for stride in x.stride()[:-1])


def attention(q, k, v, causal, scale):
    batch, heads, queries, head_dim = q.shape
    kv_heads, keys = k.shape[1], k.shape[2]
    out = torch.empty((batch, heads, queries, head_dim), dtype=q.dtype, device=q.device)
    block_d = max(16, triton.next_power_of_2(head_dim))
    if q.element_size() == 4:  # IEEE products run on the ordinary units: small tiles
        block_m, block_n, warps, stages = 32, 32, 8, 1
    elif queries < 128:
        block_m, block_n, warps, stages = 64, 64, 4, 2
    else:
        block_m, block_n, warps, stages = 128, 128, 8, 3 if head_dim <= 64 else 2
    tma = q.element_size() == 2 and head_dim == block_d and for_tma(q) and for_tma(k) and for_tma(v)
    sources = (q, k, v)
    if tma:
        blocks = (block_m, block_n, block_n)
        sources = [TensorDescriptor.from_tensor(x, [1, 1, n, block_d]) for x, n in zip(sources, blocks, strict=True)]
    attention_kernel[(triton.cdiv(queries, block_m), batch * heads)](
        *sources, out, queries, keys, heads, heads // kv_heads, scale, *q.stride()[:3], *k.stride()[:3], *v.stride()[:3],
        CAUSAL=causal, TMA=tma, HEAD_DIM=head_dim, BLOCK_D=block_d, BLOCK_M=block_m, BLOCK_N=block_n,
        num_warps=warps, num_stages=stages,
    )  # fmt: skip
    return out
