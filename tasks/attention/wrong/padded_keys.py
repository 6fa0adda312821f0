"""Pads the keys to a multiple of 32 with zeros and does not mask what it padded."""
import torch


def attention(q, k, v, causal, scale):
    g = q.shape[1] // k.shape[1]
    queries, keys = q.shape[2], k.shape[2]
    k, v = k.repeat_interleave(g, 1).float(), v.repeat_interleave(g, 1).float()
    more = -keys % 32
    k, v = (torch.nn.functional.pad(x, (0, 0, 0, more)) for x in (k, v))
    s = q.float() @ k.transpose(-1, -2) * scale
    if causal:
        seen = torch.ones(queries, keys + more, dtype=torch.bool, device=q.device).tril(keys - queries)
        s = s.masked_fill(~seen, float("-inf"))
    return (torch.softmax(s, -1) @ v).to(q.dtype)
