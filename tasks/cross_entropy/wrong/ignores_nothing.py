"""Does not know ignore_index."""
import torch


def cross_entropy(logits, target, ignore_index):
    v = logits.float()
    return torch.logsumexp(v, -1) - v.gather(1, target.clamp(0, v.shape[1] - 1)[:, None])[:, 0]
