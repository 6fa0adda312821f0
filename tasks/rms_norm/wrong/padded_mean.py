"""Divides by the block size instead of the number of columns."""
import torch


def rms_norm(x, weight, eps):
    v = x.float()
    block = 1 << (x.shape[1] - 1).bit_length() if x.shape[1] > 1 else 1
    return (v * torch.rsqrt(v.square().sum(-1, keepdim=True) / block + eps) * weight.float()).to(x.dtype)
