"""Rounds float32 operands to TF32 (10 bits of fraction), as tensor cores do by default."""
import torch


def matmul(a, b):
    def tf32(x):
        bits = x.float().contiguous().view(torch.int32)
        return ((bits + 0x1000) & -0x2000).view(torch.float32)

    return (tf32(a) @ tf32(b)).to(a.dtype)
