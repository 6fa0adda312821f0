import torch


def inputs(make, rows, cols, eps=1e-6):
    weight = make.tensor((cols,), values="normal", layout="contiguous", scale=0.25, shift=1.0)
    return {"x": make.tensor((rows, cols)), "weight": weight, "eps": eps}


def rms_norm(x, weight, eps):
    return torch.nn.functional.rms_norm(x, (x.shape[-1],), weight, eps)
