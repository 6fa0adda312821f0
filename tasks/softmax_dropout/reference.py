import math

import torch

_WORD = 0xFFFFFFFF  # int64 arithmetic with this mask is unsigned 32-bit arithmetic


def inputs(make, rows, cols, p):
    return {"x": make.tensor((rows, cols)), "p": p, "seed": make.integer(0, 2**31)}


def keep_mask(rows, cols, p, seed, device):
    h = torch.arange(rows * cols, device=device, dtype=torch.int64).reshape(rows, cols)
    h = (h + seed * 0x9E3779B9) & _WORD
    h = ((h ^ (h >> 16)) * 0x85EBCA6B) & _WORD
    h = ((h ^ (h >> 13)) * 0xC2B2AE35) & _WORD
    h = h ^ (h >> 16)
    return (h >> 1) >= math.floor(p * 2**31)


def softmax_dropout(x, p, seed):
    y = torch.softmax(x, dim=-1) / (1 - p)
    return torch.where(keep_mask(*x.shape, p, seed, x.device), y, 0.0)


def eager(x, p, seed):
    return torch.nn.functional.dropout(torch.softmax(x, dim=-1), p)  # the speed of torch's own generator


def magnitude(x, p, seed):
    # exp's relative error is the absolute error of its argument; a dropped element is exactly 0.
    y = softmax_dropout(x, p, seed)
    return y * (1 + (x - x.amax(dim=-1, keepdim=True)).abs())
