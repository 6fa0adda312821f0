"""Records of a run: frozen, versioned, append-only. Whatever can be computed from them is computed, not stored."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from llmdsl.judge.verdict import Verdict
from llmdsl.models.base import Completion, Message, Sampling

RECORD_VERSION = 1


class Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Key(Record):
    """Which attempt a record is about."""

    model: str
    dsl: str
    task: str
    sample: int
    attempt: int


class RunConfig(Record):
    """What makes two runs the same question. `llmdsl eval --resume` refuses a run whose config differs."""

    models: tuple[str, ...]
    dsls: tuple[str, ...]
    tasks: tuple[str, ...]
    samples: int
    attempts: int
    tier: str
    archs: tuple[str, ...]
    sampling: Sampling
    base_url: str | None = None
    context: str = "guide+example"
    prompts_hash: str
    task_versions: dict[str, int]
    judge_version: int


class CompletionRecord(Record):
    """A received answer, written before anything is done with it."""

    type: Literal["completion"] = "completion"
    version: int = RECORD_VERSION
    time: str  # ISO 8601, UTC
    key: Key
    messages: tuple[Message, ...]
    completion: Completion


class FailureRecord(Record):
    """A provider that gave no usable answer; asked again on resume."""

    type: Literal["failure"] = "failure"
    version: int = RECORD_VERSION
    time: str
    key: Key
    kind: str
    message: str
    retries: int = 0


class VerdictRecord(Record):
    """The judge's word on an attempt. `source` is the candidate, None where no code was found."""

    type: Literal["verdict"] = "verdict"
    version: int = RECORD_VERSION
    time: str
    key: Key
    source: str | None
    verdict: Verdict


AnyRecord = Annotated[CompletionRecord | FailureRecord | VerdictRecord, Field(discriminator="type")]


def environment() -> dict[str, Any]:
    """Python, platform and llmdsl versions, for the run folder."""
    import platform

    from llmdsl import __version__

    return {"llmdsl": __version__, "python": platform.python_version(), "platform": platform.platform()}
