# task: vector_add
# tiers: interpret gpu
# Block pointers, contiguous copies of strided inputs on the host.
import torch
import triton
import triton.language as tl


@triton.jit
def add(a, b, out, rows, cols, BR: tl.constexpr, BC: tl.constexpr):
    r, c = tl.program_id(0) * BR, tl.program_id(1) * BC
    pa = tl.make_block_ptr(a, (rows, cols), (cols, 1), (r, c), (BR, BC), (1, 0))
    pb = tl.make_block_ptr(b, (rows, cols), (cols, 1), (r, c), (BR, BC), (1, 0))
    po = tl.make_block_ptr(out, (rows, cols), (cols, 1), (r, c), (BR, BC), (1, 0))
    x = tl.load(pa, boundary_check=(0, 1)).to(tl.float32)
    y = tl.load(pb, boundary_check=(0, 1)).to(tl.float32)
    tl.store(po, (x + y).to(out.dtype.element_ty), boundary_check=(0, 1))


def vector_add(a, b):
    a, b = a.contiguous(), b.contiguous()
    out = torch.empty_like(a)
    rows, cols = a.shape
    add[(triton.cdiv(rows, 16), triton.cdiv(cols, 64))](a, b, out, rows, cols, BR=16, BC=64)
    return out
