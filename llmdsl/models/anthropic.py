"""Anthropic's Messages API, streamed: long answers outlast a plain request's connection."""

from __future__ import annotations

import os
import time
from typing import Any

from llmdsl.errors import MissingDependency
from llmdsl.models.base import Completion, ModelError, Request, Usage
from llmdsl.models.retry import Fault, Policy, explain, with_retries

_REASONS = {"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length"}
# Thinking budget by effort, as a share of the answer's token limit; the API wants at least 1024.
_THINKING = {"low": 0.2, "medium": 0.5, "high": 0.8}


def anthropic(name: str, base_url: str | None) -> AnthropicModel:
    """`anthropic/NAME`: the key from ANTHROPIC_API_KEY."""
    if not os.environ.get("ANTHROPIC_API_KEY"):
        raise ModelError("auth", f"anthropic/{name} needs a key: export ANTHROPIC_API_KEY=…")
    return AnthropicModel(f"anthropic/{name}", name, base_url, os.environ["ANTHROPIC_API_KEY"])


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
        sampling = request.sampling
        settings: dict[str, Any] = {"max_tokens": sampling.max_tokens}
        if sampling.temperature is not None:
            settings["temperature"] = sampling.temperature
        if sampling.top_p is not None:
            settings["top_p"] = sampling.top_p
        if sampling.reasoning_effort:
            if sampling.reasoning_effort not in _THINKING:
                known = ", ".join(_THINKING)
                raise Fault(
                    "bad_request",
                    f"unknown reasoning effort {sampling.reasoning_effort!r}; use {known}",
                    again=False,
                )
            budget = max(1024, int(sampling.max_tokens * _THINKING[sampling.reasoning_effort]))
            settings["thinking"] = {"type": "enabled", "budget_tokens": budget}
        if system := "\n\n".join(m.content for m in request.messages if m.role == "system"):
            settings["system"] = system
        messages: Any = [m.model_dump() for m in request.messages if m.role != "system"]
        async with self._client.messages.stream(model=self._model, messages=messages, **settings) as stream:
            answer = await stream.get_final_message()
        if answer.stop_reason is None:
            raise Fault("connection", "the answer's stream was cut", again=True)
        used = answer.usage
        cached = used.cache_read_input_tokens or 0
        usage = Usage(
            input=used.input_tokens + cached + (used.cache_creation_input_tokens or 0),
            output=used.output_tokens, cached_input=cached,
        )  # fmt: skip
        text = "".join(block.text for block in answer.content if block.type == "text")
        reason = _REASONS.get(answer.stop_reason, answer.stop_reason)
        return Completion(text=text, finish_reason=reason, served_model=answer.model, usage=usage)
