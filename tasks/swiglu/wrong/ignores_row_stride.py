"""Reads both operands as if they were contiguous."""
import torch


def swiglu(gate, up):
    def flat(x):
        storage = torch.as_strided(x, (x.untyped_storage().nbytes() // x.element_size() - x.storage_offset(),), (1,))
        return storage[: x.numel()].reshape(x.shape) if storage.numel() >= x.numel() else x

    return (torch.nn.functional.silu(flat(gate).float()) * flat(up).float()).to(gate.dtype)
