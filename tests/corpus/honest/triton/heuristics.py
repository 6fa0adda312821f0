# task: quantize_fp8
# tiers: interpret gpu
# Heuristics choose the block; a wrapper class holds the kernel.
import torch
import triton
import triton.language as tl


@triton.heuristics({"BLOCK": lambda args: triton.next_power_of_2(args["cols"])})
@triton.jit
def quantize(x, q, s, cols, s0, s1, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, BLOCK)
    v = tl.load(x + row * s0 + c * s1, mask=c < cols, other=0.0).to(tl.float32)
    amax = tl.maximum(tl.max(tl.abs(v), axis=0), 1e-12)
    tl.store(s + row, amax / 448.0)
    y = tl.clamp(v * (448.0 / amax), -448.0, 448.0)
    tl.store(q + row * cols + c, y.to(tl.float8e4nv), mask=c < cols)


class Quantizer:
    def __call__(self, x):
        q = torch.empty(x.shape, dtype=torch.float8_e4m3fn, device=x.device)
        s = x.new_empty(x.shape[0], dtype=torch.float32)
        quantize[(x.shape[0],)](x, q, s, x.shape[1], *x.stride(), num_warps=8)
        return q, s


quantize_fp8 = Quantizer()
