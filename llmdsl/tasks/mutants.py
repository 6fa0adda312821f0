"""Generic wrong answers, made from a right one: what a task must reject before it judges anyone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from llmdsl.judge.correctness import Expected, compare

if TYPE_CHECKING:
    from llmdsl.tasks.meaning import Args, Meaning, Tensors
    from llmdsl.tasks.task import Case


@dataclass(frozen=True)
class Situation:
    """One test case with its inputs and what the judge expects. `other` is the right answer to other inputs."""

    case: Case
    args: Args
    expected: tuple[Expected, ...]
    good: Tensors
    other: Tensors

    @property
    def contiguous(self) -> bool:
        return all(a.is_contiguous() for a in self.args.values() if isinstance(a, torch.Tensor))

    def error(self, answer: Tensors) -> float:
        """Error in units of the bound; infinite where the judge rejects for another reason, 0 for a right answer."""
        if len(answer) != len(self.expected):
            return float("inf")
        found = [compare(e, a) for e, a in zip(self.expected, answer, strict=True)]
        if all(each.passed for each in found):
            return min(1.0, max(each.error for each in found))
        return max(
            float("inf") if each.error != each.error else each.error for each in found if not each.passed
        )


def mutants(meaning: Meaning) -> dict[str, Callable[[Situation], Any]]:
    """name → answer to a situation, or None where the mutant means nothing there (or would be right)."""

    def each(change: Callable[[torch.Tensor], torch.Tensor | None]) -> Callable[[Situation], Any]:
        def answer(s: Situation) -> Any:
            made = [change(t) for t in s.good]
            if all(m is None for m in made):
                return None
            return tuple(g if m is None else m for g, m in zip(s.good, made, strict=True))

        return answer

    return {
        "zeros": each(torch.zeros_like),
        "ones": each(torch.ones_like),
        "NaN": each(lambda t: torch.full_like(t, torch.nan) if t.is_floating_point() else None),
        "mean constant": each(lambda t: torch.full(t.shape, float(t.double().mean())).to(t.dtype)),
        "copy of an input": _copy,
        "stale": lambda s: s.other,
        "half of it zero": each(_half),
        "last element left out": each(_without_last),
        "last row left out": each(_without_last_row),
        "sign flipped": each(lambda t: (-t.double()).to(t.dtype)),
        "rows permuted": each(_permuted),
        "low precision": lambda s: meaning.good(s.case, _coarser(s.args)),
        "strides ignored": lambda s: None if s.contiguous else meaning.good(s.case, _misread(s.args)),
    }


def _copy(situation: Situation) -> Any:
    """Every output filled from the first floating-point input that broadcasts to it."""
    tensors = [a for a in situation.args.values() if isinstance(a, torch.Tensor) and a.is_floating_point()]
    made = []
    for good in situation.good:
        fitting = [t for t in tensors if _broadcasts(t, good)]
        made.append(fitting[0].to(good.dtype).expand(good.shape).clone() if fitting else None)
    return None if any(each is None for each in made) else tuple(made)


def _broadcasts(tensor: torch.Tensor, to: torch.Tensor) -> bool:
    try:
        return torch.broadcast_shapes(tensor.shape, to.shape) == to.shape
    except RuntimeError:
        return False


def _half(t: torch.Tensor) -> torch.Tensor:
    flat = t.contiguous().reshape(-1).clone()
    flat[flat.numel() // 2 :] = 0
    return flat.view(t.shape)


def _without_last(t: torch.Tensor) -> torch.Tensor:
    flat = t.contiguous().reshape(-1).clone()
    flat[-1:] = 0
    return flat.view(t.shape)


def _without_last_row(t: torch.Tensor) -> torch.Tensor | None:
    if t.dim() < 2:
        return None
    made = t.clone()
    made[..., -1, :] = 0
    return made


def _permuted(t: torch.Tensor) -> torch.Tensor | None:
    rows = t.dim() - 2 if t.dim() >= 2 else 0
    return None if t.dim() == 0 or t.shape[rows] < 2 else t.roll(1, rows)


def _coarser(args: Args) -> Args:
    """float32 inputs rounded to bfloat16, 16-bit ones to float8: what a short cut through a smaller format does."""

    def coarse(a: Any) -> Any:
        if not isinstance(a, torch.Tensor) or not a.is_floating_point():
            return a
        small = torch.bfloat16 if a.dtype == torch.float32 else torch.float8_e4m3fn
        if small is torch.float8_e4m3fn:
            largest = torch.finfo(small).max
            return a.float().clamp(-largest, largest).to(small).to(a.dtype)
        return a.to(small).to(a.dtype)

    return {name: coarse(a) for name, a in args.items()}


def _misread(args: Args) -> Args:
    """Every tensor as a kernel sees it that takes its memory for contiguous."""

    def misread(a: Any) -> Any:
        if not isinstance(a, torch.Tensor) or a.is_contiguous():
            return a
        strides = torch.empty(a.shape, device="meta").stride()
        return torch.as_strided(a, a.shape, strides, a.storage_offset())

    return {name: misread(a) for name, a in args.items()}
