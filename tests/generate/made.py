"""A model and a judge small enough to read, for what is not about models or judging."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from llmdsl.dsls.base import Dsl
from llmdsl.dsls.registry import load_dsl
from llmdsl.judge.verdict import JUDGE_VERSION, CaseResult, Diagnostic, Outcome, Timing, Verdict
from llmdsl.models.base import Completion, Request, Sampling, Usage
from llmdsl.store.records import RunConfig
from llmdsl.tasks.load import load_task
from llmdsl.tasks.task import Task

TASK, DSL = load_task("softmax"), load_dsl("triton")


def config(**changes: object) -> RunConfig:
    fields = dict(
        models=("mock/a",), dsls=("triton",), tasks=("softmax",), samples=1, attempts=1, tier="interpret", archs=(),
        sampling=Sampling(), context="signature", prompts_hash="0" * 16, task_versions={"softmax": 1},
        judge_version=JUDGE_VERSION,
    )  # fmt: skip
    return RunConfig(**(fields | changes))


def answer(word: str) -> str:
    """A file that `WordJudge` judges as `word`."""
    return f"```python\ndef softmax(x):\n    return {word!r}\n```"


def verdict(
    outcome: str, speedup: float | None = None, diagnostics: Iterable[Diagnostic] = (), **fields: object
) -> Verdict:
    cases: tuple[CaseResult, ...] = ()
    if speedup is not None:
        timing = Timing(
            candidate_us=10.0, candidate_interval_us=(9.9, 10.1), baselines_us={"eager": 10.0 * speedup}
        )
        cases = (CaseResult(case="bench-float32", status="passed", timing=timing),)
    common = dict(task="softmax", task_version=1, dsl="triton", tier="interpret", cases=cases)
    return Verdict(outcome=Outcome(outcome), diagnostics=tuple(diagnostics), **(common | fields))


@dataclass
class WordModel:
    """Answers request n of (sample, attempt) with what `say` returns; counts what it was asked."""

    say: Callable[[Request], str | Completion | Exception]
    name: str = "mock/a"
    seconds: float = 0.0
    asked: list[Request] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0

    async def complete(self, request: Request) -> Completion:
        self.asked.append(request)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.at_once -= 1
        said = self.say(request)
        if isinstance(said, Exception):
            raise said
        if isinstance(said, Completion):
            return said
        return Completion(text=said, served_model="a-1", usage=Usage(input=100, output=50))

    async def close(self) -> None: ...


@dataclass
class WordJudge:
    """Judges `return 'crash'` as crash, and so on for every outcome."""

    tier: str = "interpret"
    judged: list[str] = field(default_factory=list)
    threads: set[str] = field(default_factory=set)
    raises: Exception | None = None

    def judge(self, source: str, *, task: Task, dsl: Dsl) -> Verdict:
        if self.raises:
            raise self.raises
        self.judged.append(source)
        self.threads.add(threading.current_thread().name)
        word = source.split("'")[1]
        return verdict(
            word, diagnostics=[Diagnostic(kind="note", message=f"said {word}")], task=task.name, dsl=dsl.name
        )
