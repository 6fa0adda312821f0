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
    return (torch.nn.functional.silu(gate) * up).abs() * (1 + gate.abs() * torch.sigmoid(-gate))
