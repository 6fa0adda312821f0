"""Subtracts the mean, as a layer norm does."""
import torch


def rms_norm(x, weight, eps):
    v = x.float()
    v = v - v.mean(-1, keepdim=True)
    return (v * torch.rsqrt(v.square().mean(-1, keepdim=True) + eps) * weight.float()).to(x.dtype)
