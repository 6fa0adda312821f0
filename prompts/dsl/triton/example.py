# scaled_row_l1(x, scale): y[i] = scale * sum_j |x[i, j]|, x of shape (rows, cols) with any strides, y in x's dtype
import torch
import triton
import triton.language as tl


@triton.jit
def scaled_row_l1_kernel(x_ptr, y_ptr, scale, cols, stride_row, stride_col, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)  # int64: row * stride_row may pass 2^31
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, cols, BLOCK):  # rows of any length with one block size
        offs = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride_row + offs.to(tl.int64) * stride_col, mask=offs < cols, other=0.0)
        total += tl.abs(x.to(tl.float32))
    tl.store(y_ptr + row, tl.sum(total, axis=0) * scale)


def scaled_row_l1(x: torch.Tensor, scale: float) -> torch.Tensor:
    rows, cols = x.shape
    y = torch.empty((rows,), dtype=x.dtype, device=x.device)
    block = min(1024, triton.next_power_of_2(cols))
    scaled_row_l1_kernel[(rows,)](x, y, scale, cols, x.stride(0), x.stride(1), BLOCK=block, num_warps=4)
    return y
