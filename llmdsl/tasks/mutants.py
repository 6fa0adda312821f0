"""Generic wrong answers, made from a right one: what a task must reject before it judges anyone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from llmdsl.judge.correctness import Expected, compare

if TYPE_CHECKING:
    from llmdsl.tasks.meaning import Args, Meaning, Tensors
    from llmdsl.tasks.task import Case

_SMALLER = {
    torch.float32: torch.bfloat16,
    torch.float16: torch.float8_e4m3fn,
    torch.bfloat16: torch.float8_e4m3fn,
}


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


Mutant = Callable[[Situation], "Sequence[torch.Tensor | None] | None"]


def mutants(meaning: Meaning) -> dict[str, Callable[[Situation], Tensors | None]]:
    """name → answer to a situation, or None where the mutant means nothing there.

    Of several outputs one is wrong at a time: a bound that is too wide must not hide behind another output's.
    """

    def each(change: Callable[[torch.Tensor], torch.Tensor | None]) -> Mutant:
        return lambda s: [change(t) for t in s.good]

    found: dict[str, Mutant] = {
        "zeros": each(torch.zeros_like),
        "ones": each(torch.ones_like),
        "NaN": each(lambda t: torch.full_like(t, torch.nan) if t.is_floating_point() else None),
        "mean constant": each(lambda t: torch.full(t.shape, float(t.double().mean())).to(t.dtype)),
        "stale": lambda s: s.other,
        "half of it zero": each(_half),
        "last element left out": each(_without_last),
        "last row left out": each(_without_last_row),
        "sign flipped": each(lambda t: (-t.double()).to(t.dtype)),
        "rows permuted": each(_permuted),
        "low precision": lambda s: meaning.good(s.case, {name: _coarser(a) for name, a in s.args.items()}),
        "rounded result": each(lambda t: None if _coarser(t) is t else _coarser(t)),
        "strides ignored": lambda s: None if s.contiguous else meaning.good(s.case, _misread(s.args)),
        "right for shown shapes only": _shown_only(meaning),
    }
    for argument in meaning.task.arguments:
        if argument.type == "tensor":
            found[f"copy of {argument.name}"] = _copy_of(argument.name)
    outputs = meaning.task.outputs
    if len(outputs) == 1:
        return {name: _one_wrong(mutant, 0) for name, mutant in found.items()}
    return {f"{name} in {output.name}": _one_wrong(mutant, i)
            for name, mutant in found.items() for i, output in enumerate(outputs)}  # fmt: skip


def _one_wrong(mutant: Mutant, index: int) -> Callable[[Situation], Tensors | None]:
    """The right answer with the mutant's output of that index."""

    def answer(situation: Situation) -> Tensors | None:
        made = mutant(situation)
        if made is None or made[index] is None:
            return None
        return (*situation.good[:index], made[index], *situation.good[index + 1 :])

    return answer


def _shown_only(meaning: Meaning) -> Mutant:
    """Right for the shapes that a prompt may show, zeros for all others."""

    def shapes(args: Args) -> tuple[torch.Size, ...]:
        return tuple(a.shape for a in args.values() if isinstance(a, torch.Tensor))

    # Shapes are the same in every dtype, and on "meta" a bench case costs nothing.
    visible = {case.name: case for case in meaning.task.cases if not case.hidden}
    shown = {shapes(meaning.make_inputs(case, 0, "meta")) for case in visible.values()}
    return lambda s: s.good if shapes(s.args) in shown else [torch.zeros_like(t) for t in s.good]


def _copy_of(name: str) -> Mutant:
    """Every output that the argument broadcasts to is a copy of it."""

    def answer(situation: Situation) -> list[torch.Tensor | None]:
        source = situation.args[name]
        return [source.to(t.dtype).expand(t.shape).clone() if _broadcasts(source, t) else None
                for t in situation.good]  # fmt: skip

    return answer


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


def _coarser(value: Any) -> Any:
    """float32 rounded to bfloat16, 16 bits to float8: what a short cut through a smaller format keeps. All else as is."""
    if not isinstance(value, torch.Tensor) or value.dtype not in _SMALLER:
        return value
    small = _SMALLER[value.dtype]
    largest = torch.finfo(small).max  # float8_e4m3fn has no infinity to overflow to
    return value.clamp(-largest, largest).to(small).to(value.dtype)


def _misread(args: Args) -> Args:
    """Every tensor as a kernel sees it that takes its memory for contiguous."""

    def misread(a: Any) -> Any:
        if not isinstance(a, torch.Tensor) or a.is_contiguous():
            return a
        strides = torch.empty(a.shape, device="meta").stride()
        return torch.as_strided(a, a.shape, strides, a.storage_offset())

    return {name: misread(a) for name, a in args.items()}
