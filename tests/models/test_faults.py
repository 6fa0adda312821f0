"""The real SDKs against a faulty server: every fault ends in an answer or in a ModelError, after bounded tries."""

from __future__ import annotations

import asyncio

import pytest

from llmdsl.models import retry
from llmdsl.models.anthropic import AnthropicModel
from llmdsl.models.base import Completion, Message, ModelError, Request, Sampling, Usage
from llmdsl.models.openai import OpenAIModel
from llmdsl.models.registry import create_model
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


def made(
    kind: str, server: Faulty, policy: Policy | None = None, name: str = "m"
) -> AnthropicModel | OpenAIModel:
    bounds = policy or Policy(attempts=4, timeout_s=5)
    if kind == "anthropic":
        return AnthropicModel(f"anthropic/{name}", name, server.url, "key", policy=bounds)
    address = f"{server.url}/v1"
    return OpenAIModel(f"openai/{name}", name, address, "key", responses=kind == "responses", policy=bounds)


def ask(
    kind: str, server: Faulty, policy: Policy | None = None, request: Request = REQUEST, name: str = "m"
) -> Completion:
    async def go() -> Completion:
        model = made(kind, server, policy, name)
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
    assert answer.usage == Usage(input=12, cached_input=3, cache_write=5, output=2, reasoning=1)


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
    ("fault", "low", "high"),
    [("429-seconds", 7, 7), ("429-ms", 1.5, 1.5), ("429-date", 15, 20), ("429-minutes", 300, 300)],
)
def test_retry_after_is_honoured(kind: str, fault: str, low: float, high: float, slept: list[float]) -> None:
    with faulty(fault, "ok") as server:
        ask(kind, server)
    assert len(slept) == 1 and low <= slept[0] <= high


def test_a_retry_after_beyond_the_bound_ends_the_request_and_is_said(slept: list[float]) -> None:
    with (
        faulty("429-hours", "ok") as server,
        pytest.raises(ModelError, match=r"1 try, and it asks to wait 7200 s"),
    ):
        ask("chat", server)
    assert server.asked == 1 and not slept


def test_an_unreadable_retry_after_counts_as_none(slept: list[float]) -> None:
    with faulty("429-nonsense", "ok") as server:
        ask("chat", server)
    assert len(slept) == 1 and 0 <= slept[0] <= 60


def test_all_tries_together_are_bounded_in_time(slept: list[float]) -> None:
    with faulty("429-seconds") as server, pytest.raises(ModelError):
        ask("chat", server, Policy(attempts=50, timeout_s=5, total_s=5))
    assert server.asked == 1  # waiting 7 s would pass the 5 s


@pytest.mark.parametrize("kind", KINDS)
def test_the_sdks_do_not_retry_by_themselves(kind: str) -> None:
    with faulty("500") as server, pytest.raises(ModelError) as error:
        ask(kind, server, Policy(attempts=1, timeout_s=5))
    assert server.asked == 1 and error.value.retries == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("status", ["408", "409", "504", "520", "529"])
def test_statuses_that_pass(kind: str, status: str, slept: list[float]) -> None:
    with faulty(status, "ok") as server:
        assert ask(kind, server).retries == 1


@pytest.mark.parametrize("kind", KINDS)
def test_an_account_without_credit_is_not_asked_again(kind: str, slept: list[float]) -> None:
    with faulty("quota") as server, pytest.raises(ModelError, match="no credit") as error:
        ask(kind, server)
    assert server.asked == 1 and error.value.kind == "quota"


@pytest.mark.parametrize("kind", KINDS)
def test_nobody_listens(kind: str, slept: list[float]) -> None:
    with faulty("ok") as server:
        pass  # it is gone now
    with pytest.raises(ModelError) as error:
        ask(kind, server)
    assert error.value.kind == "connection" and error.value.retries == 3


def test_a_stream_that_turns_into_an_error_is_tried_again(slept: list[float]) -> None:
    """The stream began with HTTP 200, so the status says nothing: the event's type does."""
    with faulty("overloaded", "ok") as server:
        assert ask("anthropic", server).retries == 1
    with faulty("overloaded") as server, pytest.raises(ModelError, match="Overloaded") as error:
        ask("anthropic", server)
    assert error.value.kind == "server_error" and server.asked == 4


@pytest.mark.parametrize(("word", "reason"), [("incomplete", "length"), ("filtered", "content_filter")])
def test_an_incomplete_response_says_why(word: str, reason: str) -> None:
    with faulty(word) as server:
        answer = ask("responses", server)
    assert (answer.finish_reason, answer.text) == (reason, "hello")


@pytest.mark.parametrize(
    ("word", "kind", "asked"),
    [("failed", "server_error", 4), ("refused", "bad_request", 1), ("queued", "malformed", 4)],
)
def test_a_response_without_an_answer_is_none(word: str, kind: str, asked: int, slept: list[float]) -> None:
    with faulty(word) as server, pytest.raises(ModelError) as error:
        ask("responses", server)
    assert error.value.kind == kind and server.asked == asked


@pytest.mark.parametrize("kind", KINDS)
def test_an_interrupt_goes_through_at_once(kind: str) -> None:
    async def go() -> None:
        model = made(kind, server, Policy(attempts=4, timeout_s=60))
        asking = asyncio.create_task(model.complete(REQUEST))
        while not server.asked:
            await asyncio.sleep(0.01)
        asking.cancel()
        await asyncio.wait([asking], timeout=1)
        assert asking.cancelled()
        await model.close()

    with faulty("hang") as server:
        asyncio.run(go())
    assert server.asked == 1


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


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_set_is_sent(kind: str) -> None:
    sampling = Sampling(temperature=0.5, top_p=0.9, max_tokens=77)
    with faulty("ok") as server:
        ask(kind, server, request=REQUEST.model_copy(update={"sampling": sampling}))
    body = server.bodies[0]
    assert (body["temperature"], body["top_p"], body["model"]) == (0.5, 0.9, "m")
    assert body["max_output_tokens" if kind == "responses" else "max_tokens"] == 77


def with_effort(effort: str, max_tokens: int = 10_000) -> Request:
    return REQUEST.model_copy(update={"sampling": Sampling(max_tokens=max_tokens, reasoning_effort=effort)})


def test_effort_in_the_openai_apis() -> None:
    with faulty("ok") as server:
        ask("responses", server, request=with_effort("medium"))
        ask("chat", server, request=with_effort("high"))
    assert server.bodies[0]["reasoning"] == {"effort": "medium"} and server.bodies[0]["store"] is False
    assert server.bodies[1]["reasoning_effort"] == "high"


@pytest.mark.parametrize(
    "name", ["claude-opus-4-7", "claude-opus-5", "claude-sonnet-5-5", "claude-haiku-5-5", "m"]
)
def test_newer_claudes_are_told_the_effort(name: str) -> None:
    """They answer 400 to a budget of thinking tokens."""
    with faulty("ok") as server:
        ask("anthropic", server, request=with_effort("max"), name=name)
    assert server.bodies[0]["thinking"] == {"type": "adaptive"}
    assert server.bodies[0]["output_config"] == {"effort": "max"}
    assert server.bodies[0]["system"] == "be brief" and [m["role"] for m in server.bodies[0]["messages"]] == [
        "user"
    ]


@pytest.mark.filterwarnings("ignore:The model:DeprecationWarning")  # of the SDK, whose list of models grows
@pytest.mark.parametrize(
    "name",
    ["claude-opus-4-5-20251101", "claude-haiku-4-5", "claude-sonnet-4-20250514", "claude-3-7-sonnet-latest"],
)
def test_older_claudes_get_a_budget_of_thinking_tokens(name: str) -> None:
    with faulty("ok") as server:
        ask("anthropic", server, request=with_effort("medium"), name=name)
        ask("anthropic", server, request=with_effort("low", max_tokens=2000), name=name)
        for request in (with_effort("medium", max_tokens=1024), with_effort("max")):
            with pytest.raises(ModelError, match=r"raise --max-output-tokens|use low, medium, high") as error:
                ask("anthropic", server, request=request, name=name)
            assert error.value.kind == "bad_request" and error.value.retries == 0
    assert [body["thinking"]["budget_tokens"] for body in server.bodies] == [5000, 1024]
    assert all("output_config" not in body for body in server.bodies)


@pytest.mark.parametrize(
    ("spec", "variable", "key"),
    [
        ("openai/m", "OPENAI_BASE_URL", "OPENAI_API_KEY"),
        ("anthropic/m", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"),
        ("openai-compat/m", None, "OPENAI_COMPAT_API_KEY"),
    ],
)
def test_keys_and_addresses_come_from_the_environment(
    spec: str, variable: str | None, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with faulty("ok") as server:
        url = server.url + ("" if spec.startswith("anthropic") else "/v1")
        monkeypatch.setenv(key, "secret")
        if variable:
            monkeypatch.setenv(variable, url)

        async def go() -> Completion:
            model = create_model(spec, base_url=None if variable else url, timeout_s=5)
            try:
                return await model.complete(REQUEST)
            finally:
                await model.close()

        assert asyncio.run(go()).text == "hello"
        # Anthropic's SDK has sent it as the one header and as the other.
        assert "secret" in server.headers.get("authorization", "") + server.headers.get("x-api-key", "")
