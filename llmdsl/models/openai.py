"""OpenAI (Responses API) and everything that speaks its Chat Completions: vLLM, SGLang, Ollama, llama.cpp, gateways."""

from __future__ import annotations

import os
import time
from typing import Any

from llmdsl.errors import InvalidModel, MissingDependency
from llmdsl.models.base import Completion, Options, Request, Usage
from llmdsl.models.faults import explain
from llmdsl.models.retry import Fault, Policy, with_retries


def openai(name: str, options: Options) -> OpenAIModel:
    """`openai/NAME`: the key from OPENAI_API_KEY, the address from `base_url`, else OPENAI_BASE_URL, else OpenAI's."""
    if not name:
        raise InvalidModel("openai/ needs the name of a model: write openai/NAME, e.g. openai/gpt-5-mini")
    key = os.environ.get("OPENAI_API_KEY")
    if not key:
        raise InvalidModel(f"openai/{name} needs a key: export OPENAI_API_KEY=…")
    policy = Policy(timeout_s=options.timeout_s)
    return OpenAIModel(f"openai/{name}", name, options.base_url, key, responses=True, policy=policy)


def openai_compatible(name: str, options: Options) -> OpenAIModel:
    """`openai-compat/NAME` at a base URL; a key only where OPENAI_COMPAT_API_KEY holds one."""
    if not name:
        raise InvalidModel(
            "openai-compat/ needs the name of a model: write openai-compat/NAME --base-url URL"
        )
    if not options.base_url:
        raise InvalidModel(f"openai-compat/{name} needs an address: add --base-url http://HOST:PORT/v1")
    key = os.environ.get("OPENAI_COMPAT_API_KEY") or "none"
    policy = Policy(timeout_s=options.timeout_s)
    return OpenAIModel(f"openai-compat/{name}", name, options.base_url, key, responses=False, policy=policy)


class OpenAIModel:
    """One model behind the official SDK. `responses` picks the Responses API instead of Chat Completions.

    `extra` are fields of the request's body that only some servers know.
    """

    def __init__(self, spec: str, model: str, base_url: str | None, key: str, *, responses: bool,
                 policy: Policy | None = None, extra: dict[str, Any] | None = None):  # fmt: skip
        try:
            import openai as sdk
        except ImportError as error:
            raise MissingDependency("the OpenAI SDK is not installed: pip install openai") from error
        self.name, self._model, self._sdk, self._extra = spec, model, sdk, extra
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
            model=self._model, input=[m.model_dump() for m in request.messages], store=False,
            extra_body=self._extra, **_given(settings),
        )  # fmt: skip
        reason = _finish_reason(answer)
        return Completion(
            text=answer.output_text, finish_reason=reason, served_model=answer.model,
            usage=_usage(answer.usage, "input_tokens", "output_tokens"),
        )  # fmt: skip

    async def _ask_chat(self, request: Request) -> Completion:
        sampling = request.sampling
        settings = {"max_tokens": sampling.max_tokens, "temperature": sampling.temperature, "top_p": sampling.top_p,
                    "seed": None if sampling.seed is None else sampling.seed + request.sample,
                    "reasoning_effort": sampling.reasoning_effort}  # fmt: skip
        answer = await self._client.chat.completions.create(
            model=self._model, messages=[m.model_dump() for m in request.messages],
            extra_body=self._extra, **_given(settings),
        )  # fmt: skip
        choice = answer.choices[0]
        return Completion(
            text=choice.message.content or "", finish_reason=choice.finish_reason or "stop",
            served_model=answer.model, usage=_usage(answer.usage, "prompt_tokens", "completion_tokens"),
        )  # fmt: skip


def _finish_reason(answer: Any) -> str:
    """Of a response: "stop", "length", or the API's own word. Raises Fault where it holds no answer."""
    if answer.status == "completed":
        return "stop"
    if answer.status == "incomplete":
        why = answer.incomplete_details.reason if answer.incomplete_details else None
        return "length" if why == "max_output_tokens" else why or "incomplete"
    code = answer.error.code if answer.error else None
    detail = answer.error.message if answer.error else f"its status is {answer.status!r}"
    kind = {"server_error": "server_error", "rate_limit_exceeded": "rate_limited", None: "malformed"}.get(
        code, "bad_request"
    )
    raise Fault(kind, f"the response failed: {detail}", again=kind != "bad_request")


def _usage(used: Any, input_tokens: str, output_tokens: str) -> Usage:
    """Tokens as reported; what a server leaves out is 0. The two APIs name the same numbers differently."""

    def detail(of: str, name: str) -> int:
        return getattr(getattr(used, f"{of}_details", None), name, None) or 0

    return Usage(
        input=getattr(used, input_tokens, None) or 0, output=getattr(used, output_tokens, None) or 0,
        cached_input=detail(input_tokens, "cached_tokens"), cache_write=detail(input_tokens, "cache_write_tokens"),
        reasoning=detail(output_tokens, "reasoning_tokens"),
    )  # fmt: skip


def _given(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if value is not None}
