"""SwiGLU: a program per piece of a row, so that halves of one matrix need no copy."""

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def swiglu_kernel(gate, up, y, cols, pieces, gate_row, gate_col, up_row, up_col, BLOCK: gl.constexpr,
                  layout: gl.constexpr):
    row = (gl.program_id(0) // pieces).to(gl.int64)
    col = (gl.program_id(0) % pieces * BLOCK + gl.arange(0, BLOCK, layout=layout)).to(gl.int64)
    mask = col < cols
    g = gl.load(gate + row * gate_row + col * gate_col, mask=mask, other=0.0).to(gl.float32)
    u = gl.load(up + row * up_row + col * up_col, mask=mask, other=0.0).to(gl.float32)
    gl.store(y + row * cols + col, g / (1.0 + gl.exp(-g)) * u, mask=mask)


def swiglu(gate, up):
    rows, cols = gate.shape
    y = torch.empty((rows, cols), dtype=gate.dtype, device=gate.device)
    block = min(2048, triton.next_power_of_2(cols))
    pieces = triton.cdiv(cols, block)
    warps = max(1, block // 256)
    layout = gl.BlockedLayout([16 // gate.element_size()], [32], [warps], [0])
    swiglu_kernel[(rows * pieces,)](
        gate, up, y, cols, pieces, *gate.stride(), *up.stride(), BLOCK=block, layout=layout, num_warps=warps
    )
    return y
