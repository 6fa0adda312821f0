"""Forgets the bias."""
import torch


def layer_norm(x, weight, bias, eps):
    return torch.nn.functional.layer_norm(x.float(), (x.shape[-1],), weight.float(), None, eps).to(x.dtype)
