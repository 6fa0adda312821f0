"""What a runner may answer. Everything that comes from its side is parsed here before the judge looks at it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

_Name = Annotated[str, Field(max_length=500)]
_Size = Annotated[int, Field(ge=0, lt=1 << 48)]
_Microseconds = Annotated[float, Field(gt=0, lt=1e9, allow_inf_nan=False)]


class _Answer(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class OutputFrame(_Answer):
    """One returned value: a tensor with dtype, shape and place in the region, or only the name of its type."""

    type: _Name | None = None
    dtype: _Name | None = None
    shape: Annotated[list[_Size], Field(max_length=16)] = []
    offset: _Size | None = None


class Loaded(_Answer):
    kind: Literal["loaded"]


class Skipped(_Answer):
    kind: Literal["skipped"]
    reason: str


class Failed(_Answer):
    """The candidate raised. `stage` names the part of the funnel, `line` counts in its source from 1."""

    kind: Literal["failed"]
    stage: Literal["syntax", "import", "compile", "launch", "crash", "memory", "run"]
    error: str
    message: str
    line: int | None
    trace: str


class GpuKernel(_Answer):
    """A kernel, or another kind of work in parentheses, that ran on the GPU. `share` of the call's time, if measured."""

    name: _Name
    own: bool
    share: Annotated[float, Field(ge=0, le=1)] | None = None


class Done(_Answer):
    """One call: kernels launched by the language, torch operations seen with the most elements each touched, outputs, and
    what ran on the GPU."""

    kind: Literal["done"]
    launches: Annotated[list[_Name], Field(max_length=1000)]
    ops: Annotated[dict[_Name, int], Field(max_length=400)]
    outputs: Annotated[list[OutputFrame], Field(max_length=16)]
    kernels: Annotated[list[GpuKernel], Field(max_length=200)]


class Timed(Done):
    """Several timed calls; the outputs are the last one's."""

    kind: Literal["timed"]  # type: ignore[assignment]
    device_us: list[_Microseconds]
    end_to_end_us: list[_Microseconds]
    method: Literal["cuda_graph", "events"]
    why: _Name


_ANSWERS: dict[str, TypeAdapter[Any]] = {
    "load": TypeAdapter(Annotated[Loaded | Failed, Field(discriminator="kind")]),
    "case": TypeAdapter(Annotated[Done | Skipped | Failed, Field(discriminator="kind")]),
    "time": TypeAdapter(Annotated[Timed | Skipped | Failed, Field(discriminator="kind")]),
}


class Misshapen(Exception):
    """A frame that no honest runner sends in answer to such a message."""


def parse(question: str, frame: dict[str, Any]) -> Any:
    """The answer to a message of kind `question`. Raises Misshapen."""
    try:
        return _ANSWERS[question].validate_python(frame)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))[:100]
        raise Misshapen(f"a misshapen answer to {question!r}: {place} {first['msg']}"[:300]) from None
