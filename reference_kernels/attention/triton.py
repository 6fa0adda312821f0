"""Flash attention, forward: a program per block of queries walks over the keys with an online softmax.

Whole blocks of keys below the diagonal need no mask; only the last ones of a causal row, and the ragged end, do.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def attend(acc, total, top, q, k_ptrs, v_ptrs, stride_kn, stride_vn, lo, hi, offset, rows, cols, dims, keys, scale,
           CAUSAL: tl.constexpr, MASKED: tl.constexpr, PADDED: tl.constexpr, BLOCK_N: tl.constexpr,
           PRECISION: tl.constexpr):  # fmt: skip
    """Online softmax over the keys [lo, hi), where the pointers stand at key lo. `top` is in units of log2."""
    for start in range(lo, hi, BLOCK_N):
        n = start + cols
        if PADDED:
            k = tl.load(k_ptrs, mask=(dims[:, None] < PADDED) & (n[None, :] < keys), other=0.0)
        elif MASKED:
            k = tl.load(k_ptrs, mask=n[None, :] < keys, other=0.0)
        else:
            k = tl.load(k_ptrs)
        scores = tl.dot(q, k, input_precision=PRECISION) * scale
        if MASKED:
            seen = n[None, :] < keys
            if CAUSAL:
                seen = seen & (n[None, :] <= rows[:, None] + offset)
            scores = tl.where(seen, scores, -float("inf"))
        new = tl.maximum(top, tl.max(scores, axis=1))
        # A row that has seen no key yet keeps -inf as its maximum: subtract 0 there, not -inf.
        base = tl.where(new == -float("inf"), 0.0, new)
        p = tl.exp2(scores - base[:, None])
        shrink = tl.exp2(top - base)
        total = total * shrink + tl.sum(p, axis=1)
        if PADDED:
            v = tl.load(v_ptrs, mask=(dims[None, :] < PADDED) & (n[:, None] < keys), other=0.0)
        elif MASKED:
            v = tl.load(v_ptrs, mask=n[:, None] < keys, other=0.0)
        else:
            v = tl.load(v_ptrs)
        acc = tl.dot(p.to(v.dtype), v, acc * shrink[:, None], input_precision=PRECISION)
        top = new
        k_ptrs += BLOCK_N * stride_kn
        v_ptrs += BLOCK_N * stride_vn
    return acc, total, top, k_ptrs, v_ptrs


@triton.jit
def attention_kernel(q_ptr, k_ptr, v_ptr, out_ptr, queries, keys, heads, group, scale,
                     stride_qb, stride_qh, stride_qm, stride_kb, stride_kh, stride_kn, stride_vb, stride_vh, stride_vn,
                     HEAD_DIM: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                     CAUSAL: tl.constexpr, PRECISION: tl.constexpr):  # fmt: skip
    # The longest causal rows first, so that the short ones fill the gaps at the end.
    block = tl.num_programs(0) - 1 - tl.program_id(0) if CAUSAL else tl.program_id(0)
    batch = (tl.program_id(1) // heads).to(tl.int64)
    head = (tl.program_id(1) % heads).to(tl.int64)
    rows = block * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.arange(0, BLOCK_N)
    dims = tl.arange(0, BLOCK_D)
    PADDED: tl.constexpr = HEAD_DIM if HEAD_DIM != BLOCK_D else 0

    q_ptrs = q_ptr + batch * stride_qb + head * stride_qh + rows[:, None].to(tl.int64) * stride_qm + dims[None, :]
    q = tl.load(q_ptrs, mask=(rows[:, None] < queries) & (dims[None, :] < HEAD_DIM), other=0.0)
    k_ptrs = k_ptr + batch * stride_kb + (head // group) * stride_kh + cols[None, :].to(tl.int64) * stride_kn + dims[:, None]
    v_ptrs = v_ptr + batch * stride_vb + (head // group) * stride_vh + cols[:, None].to(tl.int64) * stride_vn + dims[None, :]

    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    top = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    scale_log2 = scale * 1.4426950408889634  # exp(x) = exp2(x * log2(e))
    offset = keys - queries
    if CAUSAL:
        whole = tl.maximum(0, (block * BLOCK_M + offset + 1) // BLOCK_N * BLOCK_N)
        end = tl.minimum(keys, (block + 1) * BLOCK_M + offset)
    else:
        whole = keys // BLOCK_N * BLOCK_N
        end = keys
    acc, total, top, k_ptrs, v_ptrs = attend(acc, total, top, q, k_ptrs, v_ptrs, stride_kn, stride_vn, 0, whole, offset, rows, cols, dims,
                             keys, scale_log2, CAUSAL, False, PADDED, BLOCK_N, PRECISION)  # fmt: skip
    acc, total, top, k_ptrs, v_ptrs = attend(acc, total, top, q, k_ptrs, v_ptrs, stride_kn, stride_vn, whole, end, offset, rows, cols, dims,
                             keys, scale_log2, CAUSAL, True, PADDED, BLOCK_N, PRECISION)  # fmt: skip

    out = acc / total[:, None]
    row = (tl.program_id(1).to(tl.int64) * queries + rows)[:, None] * HEAD_DIM
    tl.store(out_ptr + row + dims[None, :], out, mask=(rows[:, None] < queries) & (dims[None, :] < HEAD_DIM))


def attention(q, k, v, causal, scale):
    batch, heads, queries, head_dim = q.shape
    kv_heads, keys = k.shape[1], k.shape[2]
    out = torch.empty((batch, heads, queries, head_dim), dtype=q.dtype, device=q.device)
    wide = q.dtype == torch.float32
    block_m, block_n = (32, 32) if wide else (128, 64) if head_dim <= 64 else (128, 128)
    if queries < 128 and not wide:
        block_m, block_n = 64, 64
    grid = (triton.cdiv(queries, block_m), batch * heads)
    attention_kernel[grid](
        q, k, v, out, queries, keys, heads, heads // kv_heads, scale, *q.stride()[:3], *k.stride()[:3], *v.stride()[:3],
        HEAD_DIM=head_dim, BLOCK_D=max(16, triton.next_power_of_2(head_dim)), BLOCK_M=block_m, BLOCK_N=block_n,
        CAUSAL=causal, PRECISION="ieee", num_warps=8 if block_m == 128 else 4, num_stages=2 if head_dim > 64 else 3,
    )  # fmt: skip
    return out
