"""A run folder → its report, by records alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llmdsl.judge.verdict import Outcome
from llmdsl.models.base import Completion, Usage
from llmdsl.score.funnel import beside, funnel
from llmdsl.score.report import Report, report
from llmdsl.store.records import CompletionRecord, FailureRecord, Slot, VerdictRecord
from llmdsl.store.run import RunFolder
from tests.generate.made import config, verdict


def price(model: str, usage: Usage) -> float | None:
    return usage.output * 0.01 if model == "mock/a" else None


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """mock/a: softmax repaired at 4x, add failed by its provider. mock/b: softmax wrong, add answered but not judged."""
    asked = config(
        models=("mock/a", "mock/b"),
        tasks=("softmax", "add"),
        attempts=2,
        task_versions={"softmax": 1, "add": 1},
    )
    with RunFolder.create(tmp_path / "run", asked, {}) as folder:

        def add(model: str, task: str, attempt: int, word: str | None, speedup: float | None = None) -> None:
            key = Slot(model, "triton", task, 0).key(attempt)
            answer = Completion(
                text="", served_model="served", usage=Usage(input=100, output=10), seconds=3.0
            )
            folder.append(CompletionRecord(time="", key=key, messages=(), completion=answer))
            if word:
                word_of_judge = verdict(word, speedup, tier="gpu")
                folder.append(VerdictRecord(time="", key=key, source="", verdict=word_of_judge))

        add("mock/a", "softmax", 1, "crash")
        add("mock/a", "softmax", 2, "correct", 4.0)
        add("mock/b", "softmax", 1, "wrong_result")
        add("mock/b", "softmax", 2, "wrong_result")
        add("mock/b", "add", 1, None)
        key = Slot("mock/a", "triton", "add", 0).key(1)
        folder.append(FailureRecord(time="", key=key, kind="timeout", message="no answer in 600 s"))
    return RunFolder.open(tmp_path / "run")


def test_every_attempt_has_a_row(run: RunFolder) -> None:
    rows = {(r.model, r.task, r.attempt): r.outcome for r in report(run, price).attempts}
    assert rows == {
        ("mock/a", "softmax", 1): Outcome.crash,
        ("mock/a", "softmax", 2): Outcome.correct,
        ("mock/b", "softmax", 1): Outcome.wrong_result,
        ("mock/b", "softmax", 2): Outcome.wrong_result,
        ("mock/a", "add", 1): Outcome.infra_error,
        ("mock/b", "add", 1): None,
    }
    failed = next(r for r in report(run, price).attempts if r.outcome is Outcome.infra_error)
    assert failed.problem == "timeout: no answer in 600 s"


def test_scores(run: RunFolder) -> None:
    a, b = report(run, price).scores
    assert (a.model, a.samples, a.not_run, a.beside) == ("mock/a", 2, 0, {"infra_error": 1})
    assert a.cold == {"crash": 1} and a.final == {"correct": 1}
    assert a.pass_at[1].value == 0.0 and a.pass_after[2].value == 1.0 and a.pass_after[2].tasks == 1
    assert a.speedup["eager"].value == pytest.approx(4.0) and a.fast_p["eager"][2.0].value == 1.0
    assert (a.input_tokens, a.output_tokens, a.seconds) == (200, 20, 6.0) and a.cost == pytest.approx(0.2)
    assert a.tokens_per_sample.value == 220
    assert b.beside == {"not_judged": 1} and b.final == {"wrong_result": 1}
    assert b.pass_after[2].value == 0.0 and "eager" not in b.speedup
    assert b.fast_p["eager"][0.5].value == 0.0, "a model that got nothing right is not left out of fast_p"
    assert b.cost is None and b.cost_per_sample is None, "no price is known: not 0"


def test_it_survives_json(run: RunFolder) -> None:
    made = report(run, price)
    assert Report.model_validate(json.loads(made.model_dump_json())) == made
    assert "seed 0" in made.intervals and made.tier == "interpret"


def test_nothing_run_yet(tmp_path: Path) -> None:
    with RunFolder.create(tmp_path / "run", config(samples=5), {}) as folder:
        (score,) = report(folder).scores
    assert score.not_run == 5 and score.pass_at == {} and score.cold == {} and score.cost == 0.0


def test_funnel_is_in_the_order_of_the_funnel() -> None:
    outcomes = [Outcome.correct, Outcome.no_code, Outcome.crash, Outcome.crash, Outcome.infra_error]
    assert list(funnel(outcomes).items()) == [("no_code", 1), ("crash", 2), ("correct", 1)]
    assert beside([*outcomes, None, Outcome.unsupported]) == {
        "infra_error": 1,
        "not_judged": 1,
        "unsupported": 1,
    }
