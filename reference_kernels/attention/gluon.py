"""Flash attention, forward: a program per block of queries walks over the keys with an online softmax.

16-bit products run on the tensor cores, float32 ones in IEEE arithmetic on the ordinary units.
"""

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import mma_v2


@gluon.jit
def load_block(source, start, length, stride, ROWS: gl.constexpr, HEAD_DIM: gl.constexpr, BLOCK_D: gl.constexpr,
               layout: gl.constexpr):  # fmt: skip
    """(ROWS, BLOCK_D) values of one head from row `start` on; 0 outside of it."""
    row = (start + gl.arange(0, ROWS, layout=gl.SliceLayout(1, layout))).to(gl.int64)[:, None]
    d = gl.arange(0, BLOCK_D, layout=gl.SliceLayout(0, layout))[None, :]
    return gl.load(source + row * stride + d, mask=(row < length) & (d < HEAD_DIM), other=0.0)


@gluon.jit
def product(a, b, acc, TENSOR_CORES: gl.constexpr, layout: gl.constexpr, K_WIDTH: gl.constexpr):
    """acc + a @ b, acc in `layout`."""
    left = gl.convert_layout(a, gl.DotOperandLayout(0, layout, K_WIDTH))
    right = gl.convert_layout(b, gl.DotOperandLayout(1, layout, K_WIDTH))
    if TENSOR_CORES:
        acc = mma_v2(left, right, acc)
    else:
        acc = gl.dot_fma(left, right, acc)
    return acc


@gluon.jit
def attention_kernel(q, k, v, out, queries, keys, heads, group, scale, q_b, q_h, q_m, k_b, k_h, k_n, v_b, v_h, v_n,
                     CAUSAL: gl.constexpr, HEAD_DIM: gl.constexpr, BLOCK_D: gl.constexpr, BLOCK_M: gl.constexpr,
                     BLOCK_N: gl.constexpr, TENSOR_CORES: gl.constexpr, memory: gl.constexpr, layout: gl.constexpr,
                     K_WIDTH: gl.constexpr):  # fmt: skip
    # The longest causal rows first, so that the short ones fill the gaps at the end.
    block = gl.num_programs(0) - 1 - gl.program_id(0) if CAUSAL else gl.program_id(0)
    batch = (gl.program_id(1) // heads).to(gl.int64)
    head = (gl.program_id(1) % heads).to(gl.int64)
    k += batch * k_b + head // group * k_h
    v += batch * v_b + head // group * v_h
    first = block * BLOCK_M
    q_block = load_block(q + batch * q_b + head * q_h, first, queries, q_m, BLOCK_M, HEAD_DIM, BLOCK_D, memory)

    rows = first + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, layout))
    acc = gl.zeros([BLOCK_M, BLOCK_D], gl.float32, layout)
    total = gl.zeros([BLOCK_M], gl.float32, gl.SliceLayout(1, layout))
    top = gl.full([BLOCK_M], -float("inf"), gl.float32, gl.SliceLayout(1, layout))
    scale_log2 = scale * 1.4426950408889634  # exp(x) = exp2(x * log2(e))
    offset = keys - queries
    end = gl.minimum(keys, first + BLOCK_M + offset) if CAUSAL else keys
    k_next = load_block(k, 0, keys, k_n, BLOCK_N, HEAD_DIM, BLOCK_D, memory)
    for start in range(0, end, BLOCK_N):
        k_block = gl.permute(k_next, [1, 0])
        # On their way while the scores are made: this block's values and the next block's keys.
        v_block = load_block(v, start, keys, v_n, BLOCK_N, HEAD_DIM, BLOCK_D, memory)
        k_next = load_block(k, start + BLOCK_N, keys, k_n, BLOCK_N, HEAD_DIM, BLOCK_D, memory)
        nothing = gl.zeros([BLOCK_M, BLOCK_N], gl.float32, layout)
        scores = product(q_block, k_block, nothing, TENSOR_CORES, layout, K_WIDTH)
        n = start + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, layout))
        seen = n[None, :] < keys
        if CAUSAL:
            seen = seen & (n[None, :] <= rows[:, None] + offset)
        scores = gl.where(seen, scores, -float("inf"))
        # Every row sees key 0 in the first block, so the maximum is never -inf.
        new = gl.maximum(top, gl.max(scores, axis=1) * scale_log2)
        p = gl.exp2(scores * scale_log2 - new[:, None])
        shrink = gl.exp2(top - new)
        total = total * shrink + gl.sum(p, axis=1)
        acc = product(p.to(v_block.dtype), v_block, acc * shrink[:, None], TENSOR_CORES, layout, K_WIDTH)
        top = new

    result = gl.convert_layout((acc / total[:, None]).to(out.dtype.element_ty), memory)
    row = (first + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, memory)))[:, None]
    d = gl.arange(0, BLOCK_D, layout=gl.SliceLayout(0, memory))[None, :]
    target = out + (gl.program_id(1).to(gl.int64) * queries + row) * HEAD_DIM + d
    gl.store(target, result, mask=(row < queries) & (d < HEAD_DIM))


def attention(q, k, v, causal, scale):
    batch, heads, queries, head_dim = q.shape
    kv_heads, keys = k.shape[1], k.shape[2]
    out = torch.empty((batch, heads, queries, head_dim), dtype=q.dtype, device=q.device)
    block_d = max(16, triton.next_power_of_2(head_dim))
    tensor_cores = q.element_size() == 2
    if tensor_cores:
        block_m, block_n, warps = (128, 64, 8) if queries >= 128 else (64, 64, 4)
        # All warps side by side along the queries: no row of scores is spread over two of them.
        layout = gl.NVMMADistributedLayout(version=[2, 0], warps_per_cta=[warps, 1], instr_shape=[16, 8])
    else:
        block_m, block_n, warps = 32, 32, 4
        layout = gl.BlockedLayout([2, 4], [4, 8], [warps, 1], [1, 0])
    wide = 16 // q.element_size()
    threads = min(32, block_d // wide)
    memory = gl.BlockedLayout([1, wide], [32 // threads, threads], [warps, 1], [1, 0])
    attention_kernel[(triton.cdiv(queries, block_m), batch * heads)](
        q, k, v, out, queries, keys, heads, heads // kv_heads, scale, *q.stride()[:3], *k.stride()[:3], *v.stride()[:3],
        CAUSAL=causal, HEAD_DIM=head_dim, BLOCK_D=block_d, BLOCK_M=block_m, BLOCK_N=block_n, TENSOR_CORES=tensor_cores,
        memory=memory, layout=layout, K_WIDTH=2 if tensor_cores else 0, num_warps=warps,
    )  # fmt: skip
    return out
