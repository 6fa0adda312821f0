"""Cross entropy: a block of threads per row reads its logits once, with a maximum and a sum in every thread."""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import torch
from cutlass.cute.runtime import from_dlpack

LOWEST = -3.0e38  # finite, so that a thread without elements computes exp(LOWEST - top) = 0 and never inf - inf


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


def add(a, b):
    return a + b


@cute.kernel
def cross_entropy_kernel(
    x: cute.Tensor, target: cute.Tensor, loss: cute.Tensor, ignore_index: cutlass.Int64, threads: cutlass.Constexpr
):
    thread, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    cols = x.shape[1]
    shared = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout(max(1, threads // 32)))
    wanted = target[0, row]
    if wanted == ignore_index:
        if thread == 0:
            loss[0, row] = cutlass.Float32(0.0)
    else:
        top, total = cutlass.Float32(LOWEST), cutlass.Float32(0.0)
        for col in cutlass.range(thread, cols, threads, unroll=4):
            v = x[row, col].to(cutlass.Float32)
            new = cute.arch.fmax(top, v)
            total = total * cute.math.exp(top - new) + cute.math.exp(v - new)
            top = new
        row_top = block_reduce(top, cute.arch.fmax, shared, threads)
        total = block_reduce(total * cute.math.exp(top - row_top), add, shared, threads)
        if thread == 0:
            loss[0, row] = row_top + cute.math.log(total) - x[row, wanted].to(cutlass.Float32)


@cute.jit
def cross_entropy_host(
    x: cute.Tensor, target: cute.Tensor, loss: cute.Tensor, ignore_index: cutlass.Int64, threads: cutlass.Constexpr,
    stream: cuda.CUstream,
):
    cross_entropy_kernel(x, target, loss, ignore_index, threads).launch(
        grid=[x.shape[0], 1, 1], block=[threads, 1, 1], stream=stream
    )


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


def cross_entropy(logits, target, ignore_index):
    loss = torch.empty((logits.shape[0],), dtype=torch.float32, device=logits.device)
    tensors = (logits, target.view(1, -1), loss.view(1, -1))
    run(cross_entropy_host, tensors, (cutlass.Int64(ignore_index),), (threads_for(logits.shape[1]),))
    return loss
