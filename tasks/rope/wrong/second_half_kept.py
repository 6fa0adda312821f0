"""Leaves the second half as it was."""
import torch


def rope(x, cos, sin):
    a, b = x.float().chunk(2, -1)
    return torch.cat([a * cos - b * sin, b], -1).to(x.dtype)
