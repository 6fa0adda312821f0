"""Overflows on large values: exp without subtracting the row's maximum."""
import torch


def softmax(x):
    e = torch.exp(x.float())
    return (e / e.sum(-1, keepdim=True)).to(x.dtype)
