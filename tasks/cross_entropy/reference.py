import torch


def inputs(make, rows, cols, ignored=0.0, ignore_index=-100):
    target = make.integers((rows,), 0, cols)
    share = make.integers((rows,), 0, 1000)
    target = torch.where(share < int(1000 * ignored), ignore_index, target)
    return {"logits": make.tensor((rows, cols)), "target": target, "ignore_index": ignore_index}


def cross_entropy(logits, target, ignore_index):
    return torch.nn.functional.cross_entropy(logits, target, reduction="none", ignore_index=ignore_index)


def eager(logits, target, ignore_index):
    return cross_entropy(logits.float(), target, ignore_index)


def magnitude(logits, target, ignore_index):
    kept = target != ignore_index
    top = logits.amax(-1).abs()
    picked = logits.gather(1, torch.where(kept, target, 0)[:, None])[:, 0].abs()
    return torch.where(kept, torch.logsumexp(logits, -1).abs() + top + picked + 1, 0.0)
