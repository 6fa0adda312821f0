"""Maps query heads to key heads by modulo instead of division."""
import torch


def _mask(q, k, causal):
    seen = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device)
    return seen.tril(k.shape[2] - q.shape[2]) if causal else seen


def attention(q, k, v, causal, scale):
    g = q.shape[1] // k.shape[1]
    k, v = k.repeat(1, g, 1, 1).float(), v.repeat(1, g, 1, 1).float()
    s = (q.float() @ k.transpose(-1, -2) * scale).masked_fill(~_mask(q, k, causal), float("-inf"))
    return (torch.softmax(s, -1) @ v).to(q.dtype)
