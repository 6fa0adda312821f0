"""Cumulative sum: a block of threads per row walks it in tiles. Warps scan by shuffles, warp totals through shared memory,
and the row's sum so far is carried from tile to tile."""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import torch
from cutlass.cute.runtime import from_dlpack


@cute.kernel
def cumsum_kernel(x: cute.Tensor, y: cute.Tensor, threads: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    cols = x.shape[1]
    lane, warp = cute.arch.lane_idx(), cute.arch.warp_idx()
    warps = cutlass.const_expr(threads // 32)
    shared = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout(warps))

    before = cutlass.Float32(0.0)
    for tile in cutlass.range(cute.ceil_div(cols, threads)):
        col = tile * threads + thread
        v = cutlass.Float32(0.0)
        if col < cols:
            v = x[row, col].to(cutlass.Float32)
        for step in cutlass.range_constexpr(5):
            lower = cute.arch.shuffle_sync_up(v, 1 << step)
            if lane >= 1 << step:
                v += lower
        if lane == 31:
            shared[warp] = v
        cute.arch.sync_threads()
        offset, whole = before, before
        for w in cutlass.range_constexpr(warps):
            if w < warp:
                offset += shared[w]
            whole += shared[w]
        if col < cols:
            y[row, col] = (offset + v).to(y.element_type)
        before = whole
        cute.arch.sync_threads()


@cute.jit
def cumsum_host(x: cute.Tensor, y: cute.Tensor, threads: cutlass.Constexpr, stream: cuda.CUstream):
    cumsum_kernel(x, y, threads).launch(grid=[x.shape[0], 1, 1], block=[threads, 1, 1], stream=stream)


compiled = {}


def dynamic(x):
    """A cute tensor of any shape and strides, and what the code compiled for it depends on."""
    t = from_dlpack(x)
    leading = 1 if t.stride[1] == 1 else 0 if t.stride[0] == 1 else None
    return t.mark_layout_dynamic(leading), (x.dtype, leading)


def threads_for(cols):
    return 64 if cols <= 64 else 256


def run(host, tensors, scalars=(), constants=()):
    """Compiles `host` for these kinds of tensors once, and calls it on torch's current stream."""
    args, kinds = zip(*map(dynamic, tensors), strict=True)
    stream = cuda.CUstream(torch.cuda.current_stream().cuda_stream)
    key = (host, kinds, constants)
    if key not in compiled:
        compiled[key] = cute.compile(host, *args, *scalars, *constants, stream)
    compiled[key](*args, *scalars, stream)


def cumsum(x):
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    run(cumsum_host, (x, y), constants=(threads_for(x.shape[1]),))
    return y
