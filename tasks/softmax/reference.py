import torch


def inputs(make, rows, cols):
    return {"x": make.tensor((rows, cols))}


def softmax(x):
    return torch.softmax(x, dim=-1)


def magnitude(x):
    # exp's relative error is the absolute error of its argument, so it grows with the distance to the maximum.
    y = torch.softmax(x, dim=-1)
    return y * (1 + (x - x.amax(dim=-1, keepdim=True)).abs())
