# scaled_row_l1(x, scale): y[i] = scale * sum_j |x[i, j]|, x of shape (rows, cols) with any strides, y in x's dtype
import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def scaled_row_l1_kernel(
    x_ptr, y_ptr, scale, cols, stride_row, stride_col, BLOCK: gl.constexpr, layout: gl.constexpr
):
    row = gl.program_id(0).to(gl.int64)  # int64: row * stride_row may pass 2^31
    total = gl.zeros([BLOCK], gl.float32, layout)
    for start in range(0, cols, BLOCK):  # rows of any length with one block size
        offs = start + gl.arange(0, BLOCK, layout=layout)  # the layout says which thread holds which element
        x = gl.load(x_ptr + row * stride_row + offs.to(gl.int64) * stride_col, mask=offs < cols, other=0.0)
        total += gl.abs(x.to(gl.float32))
    gl.store(y_ptr + row, gl.sum(total, axis=0) * scale)


def scaled_row_l1(x: torch.Tensor, scale: float) -> torch.Tensor:
    rows, cols = x.shape
    y = torch.empty((rows,), dtype=x.dtype, device=x.device)
    num_warps = 4
    # 16 bytes side by side in each thread, 32 threads in a warp, num_warps warps: one wide access each.
    layout = gl.BlockedLayout([16 // x.element_size()], [32], [num_warps], [0])
    block = min(1024, triton.next_power_of_2(cols))
    scaled_row_l1_kernel[(rows,)](
        x, y, scale, cols, x.stride(0), x.stride(1), BLOCK=block, layout=layout, num_warps=num_warps
    )
    return y
