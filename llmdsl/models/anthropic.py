"""Anthropic's Messages API, streamed: long answers outlast a plain request's connection."""

from __future__ import annotations

import os
import re
import time
from typing import Any

from llmdsl.errors import InvalidModel, MissingDependency
from llmdsl.models.base import Completion, Options, Request, Sampling, Usage
from llmdsl.models.faults import explain
from llmdsl.models.retry import Fault, Policy, with_retries

_REASONS = {"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length",
            "model_context_window_exceeded": "length"}  # fmt: skip
# Claude 3 to 4.5 think within a budget of tokens; all later ones are told an effort and refuse a budget.
_BUDGETED = re.compile(r"claude-(3.*|(opus|sonnet|haiku)-4(-[015])?(-\d{8}|-latest)?)")
# Their budget by effort, as a share of the answer's token limit; the API wants at least 1024, below the limit.
_THINKING = {"low": 0.2, "medium": 0.5, "high": 0.8}
_LEAST_THINKING = 1024


def anthropic(name: str, options: Options) -> AnthropicModel:
    """`anthropic/NAME`: the key from ANTHROPIC_API_KEY, the address from `base_url`, else ANTHROPIC_BASE_URL."""
    if not name:
        raise InvalidModel(
            "anthropic/ needs the name of a model: write anthropic/NAME, e.g. anthropic/claude-opus-4-5"
        )
    key = os.environ.get("ANTHROPIC_API_KEY")
    if not key:
        raise InvalidModel(f"anthropic/{name} needs a key: export ANTHROPIC_API_KEY=…")
    policy = Policy(timeout_s=options.timeout_s)
    return AnthropicModel(f"anthropic/{name}", name, options.base_url, key, policy=policy)


class AnthropicModel:
    """One model behind the official SDK."""

    def __init__(
        self, spec: str, model: str, base_url: str | None, key: str, *, policy: Policy | None = None
    ):
        try:
            import anthropic as sdk
        except ImportError as error:
            raise MissingDependency("the Anthropic SDK is not installed: pip install anthropic") from error
        self.name, self._model, self._sdk = spec, model, sdk
        self._policy = policy or Policy()
        self._client = sdk.AsyncAnthropic(
            api_key=key, base_url=base_url, max_retries=0, timeout=self._policy.timeout_s
        )

    async def complete(self, request: Request) -> Completion:
        started = time.monotonic()
        completion, retries = await with_retries(
            lambda: self._ask(request), lambda error: explain(self._sdk, error), self._policy
        )
        return completion.model_copy(update={"retries": retries, "seconds": time.monotonic() - started})

    async def close(self) -> None:
        await self._client.close()

    async def _ask(self, request: Request) -> Completion:
        # In the body, not as arguments: which of them the SDK's signature names changes with its version.
        settings = self._settings(request.sampling)
        if system := "\n\n".join(m.content for m in request.messages if m.role == "system"):
            settings["system"] = system
        messages: Any = [m.model_dump() for m in request.messages if m.role != "system"]
        async with self._client.messages.stream(
            model=self._model, messages=messages, max_tokens=request.sampling.max_tokens, extra_body=settings
        ) as stream:
            answer = await stream.get_final_message()
        if answer.stop_reason is None:
            raise Fault("connection", "the answer's stream was cut", again=True)
        text = "".join(block.text for block in answer.content if block.type == "text")
        reason = _REASONS.get(answer.stop_reason, answer.stop_reason)
        return Completion(
            text=text, finish_reason=reason, served_model=answer.model, usage=_usage(answer.usage)
        )

    def _settings(self, sampling: Sampling) -> dict[str, Any]:
        settings: dict[str, Any] = {}
        if sampling.temperature is not None:
            settings["temperature"] = sampling.temperature
        if sampling.top_p is not None:
            settings["top_p"] = sampling.top_p
        if sampling.reasoning_effort and _BUDGETED.fullmatch(self._model):
            settings["thinking"] = {"type": "enabled", "budget_tokens": _budget(sampling)}
        elif sampling.reasoning_effort:
            settings["thinking"] = {"type": "adaptive"}
            settings["output_config"] = {"effort": sampling.reasoning_effort}
        return settings


def _budget(sampling: Sampling) -> int:
    """Thinking tokens for an effort. Raises Fault where the effort is unknown or the answer's limit leaves no room."""
    share = _THINKING.get(sampling.reasoning_effort or "")
    if share is None:
        known = ", ".join(_THINKING)
        raise Fault(
            "bad_request", f"unknown reasoning effort {sampling.reasoning_effort!r}: use {known}", again=False
        )
    if sampling.max_tokens <= _LEAST_THINKING:
        text = f"thinking takes {_LEAST_THINKING} tokens at least: raise --max-output-tokens above that"
        raise Fault("bad_request", text, again=False)
    return max(_LEAST_THINKING, int(sampling.max_tokens * share))


def _usage(used: Any) -> Usage:
    """The API counts input apart from what its cache served and stored; llmdsl counts all of it as input."""
    cached, written = used.cache_read_input_tokens or 0, used.cache_creation_input_tokens or 0
    thought = getattr(getattr(used, "output_tokens_details", None), "thinking_tokens", None) or 0
    return Usage(
        input=used.input_tokens + cached + written, output=used.output_tokens, cached_input=cached,
        cache_write=written, reasoning=thought,
    )  # fmt: skip
