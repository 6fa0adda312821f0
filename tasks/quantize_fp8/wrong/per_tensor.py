"""One scale for the whole tensor."""
import torch


def quantize_fp8(x):
    x = x.float()
    scale = (x.abs().amax().clamp(min=1e-12) / 448).expand(x.shape[0]).contiguous()
    return (x / scale[:, None]).to(torch.float8_e4m3fn), scale
