"""Takes exp without subtracting the maximum."""
import torch


def cross_entropy(logits, target, ignore_index):
    v = logits.float()
    kept = target != ignore_index
    loss = v.exp().sum(-1).log() - v.gather(1, torch.where(kept, target, 0)[:, None])[:, 0]
    return torch.where(kept, loss, 0.0)
