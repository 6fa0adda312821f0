"""OpenAI (Responses API) and everything that speaks its Chat Completions: vLLM, SGLang, Ollama, llama.cpp, gateways."""

from __future__ import annotations

import os
import time
from typing import Any

from llmdsl.errors import MissingDependency
from llmdsl.models.base import Completion, ModelError, Request, Usage
from llmdsl.models.retry import Fault, Policy, explain, with_retries


def openai(name: str, base_url: str | None) -> OpenAIModel:
    """`openai/NAME`: the key from OPENAI_API_KEY."""
    if not os.environ.get("OPENAI_API_KEY"):
        raise ModelError("auth", f"openai/{name} needs a key: export OPENAI_API_KEY=…")
    return OpenAIModel(f"openai/{name}", name, base_url, os.environ["OPENAI_API_KEY"], responses=True)


def openai_compatible(name: str, base_url: str | None) -> OpenAIModel:
    """`openai-compat/NAME` at a base URL; a key only where OPENAI_COMPAT_API_KEY holds one."""
    if not base_url:
        raise ModelError(
            "bad_request", f"openai-compat/{name} needs an address: add --base-url http://HOST:PORT/v1"
        )
    key = os.environ.get("OPENAI_COMPAT_API_KEY", "none")
    return OpenAIModel(f"openai-compat/{name}", name, base_url, key, responses=False)


class OpenAIModel:
    """One model behind the official SDK. `responses` picks the Responses API instead of Chat Completions."""

    def __init__(self, spec: str, model: str, base_url: str | None, key: str, *, responses: bool,
                 policy: Policy | None = None):  # fmt: skip
        try:
            import openai as sdk
        except ImportError as error:
            raise MissingDependency("the OpenAI SDK is not installed: pip install openai") from error
        self.name, self._model, self._sdk = spec, model, sdk
        self._policy = policy or Policy()
        self._client = sdk.AsyncOpenAI(
            api_key=key, base_url=base_url, max_retries=0, timeout=self._policy.timeout_s
        )
        self._ask = self._ask_responses if responses else self._ask_chat

    async def complete(self, request: Request) -> Completion:
        started = time.monotonic()
        completion, retries = await with_retries(
            lambda: self._ask(request), lambda error: explain(self._sdk, error), self._policy
        )
        return completion.model_copy(update={"retries": retries, "seconds": time.monotonic() - started})

    async def close(self) -> None:
        await self._client.close()

    async def _ask_responses(self, request: Request) -> Completion:
        sampling = request.sampling
        settings: dict[str, Any] = {"max_output_tokens": sampling.max_tokens, "temperature": sampling.temperature,
                                    "top_p": sampling.top_p}  # fmt: skip
        if sampling.reasoning_effort:
            settings["reasoning"] = {"effort": sampling.reasoning_effort}
        answer = await self._client.responses.create(
            model=self._model,
            input=[m.model_dump() for m in request.messages],
            store=False,
            **_given(settings),
        )
        if answer.status == "failed":
            detail = answer.error.message if answer.error else "no reason given"
            raise Fault("server_error", f"the response failed: {detail}", again=True)
        reason = "stop"
        if answer.status == "incomplete":
            why = answer.incomplete_details.reason if answer.incomplete_details else None
            reason = "length" if why == "max_output_tokens" else why or "incomplete"
        used = answer.usage
        cached = getattr(used, "input_tokens_details", None)
        thought = getattr(used, "output_tokens_details", None)
        usage = Usage(
            input=used.input_tokens if used else 0, output=used.output_tokens if used else 0,
            cached_input=getattr(cached, "cached_tokens", None) or 0,
            reasoning=getattr(thought, "reasoning_tokens", None) or 0,
        )  # fmt: skip
        return Completion(
            text=answer.output_text, finish_reason=reason, served_model=answer.model, usage=usage
        )

    async def _ask_chat(self, request: Request) -> Completion:
        sampling = request.sampling
        settings = {"max_tokens": sampling.max_tokens, "temperature": sampling.temperature, "top_p": sampling.top_p,
                    "seed": None if sampling.seed is None else sampling.seed + request.sample,
                    "reasoning_effort": sampling.reasoning_effort}  # fmt: skip
        answer = await self._client.chat.completions.create(
            model=self._model, messages=[m.model_dump() for m in request.messages], **_given(settings)
        )
        choice = answer.choices[0]
        used = answer.usage
        cached = getattr(used, "prompt_tokens_details", None)
        thought = getattr(used, "completion_tokens_details", None)
        usage = Usage(
            input=used.prompt_tokens if used else 0, output=used.completion_tokens if used else 0,
            cached_input=getattr(cached, "cached_tokens", None) or 0,
            reasoning=getattr(thought, "reasoning_tokens", None) or 0,
        )  # fmt: skip
        return Completion(text=choice.message.content or "", finish_reason=choice.finish_reason or "stop",
                          served_model=answer.model, usage=usage)  # fmt: skip


def _given(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if value is not None}
