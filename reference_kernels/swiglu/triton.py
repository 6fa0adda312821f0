"""SwiGLU: a program per piece of a row, so that halves of one matrix need no copy."""

import torch
import triton
import triton.language as tl


@triton.jit
def swiglu_kernel(gate, up, y, cols, pieces, gate_row, gate_col, up_row, up_col, BLOCK: tl.constexpr):
    row = (tl.program_id(0) // pieces).to(tl.int64)
    col = (tl.program_id(0) % pieces * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    mask = col < cols
    g = tl.load(gate + row * gate_row + col * gate_col, mask=mask, other=0.0).to(tl.float32)
    u = tl.load(up + row * up_row + col * up_col, mask=mask, other=0.0).to(tl.float32)
    tl.store(y + row * cols + col, g / (1.0 + tl.exp(-g)) * u, mask=mask)


def swiglu(gate, up):
    rows, cols = gate.shape
    y = torch.empty((rows, cols), dtype=gate.dtype, device=gate.device)
    block = min(2048, triton.next_power_of_2(cols))
    pieces = triton.cdiv(cols, block)
    swiglu_kernel[(rows * pieces,)](
        gate, up, y, cols, pieces, *gate.stride(), *up.stride(), BLOCK=block, num_warps=max(1, block // 256)
    )
    return y
