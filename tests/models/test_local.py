"""The local engine, by itself and under the real SDKs: it speaks all three protocols."""

from __future__ import annotations

import asyncio

import pytest

from llmdsl.models.anthropic import AnthropicModel
from llmdsl.models.base import Completion, Message, ModelError, Request, Sampling
from llmdsl.models.local import LocalModel
from llmdsl.models.openai import OpenAIModel
from llmdsl.models.registry import create_model

REQUEST = Request(messages=(Message(role="system", content="You write code."), Message(role="user", content="Say hi.")),
                  sampling=Sampling(max_tokens=8), task="softmax", dsl="triton")  # fmt: skip


def test_the_engine_and_the_sdks() -> None:
    async def go() -> tuple[list[Completion], list[Completion]]:
        local = create_model("local/smollm2")
        assert isinstance(local, LocalModel)
        try:
            first = [await local.complete(REQUEST) for _ in range(2)]
            other = await local.complete(REQUEST.model_copy(update={"sample": 1}))
            address = await local.start()
            sdks = (
                OpenAIModel("openai/m", "m", f"{address}/v1", "none", responses=True),
                OpenAIModel("openai-compat/m", "m", f"{address}/v1", "none", responses=False),
                AnthropicModel("anthropic/m", "m", address, "none"),
            )
            answers = []
            for sdk in sdks:
                answers.append(await sdk.complete(REQUEST))
                await sdk.close()
        finally:
            await local.close()
        return [*first, other], answers

    own, sdk_answers = asyncio.run(go())
    assert own[0].text == own[1].text, "the same seed must give the same answer"
    assert own[0].text and own[0].finish_reason == "length" and own[0].usage.output == 8
    assert own[0].served_model.startswith("SmolLM2-135M-Instruct.Q4_1@")
    for answer in sdk_answers:
        assert answer.text and answer.finish_reason in ("stop", "length")
        assert 1 <= answer.usage.output <= 8 < answer.usage.input


def test_it_starts_again_after_a_close() -> None:
    async def go() -> str:
        model = create_model("local/smollm2")
        await model.complete(REQUEST)
        await model.close()
        answer = await model.complete(REQUEST)
        await model.close()
        return answer.text

    assert asyncio.run(go())


def test_missing_weights_are_named() -> None:
    with pytest.raises(ModelError, match=r"nowhere\.gguf.*local/smollm2"):
        create_model("local/nowhere.gguf")
