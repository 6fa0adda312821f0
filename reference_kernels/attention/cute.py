"""Attention with an online softmax: a block of threads per 64 queries of one head. Scores and probabilities pass through
shared memory, where two threads own a row; products run on the tensor cores, or as multiply-adds for float32."""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import torch
from cutlass.cute.runtime import from_dlpack

THREADS = 128
QUERIES, KEYS = 64, 32  # of one step
LOWEST = -3.0e38  # finite: exp(LOWEST - top) is 0 and never NaN


@cute.jit
def load_rows(
    source: cute.Tensor, b: cutlass.Int32, h: cutlass.Int32, start: cutlass.Int32, into: cute.Tensor, transposed: cutlass.Constexpr
):
    """Rows from `start` on of one head, zeros outside of it."""
    thread, _, _ = cute.arch.thread_idx()
    length = cute.size(into, mode=[1 if transposed else 0])
    width = cute.size(into, mode=[0 if transposed else 1])
    for k in cutlass.range(length * width // THREADS):
        r, d = (k * THREADS + thread) // width, (k * THREADS + thread) % width
        v = into.element_type(0.0)
        if start + r < source.shape[2] and d < source.shape[3]:
            v = source[b, h, start + r, d]
        if cutlass.const_expr(transposed):
            into[d, r] = v
        else:
            into[r, d] = v


@cute.kernel
def attention_kernel(
    q: cute.Tensor, k: cute.Tensor, v: cute.Tensor, out: cute.Tensor, scale: cutlass.Float32, mma: cute.TiledMma,
    causal: cutlass.Constexpr, width: cutlass.Constexpr,
):
    thread, _, _ = cute.arch.thread_idx()
    block, h, b = cute.arch.block_idx()
    dtype = q.element_type
    queries, keys = q.shape[2], k.shape[2]
    kv_head = h // (q.shape[1] // k.shape[1])
    start = block * QUERIES

    smem = cutlass.utils.SmemAllocator()
    pad = cutlass.const_expr(128 // dtype.width)  # neighbouring rows start in different banks
    q_tile = smem.allocate_tensor(dtype, cute.make_layout((QUERIES, width), stride=(width + pad, 1)), 16)
    k_tile = smem.allocate_tensor(dtype, cute.make_layout((KEYS, width), stride=(width + pad, 1)), 16)
    v_tile = smem.allocate_tensor(dtype, cute.make_layout((width, KEYS), stride=(KEYS + pad, 1)), 16)
    p_tile = smem.allocate_tensor(dtype, cute.make_layout((QUERIES, KEYS), stride=(KEYS + pad, 1)), 16)
    scores = smem.allocate_tensor(cutlass.Float32, cute.make_layout((QUERIES, KEYS), stride=(KEYS + 1, 1)), 16)
    shrink = smem.allocate_tensor(cutlass.Float32, cute.make_layout(QUERIES), 16)

    mine = mma.get_slice(thread)
    q_part, k_part = mine.partition_A(q_tile), mine.partition_B(k_tile)
    p_part, v_part = mine.partition_A(p_tile), mine.partition_B(v_tile)
    q_regs, k_regs = mma.make_fragment_A(q_part), mma.make_fragment_B(k_part)
    p_regs, v_regs = mma.make_fragment_A(p_part), mma.make_fragment_B(v_part)
    s = cute.make_rmem_tensor(mma.partition_shape_C((QUERIES, KEYS)), cutlass.Float32)
    acc = cute.make_rmem_tensor(mma.partition_shape_C((QUERIES, width)), cutlass.Float32)
    s_places = mine.partition_C(cute.make_identity_tensor((QUERIES, KEYS)))
    places = mine.partition_C(cute.make_identity_tensor((QUERIES, width)))
    acc.fill(0.0)

    row, side = thread // 2, thread % 2  # the row of scores this thread owns a half of
    last = keys - 1  # the last key that its query sees
    end = keys
    if cutlass.const_expr(causal):
        last = cutlass.min(last, start + row + keys - queries)
        end = cutlass.min(keys, start + QUERIES + keys - queries)
    top, total = cutlass.Float32(LOWEST), cutlass.Float32(0.0)
    load_rows(q, b, h, start, q_tile, False)
    for step in cutlass.range(cute.ceil_div(end, KEYS)):
        load_rows(k, b, kv_head, step * KEYS, k_tile, False)
        load_rows(v, b, kv_head, step * KEYS, v_tile, True)
        cute.arch.sync_threads()
        cute.autovec_copy(q_part, q_regs)
        cute.autovec_copy(k_part, k_regs)
        s.fill(0.0)
        cute.gemm(mma, s, q_regs, k_regs, s)
        for i in cutlass.range_constexpr(cute.size(s)):
            scores[s_places[i][0], s_places[i][1]] = s[i] * scale
        cute.arch.sync_threads()

        new = top
        for j in cutlass.range_constexpr(KEYS // 2):
            if step * KEYS + 2 * j + side <= last:
                new = cute.arch.fmax(new, scores[row, 2 * j + side])
        new = cute.arch.fmax(new, cute.arch.shuffle_sync_bfly(new, 1))
        factor = cute.math.exp(top - new)
        partial = cutlass.Float32(0.0)
        for j in cutlass.range_constexpr(KEYS // 2):
            p = cutlass.Float32(0.0)
            if step * KEYS + 2 * j + side <= last:
                p = cute.math.exp(scores[row, 2 * j + side] - new)
            partial += p
            p_tile[row, 2 * j + side] = p.to(dtype)
        total = total * factor + partial
        top = new
        if side == 0:
            shrink[row] = factor
        cute.arch.sync_threads()

        for i in cutlass.range_constexpr(cute.size(acc)):
            acc[i] = acc[i] * shrink[places[i][0]]
        cute.autovec_copy(p_part, p_regs)
        cute.autovec_copy(v_part, v_regs)
        cute.gemm(mma, acc, p_regs, v_regs, acc)
        cute.arch.sync_threads()

    total += cute.arch.shuffle_sync_bfly(total, 1)
    if side == 0:
        shrink[row] = 1.0 / total
    cute.arch.sync_threads()
    for i in cutlass.range_constexpr(cute.size(acc)):
        r, d = places[i][0], places[i][1]
        if start + r < queries and d < out.shape[3]:
            out[b, h, start + r, d] = (acc[i] * shrink[r]).to(dtype)


@cute.jit
def attention_host(
    q: cute.Tensor, k: cute.Tensor, v: cute.Tensor, out: cute.Tensor, scale: cutlass.Float32, causal: cutlass.Constexpr,
    width: cutlass.Constexpr, stream: cuda.CUstream,
):
    if cutlass.const_expr(q.element_type is cutlass.Float32):
        mma = cute.make_tiled_mma(cute.nvgpu.MmaUniversalOp(cutlass.Float32), atom_layout_mnk=(16, 8, 1))
    else:
        op = cute.nvgpu.warp.MmaF16BF16Op(q.element_type, cutlass.Float32, (16, 8, 16))
        mma = cute.make_tiled_mma(op, atom_layout_mnk=(4, 1, 1))
    attention_kernel(q, k, v, out, scale, mma, causal, width).launch(
        grid=[cute.ceil_div(q.shape[2], QUERIES), q.shape[1], q.shape[0]], block=[THREADS, 1, 1], stream=stream
    )


compiled = {}


def dynamic(x):
    """A cute tensor of any shape and strides, and what the code compiled for it depends on."""
    t = from_dlpack(x)
    leading = next((i for i in reversed(range(x.dim())) if t.stride[i] == 1), None)
    return t.mark_layout_dynamic(leading), (x.dtype, leading)


def run(host, tensors, scalars=(), constants=()):
    """Compiles `host` for these kinds of tensors once, and calls it on torch's current stream."""
    args, kinds = zip(*map(dynamic, tensors), strict=True)
    stream = cuda.CUstream(torch.cuda.current_stream().cuda_stream)
    key = (host, kinds, constants)
    if key not in compiled:
        compiled[key] = cute.compile(host, *args, *scalars, *constants, stream)
    compiled[key](*args, *scalars, stream)


def attention(q, k, v, causal, scale):
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    width = 64 if q.shape[3] <= 64 else 128
    run(attention_host, (q, k, v, out), (cutlass.Float32(scale),), (causal, width))
    return out
