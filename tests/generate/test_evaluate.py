"""The driver: what is asked, recorded and judged, in every order of failures."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from llmdsl.errors import NoSandbox
from llmdsl.generate.budget import Budget
from llmdsl.generate.evaluate import Answered, Asked, Evaluation, Event, Failed, Finished, Judged
from llmdsl.models.base import Completion, ModelError, Request, Sampling, Usage
from llmdsl.store.history import history
from llmdsl.store.records import RunConfig
from llmdsl.store.run import RunFolder
from tests.generate.made import DSL, TASK, WordJudge, WordModel, answer, config


def evaluate(path: Path, run_config: RunConfig, model: WordModel, judge: WordJudge | None = None,
             **options: object) -> list[Event]:  # fmt: skip
    """Runs or resumes the run at `path`; the events it emitted."""
    events: list[Event] = []
    exists = (path / "run.json").exists()
    with RunFolder.resume(path) if exists else RunFolder.create(path, run_config, {}) as folder:
        evaluation = Evaluation(folder, {"mock/a": model}, {"softmax": TASK}, {"triton": DSL}, judge or WordJudge(),
                                on_event=events.append, **options)  # fmt: skip
        asyncio.run(evaluation.run())
    return events


def outcomes(path: Path) -> dict[tuple[int, int], str]:
    """(sample, attempt) → outcome, or the kind of the provider's failure."""
    found = {}
    for key, attempt in history(RunFolder.open(path).records()).items():
        word = (
            attempt.verdict.verdict.outcome.value
            if attempt.verdict
            else attempt.failure and attempt.failure.kind
        )
        found[key.sample, key.attempt] = word
    return found


def by_sample(*words: str) -> Callable[[Request], str]:
    return lambda request: answer(words[request.sample])


def test_every_sample_is_asked_judged_and_recorded(tmp_path: Path) -> None:
    model, judge = WordModel(by_sample("correct", "crash", "timeout")), WordJudge()
    events = evaluate(tmp_path, config(samples=3), model, judge)
    assert outcomes(tmp_path) == {(0, 1): "correct", (1, 1): "crash", (2, 1): "timeout"}
    assert [type(e) for e in events if e.__class__ is not Asked].count(Judged) == 3
    assert judge.threads and all(name.startswith("judge") for name in judge.threads)
    for kind in (Asked, Answered, Judged, Finished):
        assert sum(isinstance(event, kind) for event in events) == 3


def test_requests_in_flight_are_bounded(tmp_path: Path) -> None:
    model = WordModel(lambda request: answer("crash"), seconds=0.01)
    evaluate(tmp_path, config(samples=12), model, concurrency=3)
    assert model.most_at_once == 3 and len(model.asked) == 12


def test_repairs_until_one_passes(tmp_path: Path) -> None:
    words = iter(["syntax_error", "wrong_result", "correct", "never asked"])
    model = WordModel(lambda request: answer(next(words)))
    evaluate(tmp_path, config(attempts=4), model)
    assert outcomes(tmp_path) == {(0, 1): "syntax_error", (0, 2): "wrong_result", (0, 3): "correct"}
    first, second, third = (request.messages for request in model.asked)
    assert [m.role for m in first] == ["system", "user"]
    assert [m.role for m in third] == ["system", "user", "assistant", "user"], (
        "the last attempt alone is shown"
    )
    assert second[:2] == first and "return 'syntax_error'" in second[2].content
    assert "judged `wrong_result`" in third[3].content and "said wrong_result" in third[3].content


@pytest.mark.parametrize("word", ["unsupported", "infra_error"])
def test_what_is_not_the_models_doing_is_not_repaired(tmp_path: Path, word: str) -> None:
    model = WordModel(lambda request: answer(word))
    evaluate(tmp_path, config(attempts=3), model)
    assert len(model.asked) == 1


def test_no_code_is_an_outcome_with_the_finish_reason(tmp_path: Path) -> None:
    cut = Completion(text="<think>Let me", finish_reason="length", served_model="a")
    judge = WordJudge()
    evaluate(tmp_path, config(attempts=2), WordModel(lambda request: cut), judge)
    assert outcomes(tmp_path) == {(0, 1): "no_code", (0, 2): "no_code"} and not judge.judged
    (_, attempt) = history(RunFolder.open(tmp_path).records()).values()
    assert attempt.verdict and attempt.verdict.source is None
    assert "finish reason: length" in attempt.verdict.verdict.diagnostics[0].message


def test_a_truncated_file_says_so(tmp_path: Path) -> None:
    cut = Completion(
        text="```python\ndef softmax(x):\n    return 'syntax_error'\n    (",
        finish_reason="length",
        served_model="a",
    )
    evaluate(tmp_path, config(), WordModel(lambda request: cut))
    (attempt,) = history(RunFolder.open(tmp_path).records()).values()
    kinds = {d.kind: d.message for d in attempt.verdict.verdict.diagnostics}
    assert kinds["extraction"] == "the last block is not closed (finish reason: length)"


def test_a_provider_that_fails_is_recorded_and_asked_again_on_resume(tmp_path: Path) -> None:
    down = WordModel(
        lambda request: ModelError("server_error", "500", retries=4) if request.sample else answer("correct")
    )
    events = evaluate(tmp_path, config(samples=2), down)
    assert outcomes(tmp_path) == {(0, 1): "correct", (1, 1): "server_error"}
    (failed,) = (event for event in events if isinstance(event, Failed))
    assert failed.record.retries == 4
    up = WordModel(by_sample("never asked", "crash"))
    evaluate(tmp_path, config(samples=2), up)
    assert [request.sample for request in up.asked] == [1]
    assert outcomes(tmp_path) == {(0, 1): "correct", (1, 1): "crash"}


def test_a_providers_bug_costs_one_attempt(tmp_path: Path) -> None:
    model = WordModel(lambda request: KeyError("choices") if request.sample == 0 else answer("correct"))
    evaluate(tmp_path, config(samples=2), model)
    assert outcomes(tmp_path) == {(0, 1): "internal", (1, 1): "correct"}


def test_a_wrong_key_is_tried_once(tmp_path: Path) -> None:
    model = WordModel(lambda request: ModelError("auth", "no such key"))
    evaluate(tmp_path, config(samples=20), model, concurrency=1)
    assert len(model.asked) == 1


def test_resume_asks_for_nothing_that_is_there(tmp_path: Path) -> None:
    words = by_sample("crash", "correct")
    evaluate(tmp_path, config(samples=2, attempts=2), WordModel(words))
    before = list(RunFolder.open(tmp_path).records())
    model, judge = WordModel(words), WordJudge()
    events = evaluate(tmp_path, config(samples=2, attempts=2), model, judge)
    assert not model.asked and not judge.judged
    assert list(RunFolder.open(tmp_path).records()) == before
    assert sum(isinstance(e, Answered) and e.recorded for e in events) == 3
    assert sum(isinstance(e, Judged) and e.recorded for e in events) == 3


def test_an_answer_without_a_verdict_is_judged_not_asked(tmp_path: Path) -> None:
    with pytest.raises(NoSandbox):
        evaluate(tmp_path, config(), WordModel(by_sample("correct")), WordJudge(raises=NoSandbox("none")))
    assert outcomes(tmp_path) == {(0, 1): None}
    model = WordModel(by_sample("never asked"))
    evaluate(tmp_path, config(), model)
    assert not model.asked and outcomes(tmp_path) == {(0, 1): "correct"}


def test_an_infra_error_is_judged_again(tmp_path: Path) -> None:
    class Flaky(WordJudge):
        def judge(self, source: str, **options: object) -> object:
            return super().judge(source.replace("correct", "infra_error"), **options)

    evaluate(tmp_path, config(), WordModel(by_sample("correct")), Flaky())
    assert outcomes(tmp_path) == {(0, 1): "infra_error"}
    evaluate(tmp_path, config(), WordModel(by_sample("never asked")))
    assert outcomes(tmp_path) == {(0, 1): "correct"}


def test_a_request_says_which_sample_it_is_for(tmp_path: Path) -> None:
    """Providers make the sample's seed of it."""
    model = WordModel(lambda request: answer("crash"))
    evaluate(tmp_path, config(samples=3, sampling=Sampling(seed=7)), model)
    asked = [
        (request.sampling.seed, request.sample, request.attempt, request.task, request.dsl)
        for request in model.asked
    ]
    assert sorted(asked) == [(7, sample, 1, "softmax", "triton") for sample in range(3)]


def test_lone_surrogates_keep_no_answer_from_disk(tmp_path: Path) -> None:
    model = WordModel(lambda request: Completion(text=answer("crash") + "\ud800", served_model="a\udfff"))
    evaluate(tmp_path, config(attempts=2), model)
    assert outcomes(tmp_path) == {(0, 1): "crash", (0, 2): "crash"}


def test_max_tokens_stops_cleanly_and_resume_goes_on(tmp_path: Path) -> None:
    # An answer uses 150 tokens, its prompt is estimated at several hundred and its output at 1500.
    model = WordModel(lambda request: answer("correct"), seconds=0.001)
    evaluate(tmp_path, config(samples=50), model, budget=Budget(max_tokens=6_000), concurrency=8)
    done = len(model.asked)
    assert (
        10 < done < 50 and len(outcomes(tmp_path)) == done and set(outcomes(tmp_path).values()) == {"correct"}
    )
    assert done * 150 <= 6_000
    again = WordModel(lambda request: answer("correct"))
    evaluate(tmp_path, config(samples=50), again, budget=Budget(max_tokens=6_000))
    assert len(again.asked) == 0, "what the run spent before counts"
    evaluate(tmp_path, config(samples=50), again, budget=Budget(max_tokens=50_000))
    assert len(again.asked) + done == 50


def test_max_cost(tmp_path: Path) -> None:
    def price(model: str, usage: Usage) -> float:
        return usage.input * 1e-6 + usage.output * 1e-5

    model = WordModel(lambda request: answer("correct"))
    evaluate(tmp_path, config(samples=50), model, budget=Budget(max_cost=0.03), price=price, concurrency=1)
    assert 0.03 - 0.02 <= len(model.asked) * (100 * 1e-6 + 50 * 1e-5) <= 0.03


def test_a_budget_too_small_for_one_request_asks_for_none(tmp_path: Path) -> None:
    model = WordModel(lambda request: answer("correct"))
    evaluate(tmp_path, config(), model, budget=Budget(max_tokens=10))
    assert not model.asked
