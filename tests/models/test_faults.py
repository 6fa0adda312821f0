"""The real SDKs against a faulty server: every fault ends in an answer or in a ModelError, after bounded tries."""

from __future__ import annotations

import asyncio

import pytest

from llmdsl.models import retry
from llmdsl.models.anthropic import AnthropicModel
from llmdsl.models.base import Completion, Message, ModelError, Request, Sampling
from llmdsl.models.openai import OpenAIModel
from llmdsl.models.retry import Policy
from tests.models.faulty import Faulty, faulty

REQUEST = Request(messages=(Message(role="system", content="be brief"), Message(role="user", content="hi")),
                  sampling=Sampling(max_tokens=32), task="softmax", dsl="triton")  # fmt: skip
KINDS = ("chat", "responses", "anthropic")


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Waits between tries, noted instead of waited."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    shipped = retry.with_retries
    monkeypatch.setattr("llmdsl.models.openai.with_retries", lambda *args: shipped(*args, sleep=sleep))
    monkeypatch.setattr("llmdsl.models.anthropic.with_retries", lambda *args: shipped(*args, sleep=sleep))
    return waits


def ask(kind: str, server: Faulty, policy: Policy | None = None, request: Request = REQUEST) -> Completion:
    async def go() -> Completion:
        bounds = policy or Policy(attempts=4, timeout_s=5)
        if kind == "anthropic":
            model = AnthropicModel("anthropic/m", "m", server.url, "key", policy=bounds)
        else:
            model = OpenAIModel(
                "openai/m", "m", f"{server.url}/v1", "key", responses=kind == "responses", policy=bounds
            )
        try:
            return await model.complete(request)
        finally:
            await model.close()

    return asyncio.run(go())


@pytest.mark.parametrize("kind", KINDS)
def test_a_good_answer(kind: str) -> None:
    with faulty("ok") as server:
        answer = ask(kind, server)
    assert (answer.text, answer.finish_reason, answer.served_model, answer.retries) == (
        "hello",
        "stop",
        "served-1",
        0,
    )
    assert (answer.usage.input, answer.usage.cached_input, answer.usage.output) == (7, 3, 2)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fault", ["429", "500", "503", "cut", "malformed"])
def test_a_passing_fault_is_tried_again(kind: str, fault: str, slept: list[float]) -> None:
    with faulty(fault, fault, "ok") as server:
        answer = ask(kind, server)
        assert server.asked == 3
    assert answer.text == "hello" and answer.retries == 2 and len(slept) == 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("fault", "known_as"),
    [
        ("429", "rate_limited"),
        ("500", "server_error"),
        ("cut", None),
        ("malformed", None),
        ("wrong-shape", None),
    ],
)
def test_a_lasting_fault_ends_after_bounded_tries(
    kind: str, fault: str, known_as: str | None, slept: list[float]
) -> None:
    with faulty(fault) as server, pytest.raises(ModelError) as error:
        ask(kind, server)
    assert server.asked == 4 and error.value.retries == 3
    assert error.value.kind == known_as or (
        known_as is None and error.value.kind in ("connection", "malformed")
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_hang_is_bounded(kind: str, slept: list[float]) -> None:
    with faulty("hang") as server, pytest.raises(ModelError) as error:
        ask(kind, server, Policy(attempts=2, timeout_s=0.3))
    assert error.value.kind == "timeout" and server.asked == 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("fault", "known_as"), [("401", "auth"), ("403", "auth"), ("404", "not_found"), ("400", "bad_request")]
)
def test_what_will_not_pass_is_not_tried_again(
    kind: str, fault: str, known_as: str, slept: list[float]
) -> None:
    with faulty(fault) as server, pytest.raises(ModelError) as error:
        ask(kind, server)
    assert server.asked == 1 and error.value.kind == known_as and not slept
    if fault == "400" and kind != "anthropic":
        assert "temperature" in str(error.value)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("fault", "low", "high"), [("429-seconds", 7, 7), ("429-ms", 1.5, 1.5), ("429-date", 15, 20)]
)
def test_retry_after_is_honoured(kind: str, fault: str, low: float, high: float, slept: list[float]) -> None:
    with faulty(fault, "ok") as server:
        ask(kind, server)
    assert len(slept) == 1 and low <= slept[0] <= high


def test_all_tries_together_are_bounded_in_time(slept: list[float]) -> None:
    with faulty("429-seconds") as server, pytest.raises(ModelError):
        ask("chat", server, Policy(attempts=50, timeout_s=5, total_s=5))
    assert server.asked == 1  # waiting 7 s would pass the 5 s


def test_samples_get_seeds_of_their_own() -> None:
    with faulty("ok") as server:
        for sample in (0, 1):
            sampling = Sampling(seed=10)
            ask("chat", server, request=REQUEST.model_copy(update={"sample": sample, "sampling": sampling}))
    assert [body["seed"] for body in server.bodies] == [10, 11]


def test_what_is_not_set_is_not_sent() -> None:
    with faulty("ok") as server:
        for kind in KINDS:
            ask(kind, server)
    for body in server.bodies:
        assert not {"temperature", "top_p", "seed", "reasoning", "reasoning_effort", "thinking"} & set(body)


def test_thinking_budget_follows_effort() -> None:
    sampling = Sampling(max_tokens=10_000, reasoning_effort="medium")
    with faulty("ok") as server:
        ask("anthropic", server, request=REQUEST.model_copy(update={"sampling": sampling}))
        ask("responses", server, request=REQUEST.model_copy(update={"sampling": sampling}))
    assert server.bodies[0]["thinking"] == {"type": "enabled", "budget_tokens": 5000}
    assert server.bodies[0]["system"] == "be brief"
    assert server.bodies[1]["reasoning"] == {"effort": "medium"}
