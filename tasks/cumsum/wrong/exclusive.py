"""Exclusive instead of inclusive."""
import torch


def cumsum(x):
    v = x.float()
    return (torch.cumsum(v, -1) - v).to(x.dtype)
