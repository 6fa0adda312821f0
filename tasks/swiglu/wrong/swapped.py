"""Activates the wrong half."""
import torch


def swiglu(gate, up):
    return (torch.nn.functional.silu(up.float()) * gate.float()).to(gate.dtype)
