"""Records in any order, with any repetition → one state per attempt."""

from __future__ import annotations

import pytest

from llmdsl.judge.verdict import Outcome, Verdict
from llmdsl.store.history import by_slot, history
from llmdsl.store.records import FailureRecord, Slot, VerdictRecord
from tests.store.made import completion, config

KEY = completion().key


def verdict(outcome: str) -> VerdictRecord:
    word = Verdict(outcome=Outcome(outcome), task="softmax", task_version=1, dsl="triton", tier="interpret")
    return VerdictRecord(time="", key=KEY, source="x", verdict=word)


def failure(kind: str) -> FailureRecord:
    return FailureRecord(time="", key=KEY, kind=kind, message="")


def test_the_first_completion_wins() -> None:
    (attempt,) = history([completion(text="one"), completion(text="two")]).values()
    assert attempt.completion == completion(text="one")


def test_an_answer_overrides_a_failure_and_the_last_failure_is_kept() -> None:
    (attempt,) = history([failure("timeout"), failure("rate_limited"), completion()]).values()
    assert attempt.completion and attempt.failure and attempt.failure.kind == "rate_limited"


@pytest.mark.parametrize(
    ("outcomes", "kept", "settled"),
    [
        (["crash", "correct"], "crash", True),
        (["infra_error"], "infra_error", False),
        (["infra_error", "correct", "infra_error"], "correct", True),
        (["infra_error", "unsupported"], "unsupported", True),
    ],
)
def test_the_first_verdict_that_is_no_infra_error_wins(outcomes: list[str], kept: str, settled: bool) -> None:
    (attempt,) = history(map(verdict, outcomes)).values()
    assert attempt.verdict and attempt.verdict.verdict.outcome == kept
    assert attempt.settled is settled


def test_attempts_of_a_sample_come_in_order() -> None:
    slots = by_slot(history([completion(0, 2), completion(1, 1), completion(0, 1)]))
    assert {slot.sample: [a.key.attempt for a in attempts] for slot, attempts in slots.items()} == {
        0: [1, 2],
        1: [1],
    }


def test_slots_cover_the_run_tasks_slowest() -> None:
    slots = config(models=("a", "b"), tasks=("s", "t"), samples=2).slots()
    assert len(slots) == 8 and slots[:3] == [
        Slot("a", "triton", "s", 0),
        Slot("b", "triton", "s", 0),
        Slot("a", "triton", "s", 1),
    ]
    assert slots[0].key(1).slot == slots[0]
