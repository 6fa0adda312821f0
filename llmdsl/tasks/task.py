"""What a task is: one op, its cases, its work. The data half is `task.yaml`, the torch half `reference.py`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from llmdsl.tasks import formula

if TYPE_CHECKING:
    from llmdsl.tasks.meaning import Meaning

Param = bool | int | float | str

ITEMSIZE = {"float32": 4, "float16": 2, "bfloat16": 2, "float64": 8, "float8_e4m3fn": 1, "float8_e5m2": 1,
            "int64": 8, "int32": 4, "int16": 2, "int8": 1, "uint8": 1, "bool": 1}  # fmt: skip


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Argument(Frozen):
    """One argument of the entry function, in order."""

    name: str
    type: Literal["tensor", "int", "float", "bool"] = "tensor"
    shape: str = Field("", description="symbolic shape shown to the model, e.g. '(rows, cols)'; tensors only")
    dtype: str = Field(
        "input", description="'input' (the case's dtype) or a fixed one such as 'int64'; tensors only"
    )
    about: str = ""


class Output(Frozen):
    """One returned tensor, in order. Its shape follows from the reference.

    `units` is the bound on the error against float64, in error units (see `Tolerance`).
    """

    name: str
    shape: str = ""
    dtype: str = "input"
    units: float | None = None
    about: str = ""


class Tolerance(Frozen):
    """How far a right candidate may be from float64.

    Per element the error unit is `half_ulp(truth, output dtype) + u(compute) * magnitude`, with `magnitude` from
    the task's `reference.py` (default |truth|) and `u` the unit roundoff of the compute precision: float32, or
    the input dtype where a standard implementation rounds an intermediate to it (attention's probabilities).
    The judge measures how many units a good implementation makes on the very case, `level >= 1`, and accepts
    `units * level`.
    """

    units: float = 4.0
    compute: Literal["float32", "input"] = "float32"


class Work(Frozen):
    """Floating-point operations and bytes moved at least once, as formulas over the case's params.

    Formulas may use the params' names, `itemsize` (bytes of the case's dtype), + - * / // ** and min, max, ceil_div.
    """

    flops: str
    bytes: str


class Case(Frozen):
    """One shape, dtype and distribution of a task. `test` cases are for correctness, `bench` cases also timed."""

    name: str
    kind: Literal["test", "bench"]
    dtype: str
    params: dict[str, Param] = {}
    values: str = "normal"
    layout: str = "contiguous"
    hidden: bool = False
    source: str = Field("", description="bench cases: the named model the shape comes from")

    @property
    def id(self) -> str:
        return f"{self.name}-{self.dtype}"


class Task(Frozen):
    """A loaded task folder. Torch is imported only by `meaning()`."""

    name: str
    version: int = 1
    title: str
    group: str
    level: Literal["core", "standard", "hard"] = "core"
    entry: str
    description: str
    arguments: tuple[Argument, ...]
    outputs: tuple[Output, ...]
    tolerance: Tolerance = Tolerance()
    work: Work
    deterministic: bool = True
    timeout_s: float = Field(
        60.0, description="wall-clock limit for one candidate's compile and all test cases"
    )
    cases: tuple[Case, ...]
    folder: Path

    @property
    def test_cases(self) -> tuple[Case, ...]:
        return tuple(case for case in self.cases if case.kind == "test")

    @property
    def bench_cases(self) -> tuple[Case, ...]:
        return tuple(case for case in self.cases if case.kind == "bench")

    def flops(self, case: Case) -> float:
        """Floating-point operations of one call."""
        return formula.evaluate(self.work.flops, _names(case))

    def bytes(self, case: Case) -> float:
        """Bytes one call must read and write at least once."""
        return formula.evaluate(self.work.bytes, _names(case))

    def dtype_of(self, spec: Argument | Output, case: Case) -> str:
        return case.dtype if spec.dtype == "input" else spec.dtype

    def reference_source(self) -> str:
        """Text of `reference.py`."""
        return (self.folder / "reference.py").read_text()

    def meaning(self) -> Meaning:
        """The torch half: trusted code, run by the judge only."""
        from llmdsl.tasks.meaning import load_meaning

        return load_meaning(self)


def _names(case: Case) -> Mapping[str, Any]:
    return {**case.params, "itemsize": ITEMSIZE[case.dtype]}
