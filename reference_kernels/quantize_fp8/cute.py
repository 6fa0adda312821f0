"""Row-wise float8: a block of threads per row finds the largest magnitude, then reads the row again and converts.

The instruction converts values in pairs, so every thread writes four neighbouring elements.
"""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import torch
from cutlass.cute.runtime import from_dlpack


@cute.jit
def block_reduce(value: cutlass.Float32, op: cutlass.Constexpr, shared: cute.Tensor, threads: cutlass.Constexpr):
    """The reduction of every thread's value, in every thread. `shared` has a place for each warp."""
    value = cute.arch.warp_reduction(value, op)
    if cutlass.const_expr(threads > 32):
        cute.arch.sync_threads()  # whoever still reads an earlier result
        if cute.arch.lane_idx() == 0:
            shared[cute.arch.warp_idx()] = value
        cute.arch.sync_threads()
        value = shared[0]
        for warp in cutlass.range_constexpr(1, threads // 32):
            value = op(value, shared[warp])
    return value


@cute.kernel
def quantize_kernel(x: cute.Tensor, q: cute.Tensor, scale: cute.Tensor, threads: cutlass.Constexpr):
    thread, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    cols = x.shape[1]
    shared = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout(max(1, threads // 32)))
    top = cutlass.Float32(0.0)
    for col in cutlass.range(thread, cols, threads, unroll=4):
        v = x[row, col].to(cutlass.Float32)
        top = cute.arch.fmax(top, cute.arch.fmax(v, -v))
    top = cute.arch.fmax(block_reduce(top, cute.arch.fmax, shared, threads), cutlass.Float32(1e-12))
    if thread == 0:
        scale[0, row] = top / 448.0
    factor = 448.0 / top
    values = cute.make_rmem_tensor(4, cutlass.Float32)
    rounded = cute.make_rmem_tensor(4, cutlass.Float8E4M3FN)
    codes = cute.recast_tensor(rounded, cutlass.Uint8)
    for start in cutlass.range(thread * 4, cols, threads * 4):
        for k in cutlass.range_constexpr(4):
            values[k] = cutlass.Float32(0.0)
            if start + k < cols:
                v = x[row, start + k].to(cutlass.Float32) * factor
                values[k] = cute.arch.fmin(cute.arch.fmax(v, cutlass.Float32(-448.0)), cutlass.Float32(448.0))
        rounded.store(values.load().to(cutlass.Float8E4M3FN))
        for k in cutlass.range_constexpr(4):
            if start + k < cols:
                q[row, start + k] = codes[k]


@cute.jit
def quantize_host(
    x: cute.Tensor, q: cute.Tensor, scale: cute.Tensor, threads: cutlass.Constexpr, stream: cuda.CUstream
):
    quantize_kernel(x, q, scale, threads).launch(grid=[x.shape[0], 1, 1], block=[threads, 1, 1], stream=stream)


compiled = {}


def dynamic(x):
    """A cute tensor of any shape and strides, and what the code compiled for it depends on."""
    t = from_dlpack(x)
    leading = 1 if t.stride[1] == 1 else 0 if t.stride[0] == 1 else None
    return t.mark_layout_dynamic(leading), (x.dtype, leading)


def threads_for(cols):
    return 32 if cols <= 512 else 256 if cols <= 8192 else 1024


def run(host, tensors, scalars=(), constants=()):
    """Compiles `host` for these kinds of tensors once, and calls it on torch's current stream."""
    args, kinds = zip(*map(dynamic, tensors), strict=True)
    stream = cuda.CUstream(torch.cuda.current_stream().cuda_stream)
    key = (host, kinds, constants)
    if key not in compiled:
        compiled[key] = cute.compile(host, *args, *scalars, *constants, stream)
    compiled[key](*args, *scalars, stream)


def quantize_fp8(x):
    q = torch.empty(x.shape, dtype=torch.float8_e4m3fn, device=x.device)
    scale = torch.empty((x.shape[0],), dtype=torch.float32, device=x.device)
    # DLPack knows no float8 everywhere: its bytes are written.
    run(quantize_host, (x, q.view(torch.uint8), scale.view(1, -1)), constants=(threads_for(x.shape[1]),))
    return q, scale
