import torch


def inputs(make, rows, cols, ignored, ignore_index=-100):
    target = make.integers((rows,), 0, cols)
    # Exactly that many, at random places: the bytes that a kernel must read depend on it.
    rank = make.integers((rows,), 0, 2**62).argsort().argsort()
    target = torch.where(rank < ignored, ignore_index, target)
    return {"logits": make.tensor((rows, cols)), "target": target, "ignore_index": ignore_index}


def cross_entropy(logits, target, ignore_index):
    return torch.nn.functional.cross_entropy(logits, target, reduction="none", ignore_index=ignore_index)


def eager(logits, target, ignore_index):
    return cross_entropy(logits.float(), target, ignore_index)


def magnitude(logits, target, ignore_index):
    # max + log(sum) - logit: each is rounded on its own; the 1 is for the error of the sum, relative there.
    kept = target != ignore_index
    top = logits.amax(-1).abs()
    picked = logits.gather(1, torch.where(kept, target, 0)[:, None])[:, 0].abs()
    return torch.where(kept, torch.logsumexp(logits, -1).abs() + top + picked + 1, 0.0)
