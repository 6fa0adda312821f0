"""The local engine, by itself and under the real SDKs: it speaks all three protocols."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from llmdsl.models.anthropic import AnthropicModel
from llmdsl.models.base import Completion, Message, ModelError, Request, Sampling
from llmdsl.models.local import LocalModel
from llmdsl.models.openai import OpenAIModel
from llmdsl.models.registry import create_model

REQUEST = Request(messages=(Message(role="system", content="You write code."), Message(role="user", content="Say hi.")),
                  sampling=Sampling(max_tokens=8), task="softmax", dsl="triton")  # fmt: skip
LONG = REQUEST.model_copy(update={"sampling": Sampling(max_tokens=500),
                                  "messages": (Message(role="user", content="Count. " * 1000),)})  # fmt: skip


def other(request: Request, text: str) -> Request:
    return request.model_copy(
        update={"messages": (*request.messages[:-1], Message(role="user", content=text))}
    )


def smollm2() -> LocalModel:
    model = create_model("local/smollm2")
    assert isinstance(model, LocalModel)
    return model


def with_engine(use: Callable[[LocalModel], Awaitable[None]]) -> None:
    async def go() -> None:
        model = smollm2()
        try:
            await use(model)
        finally:
            await model.close()

    asyncio.run(go())


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    model = smollm2()
    yield asyncio.run(model.start())
    asyncio.run(model.close())


@pytest.mark.parametrize("protocol", ["responses", "chat", "anthropic"])
def test_the_real_sdks_get_answers_of_a_real_model(address: str, protocol: str) -> None:
    async def ask() -> Completion:
        if protocol == "anthropic":
            model: AnthropicModel | OpenAIModel = AnthropicModel("anthropic/m", "m", address, "none")
        else:
            model = OpenAIModel("openai/m", "m", f"{address}/v1", "none", responses=protocol == "responses")
        try:
            return await model.complete(greedy)
        finally:
            await model.close()

    # Not every protocol takes a seed. (And a streamed answer whose first token is half a character lacks its first
    # event: that is tried again.)
    greedy = REQUEST.model_copy(update={"sampling": Sampling(max_tokens=8, temperature=0)})
    answer = asyncio.run(ask())
    assert answer.text.strip() and answer.retries == 0 and "SmolLM2" in answer.served_model
    assert answer.usage.output == 8 and answer.usage.input == 21
    # The engine's Responses API calls an answer "completed" that ended at the limit.
    assert answer.finish_reason == ("stop" if protocol == "responses" else "length")


def test_the_same_seed_gives_the_same_answer_whatever_was_asked_before() -> None:
    async def use(model: LocalModel) -> None:
        first = await model.complete(REQUEST)
        assert first.finish_reason == "length" and first.usage.output == 8
        assert first.served_model.startswith("SmolLM2-135M-Instruct.Q4_1@")
        await model.complete(other(REQUEST, "Say hi twice, please."))
        samples = [REQUEST.model_copy(update={"sample": sample}) for sample in (0, 1)]
        seeded = REQUEST.model_copy(update={"sampling": Sampling(max_tokens=8, seed=5)})
        again, sample, seed = await asyncio.gather(*map(model.complete, [*samples, seeded]))
        assert again.text == first.text and again.usage == first.usage and again.usage.cached_input == 0
        assert len({first.text, sample.text, seed.text}) == 3, "samples and seeds differ"

    with_engine(use)


def test_two_models_side_by_side_and_again_after_a_close() -> None:
    async def use(model: LocalModel) -> None:
        second = smollm2()
        one, two = await asyncio.gather(model.complete(REQUEST), second.complete(REQUEST))
        await second.close()
        await second.close()
        three = await second.complete(REQUEST)
        await second.close()
        assert one.text == two.text == three.text

    with_engine(use)


def test_the_event_loop_goes_on_while_it_starts_and_answers_and_closes() -> None:
    async def use(model: LocalModel) -> None:
        longest, last = 0.0, time.monotonic()

        async def tick() -> None:
            nonlocal longest, last
            while True:
                await asyncio.sleep(0.01)
                longest, last = max(longest, time.monotonic() - last), time.monotonic()

        ticking = asyncio.create_task(tick())
        answer = await model.complete(other(REQUEST, "word " * 600))
        await model.close()
        ticking.cancel()
        # Blocked, it would stand still for all of the time; a busy machine stops it for a moment.
        assert longest < answer.seconds / 2

    # The SDK's import is slow, and no part of this.
    import openai  # noqa: F401

    with_engine(use)


def test_it_can_be_closed_at_any_moment() -> None:
    """In one process with the caller, the engine's destructor would wait for ever in each of these."""

    async def use(model: LocalModel) -> None:
        await model.start()
        await model.close()  # before it was asked anything
        for wait in (0.0, 0.3, 3.0):  # while it starts, while it reads or answers
            asking = asyncio.create_task(model.complete(LONG))
            await asyncio.sleep(wait)
            asking.cancel()
            started = time.monotonic()
            with pytest.raises(asyncio.CancelledError):
                await asking
            await model.close()
            assert time.monotonic() - started < 2
        assert (await model.complete(REQUEST)).text

    with_engine(use)


def test_a_request_nobody_waits_for_does_not_hold_up_the_next() -> None:
    async def use(model: LocalModel) -> None:
        await model.start()
        asking = asyncio.create_task(model.complete(LONG))
        await asyncio.sleep(0.5)
        asking.cancel()
        await asyncio.wait([asking])
        assert (await asyncio.wait_for(model.complete(REQUEST), 60)).text

    with_engine(use)


def test_an_engine_that_dies_costs_one_answer() -> None:
    async def use(model: LocalModel) -> None:
        await model.start()
        asking = asyncio.create_task(model.complete(LONG))
        await asyncio.sleep(0.5)
        assert model._process is not None
        model._process.kill()
        with pytest.raises(ModelError) as error:
            await asking
        assert error.value.kind == "connection"
        assert (await model.complete(REQUEST)).text
        assert model._process is not None
        model._process.kill()  # and one that dies between two requests costs none
        model._process.wait()
        assert (await model.complete(REQUEST)).text

    with_engine(use)


def test_a_prompt_beyond_the_context_is_refused_and_the_engine_stays() -> None:
    async def use(model: LocalModel) -> None:
        await model.start()
        engine = model._process
        with pytest.raises(ModelError, match="context") as error:
            await model.complete(other(REQUEST, "word " * 9000))
        assert error.value.kind == "bad_request" and model._process is engine

    with_engine(use)


def test_weights_that_do_not_load_are_named(tmp_path: Path) -> None:
    path = tmp_path / "torn.gguf"
    path.write_bytes(b"GGUF" + bytes(1000))
    with pytest.raises(ModelError, match=r"torn\.gguf"):
        asyncio.run(create_model(f"local/{path}").complete(REQUEST))


_ASK = """
import asyncio
from llmdsl.models.registry import create_model
from tests.models.test_local import LONG, REQUEST

async def main():
    model = create_model("local/smollm2")
    print((await model.complete(REQUEST)).text and "answered", model._process.pid, flush=True)
    await model.complete(LONG) if KILLED else None

asyncio.run(main())
"""


def test_it_writes_nothing_to_the_terminal_and_ends_with_its_caller() -> None:
    """Here the caller never closes it."""
    done = subprocess.run([sys.executable, "-c", "KILLED = False\n" + _ASK], capture_output=True, text=True, timeout=120,
                          check=True, cwd=Path(__file__).parents[2])  # fmt: skip
    said, engine = done.stdout.split()
    assert said == "answered" and done.stderr == ""
    assert gone(int(engine))


def test_it_does_not_outlive_a_caller_that_is_killed() -> None:
    caller = subprocess.Popen([sys.executable, "-c", "KILLED = True\n" + _ASK], stdout=subprocess.PIPE, text=True,
                              cwd=Path(__file__).parents[2])  # fmt: skip
    with caller:
        assert caller.stdout is not None
        engine = int(caller.stdout.readline().split()[1])
        os.kill(caller.pid, signal.SIGKILL)
    assert gone(engine)


def gone(pid: int) -> bool:
    """Whether the process ends within ten seconds."""
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            return True  # ended, and nobody has asked how
        time.sleep(0.1)
    return False
