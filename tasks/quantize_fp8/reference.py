import torch


def inputs(make, rows, cols, zero_rows=0):
    x = make.tensor((rows, cols))
    x[:zero_rows] = 0
    return {"x": x}


def quantize_fp8(x):
    # Not rounded to float8 here: the judge rounds the truth itself, and this one is generic in dtype.
    scale = x.abs().amax(dim=-1).clamp(min=1e-12) / 448
    return (x / scale[:, None]).clamp(-448, 448), scale


def eager(x):
    q, scale = quantize_fp8(x.float())
    return q.to(torch.float8_e4m3fn), scale
