"""The judge's front door: `judge(source, task=…, dsl=…)` for one candidate, `Judge` for many."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Sequence

from llmdsl.dsls.base import Dsl
from llmdsl.dsls.registry import load_dsl
from llmdsl.errors import InfraError
from llmdsl.judge import hardware
from llmdsl.judge.lane import Lane
from llmdsl.judge.pool import Environment, Pool
from llmdsl.judge.tiers import best_tier
from llmdsl.judge.trial import Trial
from llmdsl.judge.verdict import CaseResult, Outcome, Tier, Verdict
from llmdsl.runner.confine import Limits
from llmdsl.tasks.load import load_task
from llmdsl.tasks.task import Case, Task

_RETRIES = 2  # of a judge's own fault, never of a candidate's


def judge(source: str, *, task: str | Task, dsl: str | Dsl, tier: Tier | None = None, archs: Sequence[str] = (),
          seed: int | None = None, unsafe_no_sandbox: bool = False) -> Verdict:  # fmt: skip
    """Judges one candidate: a training loop's reward, an agent's check.

    source: the candidate's file. tier: the best this machine has unless named. seed: secret and fresh unless given;
    the verdict records it. Never raises for what a candidate does. Raises UnknownTask, UnknownDsl,
    MissingDependency (the DSL is not installed here), NoSandbox.
    """
    with Judge(tier=tier, archs=archs, workers=1, unsafe_no_sandbox=unsafe_no_sandbox) as one:
        return one.judge(source, task=task, dsl=dsl, seed=seed)


class Judge:
    """Keeps runners warm and judges candidates from any number of threads, `workers` at a time.

    On a GPU each is timed while the others wait. Trust that only where candidates are not hostile to each other: with
    `workers` above 1, one that never stops computing takes time from another that is timed.
    """

    def __init__(self, *, tier: Tier | None = None, archs: Sequence[str] = (), workers: int = 1,
                 unsafe_no_sandbox: bool = False, limits: Limits | None = None,
                 timeout_s: float | None = None):  # fmt: skip
        self.tier = tier
        self.archs = tuple(archs)
        self._limits = limits or Limits()
        self._timeout_s = timeout_s
        self._pool = Pool(sandbox=not unsafe_no_sandbox)
        self._slots = threading.BoundedSemaphore(workers)
        self._lane = Lane()  # while one is timed on the GPU, no other may use it

    def __enter__(self) -> Judge:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends all runners."""
        self._pool.close()

    def judge(self, source: str, *, task: str | Task, dsl: str | Dsl, seed: int | None = None) -> Verdict:
        """The verdict on one candidate. Thread-safe; waits for a free worker."""
        task = load_task(task) if isinstance(task, str) else task
        dsl = load_dsl(dsl) if isinstance(dsl, str) else dsl
        seed = secrets.randbits(62) if seed is None else seed
        tier = self.tier or best_tier(dsl.tiers)
        if tier not in dsl.tiers:
            return _unsupported(task, dsl, tier, f"{dsl.title} has no {tier} tier")
        with self._slots:
            started = time.monotonic()
            for attempt in range(_RETRIES + 1):
                try:
                    verdict = self._judge(source, task, dsl, tier, seed)
                    break
                except InfraError as error:
                    if attempt == _RETRIES:
                        verdict = _infra(task, dsl, tier, str(error))
            seconds = {"total": round(time.monotonic() - started, 3)}
            return verdict.model_copy(update={"seconds": seconds, "seed": seed})

    def _judge(self, source: str, task: Task, dsl: Dsl, tier: Tier, seed: int) -> Verdict:
        environment = Environment(dsl.backend, tier, dsl.packages, dsl.install)
        zygote = self._pool.zygote(environment)
        archs = (self.archs or dsl.archs) if tier == "compile" else (dsl.archs[0],)
        trials: list[Trial] = []
        for arch in archs:
            with zygote.fork(self._limits, tier, arch) as candidate:
                trial = Trial(task, dsl, tier, candidate, self._timeout_s or task.timeout_s, seed,
                              self._lane)  # fmt: skip
                trial.run(source, cases_of(task, tier))
            trials.append(trial)
            if not trial.outcome().passed:
                break  # one arch that fails settles it
        last = trials[-1]
        return Verdict(
            outcome=last.outcome(), task=task.name, task_version=task.version, dsl=dsl.name, tier=tier,
            archs=tuple(archs) if tier == "compile" else (), stage=last.stage,
            diagnostics=tuple(diagnostic for _, diagnostic in last.faults), cases=_merged(trials, archs, tier),
            kernels=tuple(sorted({name for trial in trials for name in trial.kernels})), sandbox=last.sandbox,
            versions=zygote.versions, hardware=hardware.describe() if tier == "gpu" else {},
        )  # fmt: skip


def cases_of(task: Task, tier: str) -> list[Case]:
    """Interpret: test cases. GPU: test and bench cases. Compile: one test case per dtype and layout, and bench shapes."""
    if tier == "gpu":
        return [*task.test_cases, *task.bench_cases]
    if tier == "interpret":
        return list(task.test_cases)
    chosen: dict[tuple[str, str], Case] = {}
    for case in task.test_cases:
        chosen.setdefault((case.dtype, case.layout), case)
    return [*chosen.values(), *task.bench_cases]


def _merged(trials: list[Trial], archs: Sequence[str], tier: str) -> tuple[CaseResult, ...]:
    if tier != "compile":
        return tuple(trials[-1].cases)
    return tuple(
        case.model_copy(update={"case": f"{case.case}@{arch}"})
        for trial, arch in zip(trials, archs, strict=False)
        for case in trial.cases
    )


def _unsupported(task: Task, dsl: Dsl, tier: Tier, reason: str) -> Verdict:
    from llmdsl.judge.verdict import Diagnostic

    return Verdict(outcome=Outcome.unsupported, task=task.name, task_version=task.version, dsl=dsl.name, tier=tier,
                   diagnostics=(Diagnostic(kind="unsupported", message=reason),))  # fmt: skip


def _infra(task: Task, dsl: Dsl, tier: Tier, reason: str) -> Verdict:
    from llmdsl.judge.verdict import Diagnostic

    return Verdict(outcome=Outcome.infra_error, task=task.name, task_version=task.version, dsl=dsl.name, tier=tier,
                   diagnostics=(Diagnostic(kind="infra", message=reason),))  # fmt: skip
