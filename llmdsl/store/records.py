"""Records of a run: frozen, versioned, append-only. Whatever can be computed from them is computed, not stored."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from pydantic_core import PydanticSerializationError

from llmdsl.judge.verdict import Verdict
from llmdsl.models.base import Completion, Message, Sampling

RECORD_VERSION = 1
M = TypeVar("M", bound=BaseModel)


class Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Key(Record):
    """Which attempt a record is about. Samples count from 0, attempts from 1."""

    model: str
    dsl: str
    task: str
    sample: int
    attempt: int

    @property
    def slot(self) -> Slot:
        return Slot(self.model, self.dsl, self.task, self.sample)


class Slot(NamedTuple):
    """One sample: an independent draw for (model, DSL, task), made of one or more attempts."""

    model: str
    dsl: str
    task: str
    sample: int

    def key(self, attempt: int) -> Key:
        return Key(model=self.model, dsl=self.dsl, task=self.task, sample=self.sample, attempt=attempt)


class RunConfig(Record):
    """What makes two runs the same question. `llmdsl eval --resume` refuses a run whose config differs.

    `archs` is empty where each DSL's own were asked for. `sampling.seed` is that of sample 0; the
    provider asks for sample n with seed + n. `prompts_hash` covers every prompt of the run as it is sent cold, and the feedback template.
    """

    models: tuple[str, ...]
    dsls: tuple[str, ...]
    tasks: tuple[str, ...]
    samples: int = Field(ge=1)
    attempts: int = Field(ge=1)
    tier: str
    archs: tuple[str, ...]
    sampling: Sampling
    base_url: str | None = None
    context: str = "guide+example"
    prompts_hash: str
    task_versions: dict[str, int]
    judge_version: int

    def slots(self) -> list[Slot]:
        """Every sample of the run; tasks vary slowest, so that a run cut short has compared models on what it did."""
        return [
            Slot(model, dsl, task, sample)
            for task in self.tasks
            for sample in range(self.samples)
            for dsl in self.dsls
            for model in self.models
        ]


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
RECORD: TypeAdapter[CompletionRecord | FailureRecord | VerdictRecord] = TypeAdapter(AnyRecord)


def storable(value: M) -> M:
    """`value` with lone surrogates, which JSON can carry and UTF-8 cannot, replaced by U+FFFD in all its text."""
    try:
        value.model_dump_json()
        return value
    except PydanticSerializationError:
        return type(value).model_validate(_scrubbed(value.model_dump()))


def _scrubbed(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_scrubbed(name): _scrubbed(inner) for name, inner in value.items()}
    return [_scrubbed(inner) for inner in value] if isinstance(value, list | tuple) else value


def now() -> str:
    """The time as records hold it: ISO 8601, UTC, milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def environment() -> dict[str, Any]:
    """Python, platform and llmdsl versions, for the run folder."""
    import platform

    from llmdsl import __version__

    return {"llmdsl": __version__, "python": platform.python_version(), "platform": platform.platform()}
