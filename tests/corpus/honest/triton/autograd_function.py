# task: swiglu
# tiers: interpret gpu
# A torch.autograd.Function around the kernel, as libraries ship it.
import torch
import triton
import triton.language as tl


@triton.jit
def forward_kernel(g, u, y, rows, cols, g0, g1, u0, u1, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    for start in range(0, cols, BLOCK):
        c = start + tl.arange(0, BLOCK)
        a = tl.load(g + row * g0 + c * g1, mask=c < cols).to(tl.float32)
        b = tl.load(u + row * u0 + c * u1, mask=c < cols).to(tl.float32)
        tl.store(y + row * cols + c, a * tl.sigmoid(a) * b, mask=c < cols)


class SwiGLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, gate, up):
        y = torch.empty(gate.shape, dtype=gate.dtype, device=gate.device)
        rows, cols = gate.shape
        forward_kernel[(rows,)](gate, up, y, rows, cols, *gate.stride(), *up.stride(), BLOCK=1024)
        ctx.save_for_backward(gate, up)
        return y


def swiglu(gate, up):
    return SwiGLU.apply(gate, up)
