"""Reads b with a's strides."""
import torch


def vector_add(a, b):
    flat = torch.as_strided(b, (b.untyped_storage().nbytes() // b.element_size() - b.storage_offset(),), (1,), b.storage_offset())
    i = torch.arange(a.shape[0])[:, None] * a.stride(0) + torch.arange(a.shape[1])[None, :] * a.stride(1)
    return a + flat[i.clamp(max=flat.numel() - 1)]
