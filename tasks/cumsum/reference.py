import torch


def inputs(make, rows, cols, shift=0.0):
    return {"x": make.tensor((rows, cols), shift=shift)}


def cumsum(x):
    return torch.cumsum(x, dim=-1)


def magnitude(x):
    return torch.cumsum(x.abs(), dim=-1)
