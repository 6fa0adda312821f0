"""Sums down the columns."""
import torch


def cumsum(x):
    return torch.cumsum(x.float(), 0).to(x.dtype)
