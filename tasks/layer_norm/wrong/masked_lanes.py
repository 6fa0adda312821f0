"""Lets the padding of a power-of-two block into the variance, as a kernel that forgets the second mask does."""
import torch


def layer_norm(x, weight, bias, eps):
    v = x.float()
    cols = x.shape[1]
    block = 1 << (cols - 1).bit_length() if cols > 1 else 1
    mean = v.mean(-1, keepdim=True)
    var = ((v - mean).square().sum(-1, keepdim=True) + (block - cols) * mean.square()) / cols
    return ((v - mean) * torch.rsqrt(var + eps) * weight.float() + bias.float()).to(x.dtype)
