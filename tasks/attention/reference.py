import torch
from torch.nn.attention.bias import causal_lower_right


def inputs(make, batch, heads, kv_heads, queries, keys, head_dim, causal):
    values = make.case.values
    # `sharp`: scores of about +-50, so that a softmax without the maximum overflows and few keys matter.
    scale, values = (2.5, "normal") if values == "sharp" else (1.0, values)
    layout = make.case.layout

    def tensor(heads, length):
        if layout == "heads_last":  # (batch, length, heads, head_dim) in memory, as a projection leaves it
            made = make.tensor(
                (batch, length, heads, head_dim), values=values, layout="contiguous", scale=scale
            )
            return made.transpose(1, 2)
        return make.tensor((batch, heads, length, head_dim), values=values, layout=layout, scale=scale)

    return {"q": tensor(heads, queries), "k": tensor(kv_heads, keys), "v": tensor(kv_heads, keys),
            "causal": causal, "scale": head_dim**-0.5}  # fmt: skip


def _heads(q, k, v, causal, scale, combine):
    """combine(scores with -inf where masked, v) for every head; a head at a time, so that long ones fit in memory."""
    group = q.shape[1] // k.shape[1]
    queries, keys = q.shape[2], k.shape[2]
    seen = torch.ones(queries, keys, dtype=torch.bool, device=q.device)
    if causal:
        seen = seen.tril(keys - queries)
    outs = []
    for b in range(q.shape[0]):
        for h in range(q.shape[1]):
            scores = (q[b, h] @ k[b, h // group].T * scale).masked_fill(~seen, float("-inf"))
            outs.append(combine(scores, v[b, h // group]))
    return torch.stack(outs).view(q.shape)


def attention(q, k, v, causal, scale):
    return _heads(q, k, v, causal, scale, lambda scores, v: torch.softmax(scores, dim=-1) @ v)


def eager(q, k, v, causal, scale):
    # `is_causal` aligns the mask to the first key: the same thing for square scores only.
    mask = causal_lower_right(q.shape[2], k.shape[2]) if causal and q.shape[2] != k.shape[2] else None
    square = causal and mask is None
    return torch.nn.functional.scaled_dot_product_attention(
        q, k, v, attn_mask=mask, is_causal=square, scale=scale, enable_gqa=True
    )


def good(q, k, v, causal, scale):
    """What kernels do: unnormalised probabilities rounded to the input's dtype, one product, one division."""

    def combine(scores, v):
        p = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
        return (p.to(q.dtype).float() @ v) / p.sum(dim=-1, keepdim=True)

    return _heads(q.float(), k.float(), v.float(), causal, scale, combine).to(q.dtype)


def magnitude(q, k, v, causal, scale):
    # Independent roundings of the probabilities add up like a random walk, so the scale is the root of the sum of
    # squares of the terms, not the sum of their magnitudes.
    return _heads(
        q, k, v, causal, scale, lambda scores, v: (torch.softmax(scores, dim=-1).square() @ v.square()).sqrt()
    )
