"""Forgets the carry between blocks of 128."""
import torch


def cumsum(x):
    return torch.cat([torch.cumsum(p.float(), -1) for p in x.split(128, -1)], -1).to(x.dtype)
