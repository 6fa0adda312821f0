"""What a run will ask, and what that will cost."""

from __future__ import annotations

import pytest

from llmdsl.errors import LlmdslError, UnknownDsl, UnknownTask
from llmdsl.generate.plan import chosen_dsls, chosen_tasks, estimates, make_plan, replan, split, unfinished
from llmdsl.generate.prompt import cold_messages
from llmdsl.judge.verdict import JUDGE_VERSION
from llmdsl.models.base import Completion, Sampling, Usage
from llmdsl.store.history import History, history
from llmdsl.store.records import CompletionRecord, Slot, VerdictRecord
from llmdsl.store.run import differences
from llmdsl.tasks.load import task_names
from tests.generate.made import DSL, TASK, verdict


def plan(**changes: object):
    return make_plan(
        **(dict(models=["mock/a"], dsls=["triton"], tasks=["softmax"], tier="interpret") | changes)
    )


def price(model: str, usage: Usage) -> float | None:
    return usage.input * 1e-6 + usage.output * 1e-5 if model == "mock/a" else None


def test_the_config_holds_what_makes_two_runs_the_same_question() -> None:
    config = plan(models=["mock/a", "mock/a", "mock/b"]).config
    assert config.models == ("mock/a", "mock/b") and config.task_versions == {"softmax": TASK.version}
    assert config.judge_version == JUDGE_VERSION and len(config.prompts_hash) == 16
    assert config.prompts_hash != plan(context="guide").config.prompts_hash


def test_replan_changes_only_what_is_asked() -> None:
    config = plan(samples=3, sampling=Sampling(temperature=0.2)).config
    assert replan(config).config == config
    (change,) = differences(config, replan(config, samples=4).config)
    assert change.startswith("samples: ")


def test_unknown_names() -> None:
    with pytest.raises(UnknownTask, match="softmax"):
        plan(tasks=["softmaks"])
    with pytest.raises(UnknownDsl, match="triton"):
        plan(dsls=["tritan"])
    with pytest.raises(LlmdslError, match="guide\\+example"):
        plan(context="everything")


def test_option_lists() -> None:
    assert split(["a,b", " c ,a", ""]) == ["a", "b", "c"]
    assert chosen_tasks(["softmax,matmul"]) == ["softmax", "matmul"]
    assert chosen_tasks([]) == chosen_tasks(["all"]) == task_names()
    assert chosen_tasks([""], limit=3) == task_names()[:3]


def test_all_dsls_are_those_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen_dsls(["triton,cute"]) == ["triton", "cute"]
    monkeypatch.setattr(
        "llmdsl.generate.plan.lacking", lambda dsl: [] if dsl.suffix == ".cu" else ["a package"]
    )
    assert chosen_dsls(["all"]) == ["cuda"]


def test_an_estimate_by_hand() -> None:
    sampling = Sampling(max_tokens=4000)
    prompt = sum(len(m.content) for m in cold_messages(TASK, DSL)) // 4
    (one,) = estimates(plan(samples=2, attempts=2, sampling=sampling), {}, price)
    assert (one.requests, one.requests_at_most) == (2, 4)
    assert (one.input_tokens, one.output_tokens) == (2 * prompt, 2 * 1500)
    assert (one.input_tokens_at_most, one.output_tokens_at_most) == (4 * prompt + 2 * (4000 + 1500), 4 * 4000)
    assert one.cost == pytest.approx(2 * prompt * 1e-6 + 3000 * 1e-5)
    (short,) = estimates(plan(models=["mock/b"], sampling=Sampling(max_tokens=100)), {}, price)
    assert short.output_tokens == 100 and short.cost is None


def recorded(*words: str | None) -> History:
    """Attempts of sample 0, by outcome; None: not judged yet."""
    records: list[CompletionRecord | VerdictRecord] = []
    for number, word in enumerate(words, start=1):
        key = Slot("mock/a", "triton", "softmax", 0).key(number)
        records.append(
            CompletionRecord(time="", key=key, messages=(), completion=Completion(text="", served_model="a"))
        )
        if word:
            records.append(VerdictRecord(time="", key=key, source="", verdict=verdict(word)))
    return history(records)


@pytest.mark.parametrize(
    ("words", "requests", "at_most", "is_unfinished"),
    [
        ((), 1, 3, True),
        (("correct",), 0, 0, False),
        (("unsupported",), 0, 0, False),
        (("crash",), 0, 2, True),
        (("crash", "crash", "crash"), 0, 0, False),
        (("crash", "crash", None), 0, 0, True),
        (("crash", "crash", "infra_error"), 0, 0, True),
        ((None,), 0, 2, True),
    ],
)
def test_what_is_recorded_is_not_estimated(
    words: tuple, requests: int, at_most: int, is_unfinished: bool
) -> None:
    done = recorded(*words)
    (one,) = estimates(plan(attempts=3), done, price)
    assert (one.requests, one.requests_at_most) == (requests, at_most)
    assert unfinished(Slot("mock/a", "triton", "softmax", 0), 3, done) is is_unfinished
