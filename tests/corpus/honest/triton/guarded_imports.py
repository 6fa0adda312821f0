# task: softmax
# tiers: interpret gpu
# try/except around imports, asserts on the device, comments with words like pass and torch.softmax.
import torch
import triton
import triton.language as tl


try:
    from triton.language.extra import libdevice
except ImportError:
    libdevice = None  # pass: not needed here


@triton.jit
def _softmax(x, y, cols, s0, s1, BLOCK: tl.constexpr):
    # Replaces torch.softmax(x, -1): one pass, no fallback to torch.
    row = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, BLOCK)
    v = tl.load(x + row * s0 + c * s1, mask=c < cols, other=float("-inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + row * cols + c, e / tl.sum(e, 0), mask=c < cols)


def softmax(x: torch.Tensor) -> torch.Tensor:
    assert x.is_cuda, "needs a GPU"
    assert x.device.type == "cuda" and x.dim() == 2
    y = torch.empty(x.shape, device="cuda", dtype=x.dtype)
    with torch.cuda.device(x.device):
        _softmax[(x.shape[0],)](x, y, x.shape[1], *x.stride(), BLOCK=triton.next_power_of_2(x.shape[1]), num_warps=8)
    return y
