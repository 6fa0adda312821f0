# task: rms_norm
# tiers: interpret gpu
# A persistent grid sized by the chip, rows in a loop, a buffer reused between calls.
import torch
import triton
import triton.language as tl


_SMS = {}


@triton.jit
def norm(x, w, y, rows, cols, s0, s1, eps, BLOCK: tl.constexpr):
    c = tl.arange(0, BLOCK)
    weight = tl.load(w + c, mask=c < cols, other=0.0).to(tl.float32)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        v = tl.load(x + row * s0 + c * s1, mask=c < cols, other=0.0).to(tl.float32)
        scale = tl.rsqrt(tl.sum(v * v, axis=0) / cols + eps)
        tl.store(y + row * cols + c, v * scale * weight, mask=c < cols)


def sms(device):
    if device not in _SMS:
        _SMS[device] = torch.cuda.get_device_properties(device).multi_processor_count
    return _SMS[device]


def rms_norm(x, weight, eps):
    rows, cols = x.shape
    y = torch.empty((rows, cols), dtype=x.dtype, device=x.device)
    grid = (min(rows, 8 * sms(x.device)),)
    norm[grid](x, weight, y, rows, cols, *x.stride(), eps, BLOCK=triton.next_power_of_2(cols), num_warps=8)
    return y
