from __future__ import annotations

from llmdsl.judge.verdict import JUDGE_VERSION
from llmdsl.models.base import Completion, Message, Sampling, Usage
from llmdsl.store.records import CompletionRecord, Key, RunConfig


def config(**changes: object) -> RunConfig:
    fields = dict(
        models=("mock/a",), dsls=("triton",), tasks=("softmax",), samples=2, attempts=1, tier="interpret", archs=(),
        sampling=Sampling(), prompts_hash="0" * 16, task_versions={"softmax": 1}, judge_version=JUDGE_VERSION,
    )  # fmt: skip
    return RunConfig(**(fields | changes))


def completion(sample: int = 0, attempt: int = 1, text: str = "answer") -> CompletionRecord:
    return CompletionRecord(
        time="2026-12-01T00:00:00.000+00:00",
        key=Key(model="mock/a", dsl="triton", task="softmax", sample=sample, attempt=attempt),
        messages=(Message(role="user", content="question"),),
        completion=Completion(text=text, served_model="a", usage=Usage(input=3, output=2)),
    )
