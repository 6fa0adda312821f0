"""Squares and sums in bfloat16."""
import torch


def rms_norm(x, weight, eps):
    v = x.bfloat16()
    r = torch.rsqrt(v.square().mean(-1, keepdim=True) + eps)
    return (v * r * weight.bfloat16()).to(x.dtype)
