"""What a model is to llmdsl: something that answers messages. One module per provider implements `Model`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict

from llmdsl.errors import LlmdslError


class Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Message(Value):
    role: Literal["system", "user", "assistant"]
    content: str


class Sampling(Value):
    """Sampling settings; None leaves the provider's default. `max_tokens` bounds the answer, reasoning included."""

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int = 8192
    seed: int | None = None
    reasoning_effort: str | None = None


class Request(Value):
    """One question to a model. The keys say which attempt it is for; scripted models answer by them."""

    messages: tuple[Message, ...]
    sampling: Sampling = Sampling()
    task: str
    dsl: str
    sample: int = 0
    attempt: int = 1


class Usage(Value):
    """Tokens of one answer. `input` includes those read from and written to a cache, `output` reasoning ones."""

    input: int = 0
    output: int = 0
    cached_input: int = 0
    reasoning: int = 0
    cache_write: int = 0


class Completion(Value):
    """One answer as it was served."""

    text: str
    finish_reason: str = "stop"  # "stop", "length", or the provider's own word
    served_model: str
    usage: Usage = Usage()
    seconds: float = 0.0
    retries: int = 0


HOPELESS = frozenset({"auth", "quota", "not_found"})
"""Kinds of ModelError after which every further request to the same model would fail alike."""


class ModelError(LlmdslError):
    """A provider gave no usable answer within the bounded retries. `kind` is what the record keeps of it.

    Kinds: auth, quota, not_found, bad_request, rate_limited, server_error, timeout, connection, malformed; and of
    models that look answers up: no_reference, not_recorded.
    """

    exit_code = 4

    def __init__(self, kind: str, message: str, *, retries: int = 0):
        super().__init__(message)
        self.kind, self.retries = kind, retries


@dataclass(frozen=True)
class Options:
    """What a provider is given beside the name of its model. `timeout_s` bounds one try of one request."""

    base_url: str | None = None
    timeout_s: float = 600.0


@runtime_checkable
class Model(Protocol):
    """`name` is the full `provider/name` it was asked for as. `complete` raises ModelError, never anything else."""

    name: str

    async def complete(self, request: Request) -> Completion: ...

    async def close(self) -> None: ...
