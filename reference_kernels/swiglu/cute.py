"""SwiGLU: a thread per element, a block per piece of a row, so that halves of one matrix need no copy."""

import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import torch
from cutlass.cute.runtime import from_dlpack

THREADS = 256
EACH = 4  # elements of a thread


@cute.kernel
def swiglu_kernel(gate: cute.Tensor, up: cute.Tensor, y: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    cols = y.shape[1]
    pieces = cute.ceil_div(cols, THREADS * EACH)
    row, start = block // pieces, block % pieces * (THREADS * EACH)
    for k in cutlass.range_constexpr(EACH):
        col = start + k * THREADS + thread
        if col < cols:
            g = gate[row, col].to(cutlass.Float32)
            silu = g / (1.0 + cute.math.exp(-g))
            y[row, col] = (silu * up[row, col].to(cutlass.Float32)).to(y.element_type)


@cute.jit
def swiglu_host(gate: cute.Tensor, up: cute.Tensor, y: cute.Tensor, stream: cuda.CUstream):
    blocks = y.shape[0] * cute.ceil_div(y.shape[1], THREADS * EACH)
    swiglu_kernel(gate, up, y).launch(grid=[blocks, 1, 1], block=[THREADS, 1, 1], stream=stream)


compiled = {}


def dynamic(x):
    """A cute tensor of any shape and strides, and what the code compiled for it depends on."""
    t = from_dlpack(x)
    leading = 1 if t.stride[1] == 1 else 0 if t.stride[0] == 1 else None
    return t.mark_layout_dynamic(leading), (x.dtype, leading)


def run(host, tensors, scalars=(), constants=()):
    """Compiles `host` for these kinds of tensors once, and calls it on torch's current stream."""
    args, kinds = zip(*map(dynamic, tensors), strict=True)
    stream = cuda.CUstream(torch.cuda.current_stream().cuda_stream)
    key = (host, kinds, constants)
    if key not in compiled:
        compiled[key] = cute.compile(host, *args, *scalars, *constants, stream)
    compiled[key](*args, *scalars, stream)


def swiglu(gate, up):
    y = torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)
    run(swiglu_host, (gate, up, y))
    return y
