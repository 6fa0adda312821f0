"""Accumulates the denominator in bfloat16."""
import torch


def softmax(x):
    e = torch.exp((x.float() - x.float().amax(-1, keepdim=True)).bfloat16())
    return (e / e.sum(-1, keepdim=True, dtype=torch.bfloat16)).to(x.dtype)
