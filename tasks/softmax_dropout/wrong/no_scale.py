"""Forgets the factor 1 / (1 - p)."""
import torch


def softmax_dropout(x, p, seed):
    h = (torch.arange(x.numel(), device=x.device).reshape(x.shape) + seed * 0x9E3779B9) & 0xFFFFFFFF
    h = ((h ^ (h >> 16)) * 0x85EBCA6B) & 0xFFFFFFFF
    h = ((h ^ (h >> 13)) * 0xC2B2AE35) & 0xFFFFFFFF
    h = h ^ (h >> 16)
    y = torch.softmax(x.float(), -1).to(x.dtype)
    return torch.where((h >> 1) >= int(p * 2**31), y, torch.zeros_like(y))
