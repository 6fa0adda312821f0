"""Divides the variance by cols - 1."""
import torch


def layer_norm(x, weight, bias, eps):
    v = x.float()
    d = v - v.mean(-1, keepdim=True)
    var = d.square().sum(-1, keepdim=True) / max(1, x.shape[1] - 1)
    return (d * torch.rsqrt(var + eps) * weight.float() + bias.float()).to(x.dtype)
