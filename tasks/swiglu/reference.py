import torch


def inputs(make, rows, cols, halves=False):
    if halves:
        both = make.tensor((rows, 2 * cols))
        return {"gate": both[:, :cols], "up": both[:, cols:]}
    return {"gate": make.tensor((rows, cols)), "up": make.tensor((rows, cols))}


def swiglu(gate, up):
    return torch.nn.functional.silu(gate) * up


def magnitude(gate, up):
    # exp's relative error is the absolute error of its argument; for large negative gates exp(-v) carries the result.
    y = (torch.nn.functional.silu(gate) * up).abs()
    scale = y * (1 + gate.abs() * torch.sigmoid(-gate))
    # Where the sigmoid is below float32's smallest normal, exp(-v) overflows or the quotient is flushed: 0 is right
    # too. Without this the reference's own 0 would count as its error and loosen the bound of the whole case.
    return torch.where(torch.sigmoid(gate) < 2.0**-126, y * 2.0**24, scale)
