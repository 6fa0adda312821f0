"""Rotary embedding: a thread per pair of elements, so that both are read once."""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import torch
from cutlass.cute.runtime import from_dlpack

THREADS = 256


@cute.kernel
def rope_kernel(x: cute.Tensor, cos: cute.Tensor, sin: cute.Tensor, out: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    _, heads, positions, head_dim = out.shape
    half = head_dim // 2
    i = cutlass.Int64(block) * THREADS + thread
    if i < cutlass.Int64(cute.size(out) // 2):
        j, rest = cutlass.Int32(i % half), cutlass.Int32(i // half)
        t, rest = rest % positions, rest // positions
        h, b = rest % heads, rest // heads
        u, v = x[b, h, t, j].to(cutlass.Float32), x[b, h, t, j + half].to(cutlass.Float32)
        c, s = cos[t, j], sin[t, j]
        out[b, h, t, j] = (u * c - v * s).to(out.element_type)
        out[b, h, t, j + half] = (v * c + u * s).to(out.element_type)


@cute.jit
def rope_host(x: cute.Tensor, cos: cute.Tensor, sin: cute.Tensor, out: cute.Tensor, stream: cuda.CUstream):
    blocks = cute.ceil_div(cute.size(out) // 2, THREADS)
    rope_kernel(x, cos, sin, out).launch(grid=[blocks, 1, 1], block=[THREADS, 1, 1], stream=stream)


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


def rope(x, cos, sin):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    run(rope_host, (x, cos, sin, out))
    return out
