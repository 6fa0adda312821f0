"""Rounds the scores to bfloat16 before the softmax."""
import torch


def _mask(q, k, causal):
    seen = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device)
    return seen.tril(k.shape[2] - q.shape[2]) if causal else seen


def attention(q, k, v, causal, scale):
    g = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(g, 1).float(), v.repeat_interleave(g, 1).float()
    s = (q.float() @ k.transpose(-1, -2) * scale).masked_fill(~_mask(q, k, causal), float("-inf"))
    return (torch.softmax(s.bfloat16().float(), -1) @ v).to(q.dtype)
