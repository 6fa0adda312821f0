"""Drops before the softmax: the kept elements are normalised over the kept ones only."""
import torch


def softmax_dropout(x, p, seed):
    h = (torch.arange(x.numel(), device=x.device).reshape(x.shape) + seed * 0x9E3779B9) & 0xFFFFFFFF
    h = ((h ^ (h >> 16)) * 0x85EBCA6B) & 0xFFFFFFFF
    h = ((h ^ (h >> 13)) * 0xC2B2AE35) & 0xFFFFFFFF
    h = h ^ (h >> 16)
    keep = (h >> 1) >= int(p * 2**31)
    y = torch.softmax(x.float().masked_fill(~keep, float("-inf")), -1).nan_to_num(0)
    return y.to(x.dtype)
