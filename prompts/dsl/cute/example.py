# scaled_row_l1(x, scale): y[i] = scale * sum_j |x[i, j]|, x of shape (rows, cols) with any strides, y in x's dtype
import cuda.bindings.driver as cuda
import cutlass
import cutlass.cute as cute
import torch
from cutlass.cute.runtime import from_dlpack

THREADS = 128


@cute.kernel
def scaled_row_l1_kernel(x: cute.Tensor, y: cute.Tensor, scale: cutlass.Float32):
    thread, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    partial = cutlass.utils.SmemAllocator().allocate_tensor(cutlass.Float32, cute.make_layout(THREADS // 32))
    total = cutlass.Float32(0.0)  # every variable exists, with its type, before the loop
    for col in cutlass.range(thread, x.shape[1], THREADS):  # a run-time loop: rows of any length
        v = x[row, col].to(cutlass.Float32)
        total += cute.arch.fmax(v, -v)
    total = cute.arch.warp_reduction(total, lambda a, b: a + b)
    if cute.arch.lane_idx() == 0:
        partial[cute.arch.warp_idx()] = total
    cute.arch.sync_threads()
    if thread == 0:
        for warp in cutlass.range_constexpr(1, THREADS // 32):  # unrolled while tracing
            total += partial[warp]
        y[0, row] = (total * scale).to(y.element_type)


@cute.jit
def scaled_row_l1_host(x: cute.Tensor, y: cute.Tensor, scale: cutlass.Float32, stream: cuda.CUstream):
    scaled_row_l1_kernel(x, y, scale).launch(grid=[x.shape[0], 1, 1], block=[THREADS, 1, 1], stream=stream)


compiled = {}


def dynamic(t):
    """A cute tensor whose shape and strides are run-time values, but for the axis of stride 1; and that axis."""
    c = from_dlpack(t)
    leading = 1 if c.stride[1] == 1 else 0 if c.stride[0] == 1 else None
    return c.mark_layout_dynamic(leading), leading


def scaled_row_l1(x: torch.Tensor, scale: float) -> torch.Tensor:
    y = torch.empty((x.shape[0],), dtype=x.dtype, device=x.device)
    (cx, leading_x), (cy, leading_y) = dynamic(x), dynamic(y.view(1, -1))
    args = (cx, cy, cutlass.Float32(scale), cuda.CUstream(torch.cuda.current_stream().cuda_stream))
    key = (x.dtype, leading_x, leading_y)
    if key not in compiled:
        compiled[key] = cute.compile(scaled_row_l1_host, *args)
    compiled[key](*args)
    return y
