"""Rotates neighbouring pairs (GPT-J) instead of halves."""
import torch


def rope(x, cos, sin):
    a, b = x.float()[..., ::2], x.float()[..., 1::2]
    return torch.stack([a * cos - b * sin, b * cos + a * sin], -1).flatten(-2).to(x.dtype)
