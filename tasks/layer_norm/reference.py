import torch


def inputs(make, rows, cols, eps=1e-5, shift=0.0):
    weight = make.tensor((cols,), values="normal", layout="contiguous", scale=0.25, shift=1.0)
    bias = make.tensor((cols,), values="normal", layout="contiguous", scale=0.5)
    return {"x": make.tensor((rows, cols), shift=shift), "weight": weight, "bias": bias, "eps": eps}


def layer_norm(x, weight, bias, eps):
    return torch.nn.functional.layer_norm(x, (x.shape[-1],), weight, bias, eps)


def magnitude(x, weight, bias, eps):
    # The mean is rounded at the scale of its terms, not of itself: it may be 0 among large elements.
    terms = x.abs().mean(-1, keepdim=True)
    spread = torch.rsqrt(x.var(-1, correction=0, keepdim=True) + eps)
    return (x.abs() + terms) * spread * weight.abs() + bias.abs()
