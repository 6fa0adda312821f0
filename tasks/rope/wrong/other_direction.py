"""Rotates the other way round."""
import torch


def rope(x, cos, sin):
    a, b = x.float().chunk(2, -1)
    return torch.cat([a * cos + b * sin, b * cos - a * sin], -1).to(x.dtype)
