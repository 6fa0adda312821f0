import torch


def inputs(make, batch, heads, positions, head_dim):
    if make.case.layout == "heads_last":
        # (batch, positions, heads, head_dim) in memory, as a projection leaves it
        x = make.tensor((batch, positions, heads, head_dim), layout="contiguous").transpose(1, 2)
    else:
        x = make.tensor((batch, heads, positions, head_dim))
    even = torch.arange(0, head_dim, 2, device=make.device, dtype=torch.float64)
    frequency = 500000.0 ** (-even / head_dim)
    start = make.integer(0, 1000)  # a decode step's tables do not start at position 0
    angle = (start + torch.arange(positions, device=make.device, dtype=torch.float64))[:, None] * frequency
    return {"x": x, "cos": angle.cos().float(), "sin": angle.sin().float()}


def rope(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


def eager(x, cos, sin):
    cos, sin = cos.to(x.dtype), sin.to(x.dtype)  # as the models' own code does
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


def magnitude(x, cos, sin):
    a, b = x.abs().chunk(2, dim=-1)
    return torch.cat([a * cos.abs() + b * sin.abs(), b * cos.abs() + a * sin.abs()], dim=-1)
