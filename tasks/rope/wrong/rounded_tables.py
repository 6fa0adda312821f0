"""Rounds the tables to the input's dtype (to bfloat16 for float32 inputs)."""
import torch


def rope(x, cos, sin):
    low = torch.bfloat16 if x.dtype == torch.float32 else x.dtype
    cos, sin = cos.to(low).float(), sin.to(low).float()
    a, b = x.float().chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1).to(x.dtype)
