"""Uses GELU instead of SiLU."""
import torch


def swiglu(gate, up):
    return (torch.nn.functional.gelu(gate.float()) * up.float()).to(gate.dtype)
