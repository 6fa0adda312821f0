"""Takes the sigmoid in bfloat16."""
import torch


def swiglu(gate, up):
    return (gate.float() * torch.sigmoid(gate.bfloat16()).float() * up.float()).to(gate.dtype)
