"""The torch half of a task: `reference.py`, loaded into the judge. Trusted code."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch

from llmdsl.errors import InvalidTask
from llmdsl.tasks.inputs import InputMaker

if TYPE_CHECKING:
    from llmdsl.tasks.task import Case, Task

Args = dict[str, Any]
Tensors = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Meaning:
    """What `reference.py` defines.

    `inputs(make, **params)` returns the arguments by name, made with the `InputMaker`;
    the function named as the task's entry takes them in order and is the op's meaning in PyTorch, generic in
    dtype: called with float64 tensors it is the truth, with float32 tensors a good implementation.
    `magnitude(*args)` (optional, same outputs) is the sum of the absolute values of the terms each output element
    is made of, in float64; |truth| where it is missing.
    `good(*args)` (optional) is a standard implementation in the case's dtype, where the float32 one is not: it
    gets the raw arguments. `eager(*args)` (optional) is what a PyTorch user would write, where the entry is not.
    """

    task: Task
    module: ModuleType

    def make_inputs(self, case: Case, seed: int, device: str = "cpu") -> Args:
        """Arguments of one call, in the entry's order. Deterministic in (case, seed, device kind)."""
        made = self.module.inputs(InputMaker(case, seed, device), **case.params)
        names = [argument.name for argument in self.task.arguments]
        if sorted(made) != sorted(names):
            raise InvalidTask(
                f"{self.task.name}: inputs() returned {sorted(made)}, task.yaml names {sorted(names)}."
            )
        return {name: made[name] for name in names}

    def truth(self, args: Args) -> Tensors:
        """The op in float64."""
        return _outputs(self._entry(*_cast(args, torch.float64)))

    def magnitude(self, args: Args, truth: Tensors) -> Tensors:
        """Scale of each output element's terms, in float64; same shapes as the truth."""
        if not hasattr(self.module, "magnitude"):
            return tuple(t.abs() for t in truth)
        return tuple(m.double() for m in _outputs(self.module.magnitude(*_cast(args, torch.float64))))

    def good(self, case: Case, args: Args) -> Tensors:
        """A good implementation's answer: float32 arithmetic rounded to the output's dtype, or the task's own `good`."""
        if hasattr(self.module, "good"):
            return _outputs(self.module.good(*args.values()))
        made = _outputs(self._entry(*_cast(args, torch.float32)))
        return tuple(
            t.to(getattr(torch, self.task.dtype_of(o, case)))
            for t, o in zip(made, self.task.outputs, strict=True)
        )

    def eager(self, args: Args) -> Tensors:
        """The op as plain PyTorch in the arguments' own dtype, the speed baseline: the task's `eager` or its entry."""
        return _outputs(getattr(self.module, "eager", self._entry)(*args.values()))

    @property
    def _entry(self) -> Callable[..., Any]:
        return getattr(self.module, self.task.entry)


def load_meaning(task: Task) -> Meaning:
    """The task with its `reference.py`, imported once."""
    module = _import(task.folder / "reference.py")
    for needed in ("inputs", task.entry):
        if not hasattr(module, needed):
            raise InvalidTask(
                f"{task.folder / 'reference.py'} defines no function `{needed}`. "
                f"Add it, then run `llmdsl tasks check {task.name}`."
            )
    return Meaning(task, module)


@cache
def _import(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"llmdsl_task_{path.parent.name}", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise InvalidTask(
            f"{path} cannot be imported ({error!r}). Fix it, then run `llmdsl tasks check {path.parent.name}`."
        ) from error
    return module


def _cast(args: Args, dtype: torch.dtype) -> list[Any]:
    return [
        a.to(dtype) if isinstance(a, torch.Tensor) and a.is_floating_point() else a for a in args.values()
    ]


def _outputs(value: Any) -> Tensors:
    return (value,) if isinstance(value, torch.Tensor) else tuple(value)
