"""The driver of a run: asks, records, judges, records; many samples at a time, everything it has done already skipped."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from llmdsl.dsls.base import Dsl
from llmdsl.generate.budget import Budget, OutOfBudget, Spent, typical_usage
from llmdsl.generate.extract import Extraction, extract
from llmdsl.generate.loop import run_sample
from llmdsl.generate.prompt import Messages, cold_messages
from llmdsl.judge.verdict import Diagnostic, Outcome, Tier, Verdict
from llmdsl.models.base import HOPELESS, Completion, Model, ModelError, Request
from llmdsl.store.history import Attempt, history
from llmdsl.store.records import CompletionRecord, FailureRecord, Key, Slot, VerdictRecord, now, storable
from llmdsl.store.run import RunFolder
from llmdsl.tasks.task import Task

Price = Callable[[str, object], float | None]


class CandidateJudge(Protocol):
    """What an evaluation needs of a judge: thread-safe, blocking, never raising for what a candidate does."""

    tier: Tier

    def judge(self, source: str, *, task: Task, dsl: Dsl) -> Verdict: ...


@dataclass(frozen=True)
class Asked:
    key: Key


@dataclass(frozen=True)
class Answered:
    """An answer is on disk. `recorded`: it was there before this process started."""

    key: Key
    completion: Completion
    spent: Spent
    recorded: bool = False


@dataclass(frozen=True)
class Failed:
    key: Key
    record: FailureRecord


@dataclass(frozen=True)
class Judged:
    key: Key
    verdict: Verdict
    recorded: bool = False


@dataclass(frozen=True)
class Finished:
    """A sample has no attempt left to make now."""

    slot: Slot


Event = Asked | Answered | Failed | Judged | Finished


class Evaluation:
    """Runs what is left of a run. `run` returns when every sample is done, failed, or out of budget."""

    def __init__(self, folder: RunFolder, models: Mapping[str, Model], tasks: Mapping[str, Task],
                 dsls: Mapping[str, Dsl], judge: CandidateJudge, *, concurrency: int = 8, judge_workers: int = 1,
                 budget: Budget | None = None, price: Price = lambda model, usage: None,
                 on_event: Callable[[Event], None] = lambda event: None):  # fmt: skip
        self._folder, self._config = folder, folder.config
        self._models, self._tasks, self._dsls, self._judge = models, tasks, dsls, judge
        self._requests = asyncio.Semaphore(concurrency)
        self._judging = ThreadPoolExecutor(judge_workers, thread_name_prefix="judge")
        self._budget = budget or Budget()
        self._price, self._emit = price, on_event
        self._history = history(folder.records())
        # Rendered once for all samples: a run can have thousands.
        self._cold = {(task, dsl): cold_messages(tasks[task], dsls[dsl], self._config.context)
                      for task in self._config.tasks for dsl in self._config.dsls}  # fmt: skip
        self._unusable: dict[str, FailureRecord] = {}
        self.out_of_budget = False
        for attempt in self._history.values():
            if attempt.completion:
                self._spend(attempt.key, attempt.completion.completion)

    @property
    def spent(self) -> Spent:
        """What the run has cost, before it was resumed included."""
        return self._budget.spent

    async def run(self) -> None:
        """Raises what the judge raises about the machine (NoSandbox, MissingDependency); models' errors are recorded."""
        samples = [asyncio.create_task(self._sample(slot)) for slot in self._config.slots()]
        try:
            for done in asyncio.as_completed(samples):
                await done
        finally:
            for sample in samples:
                sample.cancel()
            await asyncio.gather(*samples, return_exceptions=True)
            self._judging.shutdown(wait=False, cancel_futures=True)

    async def _sample(self, slot: Slot) -> None:
        try:
            await run_sample(slot, self._cold[slot.task, slot.dsl], self._tasks[slot.task], self._dsls[slot.dsl],
                             self._config.attempts, ask=self._ask, assess=self._assess)  # fmt: skip
        except OutOfBudget:
            self.out_of_budget = True
        self._emit(Finished(slot))

    async def _ask(self, key: Key, messages: Messages) -> Completion | None:
        if (known := self._history.get(key)) and known.completion:
            self._emit(Answered(key, known.completion.completion, self.spent, recorded=True))
            return known.completion.completion
        request = Request(messages=messages, sampling=self._config.sampling, task=key.task, dsl=key.dsl, sample=key.sample,
                          attempt=key.attempt)  # fmt: skip
        usage = typical_usage(messages, request.sampling)
        async with (
            self._requests,
            self._budget.reserve(usage.input + usage.output, self._price(key.model, usage)),
        ):
            if key.model in self._unusable:
                return None
            self._emit(Asked(key))
            try:
                completion = storable(await self._models[key.model].complete(request))
            except ModelError as error:
                return self._failed(key, error.kind, str(error), error.retries)
            except Exception as error:  # a provider's bug costs this attempt, not the other thousand
                return self._failed(key, "internal", f"{type(error).__name__}: {error}", 0)
            # On disk before anything else is done with it: the answer is paid for.
            self._folder.append(
                CompletionRecord(time=now(), key=key, messages=messages, completion=completion)
            )
            self._spend(key, completion)
        self._emit(Answered(key, completion, self.spent))
        return completion

    def _failed(self, key: Key, kind: str, message: str, retries: int) -> None:
        record = storable(
            FailureRecord(time=now(), key=key, kind=kind, message=message[:4000], retries=retries)
        )
        self._folder.append(record)
        if kind in HOPELESS:
            self._unusable[key.model] = record
        self._emit(Failed(key, record))

    async def _assess(self, key: Key, completion: Completion) -> VerdictRecord:
        known: Attempt | None = self._history.get(key)
        if known and known.settled:
            self._emit(Judged(key, known.verdict.verdict, recorded=True))
            return known.verdict
        task, dsl = self._tasks[key.task], self._dsls[key.dsl]
        found = extract(completion.text, entry=task.entry, fences=dsl.fences, suffix=dsl.suffix,
                        finish_reason=completion.finish_reason)  # fmt: skip
        if found.source is None:
            verdict = Verdict(outcome=Outcome.no_code, task=task.name, task_version=task.version, dsl=dsl.name,
                              tier=self._judge.tier, archs=self._config.archs, stage="extract",
                              diagnostics=(Diagnostic(kind="no_code", message=found.reason),))  # fmt: skip
        else:
            work = partial(self._judge.judge, found.source, task=task, dsl=dsl)
            verdict = await asyncio.get_running_loop().run_in_executor(self._judging, work)
            verdict = storable(_with_notes(verdict, found))
        record = VerdictRecord(time=now(), key=key, source=found.source, verdict=verdict)
        self._folder.append(record)
        self._emit(Judged(key, verdict))
        return record

    def _spend(self, key: Key, completion: Completion) -> None:
        self._budget.spent = self.spent.plus(completion.usage, self._price(key.model, completion.usage))


def _with_notes(verdict: Verdict, found: Extraction) -> Verdict:
    """What was unusual about a failed answer, beside what the judge found: a truncated file is no syntax mistake."""
    if verdict.outcome.passed or not found.notes:
        return verdict
    notes = tuple(Diagnostic(kind="extraction", message=note) for note in found.notes)
    return verdict.model_copy(update={"diagnostics": (*verdict.diagnostics, *notes)})
