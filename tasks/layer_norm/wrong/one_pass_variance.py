"""E[x^2] - E[x]^2 in float32: cancels where the mean is large."""
import torch


def layer_norm(x, weight, bias, eps):
    v = x.float()
    mean = v.mean(-1, keepdim=True)
    var = (v.square().mean(-1, keepdim=True) - mean.square()).clamp(min=0)
    return ((v - mean) * torch.rsqrt(var + eps) * weight.float() + bias.float()).to(x.dtype)
