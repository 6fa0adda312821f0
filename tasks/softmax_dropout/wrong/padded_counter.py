"""Counts columns in the padded block instead of the matrix, as a kernel with row * BLOCK + col does."""
import torch


def softmax_dropout(x, p, seed):
    rows, cols = x.shape
    block = 1 << (cols - 1).bit_length() if cols > 1 else 2
    i, j = torch.arange(rows, device=x.device)[:, None], torch.arange(cols, device=x.device)[None, :]
    h = (i * block + j + seed * 0x9E3779B9) & 0xFFFFFFFF
    h = ((h ^ (h >> 16)) * 0x85EBCA6B) & 0xFFFFFFFF
    h = ((h ^ (h >> 13)) * 0xC2B2AE35) & 0xFFFFFFFF
    h = h ^ (h >> 16)
    y = (torch.softmax(x.float(), -1) / (1 - p)).to(x.dtype)
    return torch.where((h >> 1) >= int(p * 2**31), y, torch.zeros_like(y))
