"""Accumulates in bfloat16, 32 products at a time."""
import torch


def matmul(a, b):
    c = torch.zeros(a.shape[0], b.shape[1], dtype=torch.bfloat16, device=a.device)
    for start in range(0, a.shape[1], 32):
        c += (a[:, start : start + 32].float() @ b[start : start + 32].float()).bfloat16()
    return c.to(a.dtype)
