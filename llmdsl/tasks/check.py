"""Is a task fit to judge by? Planted wrong answers and generic mutants must fail it, a good answer must pass."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from llmdsl.errors import InvalidTask
from llmdsl.judge.correctness import expect
from llmdsl.tasks.mutants import Situation, mutants

if TYPE_CHECKING:
    from llmdsl.tasks.meaning import Args, Meaning
    from llmdsl.tasks.task import Case, Task

_SEEDS = (1, 2, 3)
_LEAST_CASES, _LEAST_DTYPES = 6, 2
# Of magnitude one or less; all others (`large`, `mixed`, `spiky`, a task's own) are larger.
_PLAIN = ("normal", "small", "structured")


@dataclass
class Check:
    """What was found of one task. `margin` is the smallest error, in units of its bound, of a rejected answer's worst
    case: 1 would have been accepted. `good` is the largest of a good answer: above 1 it would have been rejected."""

    task: str
    problems: list[str] = field(default_factory=list)
    margin: float = float("inf")
    margin_of: str = ""
    good: float = 0.0
    answers: int = 0

    @property
    def passed(self) -> bool:
        return not self.problems


def check_task(task: Task) -> Check:
    """Everything that a task must be before it judges anyone. Raises InvalidTask where it cannot even be run."""
    check = Check(task.name)
    _shape_of(task, check)
    meaning = task.meaning()
    situations = _situations(meaning, check)
    if situations is None:
        return check
    wrongs = _planted(task)
    if not wrongs:
        check.problems.append("has no planted wrong answers: add at least one file to wrong/")
    for name, function in wrongs.items():
        errors = [_planted_error(each, function) for each in situations]
        _judge(check, f"planted wrong/{name}.py", errors)
    for name, mutant in mutants(meaning).items():
        for dtype in dict.fromkeys(case.dtype for case in task.test_cases):
            errors = [_rejection(each, mutant(each)) for each in situations if each.case.dtype == dtype]
            _judge(check, f"mutant {name}, {dtype}", [error for error in errors if error is not None])
    return check


def _judge(check: Check, answer: str, errors: list[float | None]) -> None:
    """A wrong answer's errors over its cases: one rejection is enough. No errors: it says nothing about this task."""
    worst = max((error for error in errors if error is not None), default=None)
    if worst is None:
        return
    check.answers += 1
    if worst <= 1:
        check.problems.append(f"{answer}: accepted on all {len(errors)} cases")
    elif worst < check.margin:
        check.margin, check.margin_of = worst, answer


def _rejection(situation: Situation, made: Any) -> float | None:
    """Error of what an answer returned; None where the answer means nothing in this situation."""
    if made is None:
        return None
    return situation.error((made,) if isinstance(made, torch.Tensor) else tuple(made))


def _planted_error(situation: Situation, function: Callable[..., Any]) -> float | None:
    try:
        return _rejection(situation, function(*_clones(situation.args)))
    except Exception:
        return float("inf")  # a candidate that raises is rejected as a crash


def _shape_of(task: Task, check: Check) -> None:
    """Its cases are many and various enough, and its formulas say something."""
    tests = task.test_cases
    wanted = {
        f"fewer than {_LEAST_CASES} test cases": len(tests) >= _LEAST_CASES,
        f"fewer than {_LEAST_DTYPES} dtypes in its test cases": len({c.dtype for c in tests}) >= _LEAST_DTYPES,
        "no test case whose layout is not contiguous": any(c.layout != "contiguous" for c in tests),
        "no test case with larger values than normal": any(c.values not in _PLAIN for c in tests),
        "no hidden test case": any(c.hidden for c in tests),
        "no bench case": bool(task.bench_cases),
    }  # fmt: skip
    check.problems += [f"has {what}" for what, fine in wanted.items() if not fine]
    check.problems += [f"bench case {c.id} names no source" for c in task.bench_cases if not c.source]
    for case in task.cases:
        for name, formula in (("flops", task.flops), ("bytes", task.bytes)):
            try:
                value = formula(case)
            except (InvalidTask, ArithmeticError, TypeError) as error:
                check.problems.append(f"work.{name} of case {case.id}: {error}")
                continue
            if not 0 < value < math.inf:
                check.problems.append(f"work.{name} of case {case.id} is {value}, not positive")


def _situations(meaning: Meaning, check: Check) -> list[Situation] | None:
    """The test cases, made, and what is to be seen of their tensors only. None where a case cannot be made."""
    found, broken = [], False
    for case in meaning.task.cases:
        try:
            if case.kind == "test":
                found.append(_situation(meaning, case, check))
            meaning.make_inputs(
                case, 0, "meta"
            )  # shapes alone: a bench case costs nothing, the compile tier needs it
        except Exception as error:
            broken = True
            check.problems.append(f"case {case.id}: reference.py fails with {type(error).__name__}: {error}")
    if broken:
        return None
    tensors = [a for each in found for a in each.args.values() if isinstance(a, torch.Tensor)]
    if not any(size > 1 and size % 2 for tensor in tensors for size in tensor.shape):
        check.problems.append("has no test case of an odd size")
    # A layout in task.yaml that reference.py does not pass on tests nothing.
    if any(each.case.layout != "contiguous" for each in found) and all(t.is_contiguous() for t in tensors):
        check.problems.append("makes contiguous inputs for every layout")
    return found


def _situation(meaning: Meaning, case: Case, check: Check) -> Situation:
    """Makes a case for every seed, holds the good answer against it; the first seed's is what mutants are tried on."""
    made = []
    for seed in _SEEDS:
        args = meaning.make_inputs(case, seed)
        if not _same(args, meaning.make_inputs(case, seed)):
            check.problems.append(f"case {case.id}: inputs of one seed differ from call to call")
        situation = Situation(case, args, expect(meaning, case, args), meaning.good(case, args), ())
        error = situation.error(situation.good)
        check.good = max(check.good, error)
        if error > 1:
            check.problems.append(
                f"case {case.id}: the good answer is rejected, error {error:.3g} of its bound"
            )
        made.append(situation)
    first, second = made[:2]
    if case.values != "structured" and _same(first.args, second.args):
        check.problems.append(f"case {case.id}: inputs are the same for every seed")
    return Situation(case, first.args, first.expected, first.good, second.good)


def _same(one: Args, other: Args) -> bool:
    pairs = zip(one.values(), other.values(), strict=True)
    return all(torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b for a, b in pairs)


def _clones(args: Args) -> Iterator[Any]:
    """Copies with the same strides and offset (`clone` would pack them): a planted answer may change its inputs."""
    for a in args.values():
        if isinstance(a, torch.Tensor):
            whole = torch.as_strided(a, (a.untyped_storage().nbytes() // a.itemsize,), (1,), 0).clone()
            yield torch.as_strided(whole, a.shape, a.stride(), a.storage_offset())
        else:
            yield a


def _planted(task: Task) -> dict[str, Callable[..., Any]]:
    """The functions of `wrong/*.py`, trusted plain PyTorch named as the task's entry."""
    found = {}
    for path in sorted((task.folder / "wrong").glob("*.py")):
        found[path.stem] = _function(path, task.entry)
    return found


def _function(path: Path, name: str) -> Callable[..., Any]:
    namespace: dict[str, Any] = {"__name__": f"llmdsl_wrong_{path.stem}"}
    try:
        exec(compile(path.read_text(), str(path), "exec"), namespace)
        return namespace[name]
    except Exception as error:
        raise InvalidTask(
            f"{path} defines no usable function `{name}` ({error!r}). Fix it, then run "
            f"`llmdsl tasks check {path.parent.parent.name}`."
        ) from error
