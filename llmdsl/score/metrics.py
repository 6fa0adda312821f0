"""Scores of one model in one DSL. Tasks weigh alike; a failure is 0; what is not the model's doing is left out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from pydantic import BaseModel, ConfigDict

from llmdsl.score.samples import Sample

RESAMPLES = 2_000
SEED = 0
CONFIDENCE = 0.95
FAST_P = (0.5, 0.8, 1.0, 1.5, 2.0, 4.0)

ByTask = dict[str, list[Sample]]


class Estimate(BaseModel):
    """A mean over `tasks` tasks with its 95 % bootstrap interval; no interval from fewer than two tasks."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    value: float
    low: float | None = None
    high: float | None = None
    tasks: int


def pass_at_k(n: int, c: int, k: int) -> float:
    """Probability that one of k draws without replacement from n samples, c of them right, is right.

    The unbiased estimator 1 - C(n-c, k) / C(n, k) of Chen et al. 2021, "Evaluating Large Language Models Trained on
    Code", equation 1. Raises ValueError unless 0 <= c <= n and 1 <= k <= n.
    """
    if not (0 <= c <= n and 1 <= k <= n):
        raise ValueError(f"pass@k needs 0 <= c <= n and 1 <= k <= n, not n={n}, c={c}, k={k}")
    return 1.0 - math.comb(n - c, k) / math.comb(n, k)


def estimate(per_task: Sequence[float], *, geometric: bool = False) -> Estimate | None:
    """Mean over tasks with its percentile bootstrap interval (2000 resamples of tasks, seed 0); None without tasks.

    geometric: the values are logarithms; their mean and its bounds are exponentiated.
    """
    import numpy as np

    if not per_task:
        return None
    values = np.asarray(per_task, dtype=np.float64)
    finish: Callable[[float], float] = math.exp if geometric else float
    low = high = None
    if len(values) > 1:
        picks = np.random.default_rng(SEED).integers(0, len(values), size=(RESAMPLES, len(values)))
        tail = (1 - CONFIDENCE) / 2
        bounds = np.quantile(values[picks].mean(axis=1), [tail, 1 - tail])
        low, high = (finish(float(bound)) for bound in bounds)
    return Estimate(value=finish(float(values.mean())), low=low, high=high, tasks=len(values))


def passes_at(tasks: ByTask, k: int) -> Estimate | None:
    """pass@k of cold attempts: mean over the tasks that have at least k samples which count."""
    per_task = []
    for samples in tasks.values():
        passed = _counted(sample.passed_after(1) for sample in samples)
        if len(passed) >= k:
            per_task.append(pass_at_k(len(passed), sum(passed), k))
    return estimate(per_task)


def passes_after(tasks: ByTask, attempts: int) -> Estimate | None:
    """Share of samples that passed within the first `attempts` attempts, each after the first with feedback."""
    return _mean(tasks, lambda sample: _number(sample.passed_after(attempts)))


def fast_p(tasks: ByTask, p: float, baseline: str) -> Estimate | None:
    """Share of samples that are correct and more than p times as fast as the baseline.

    fast_p of Ouyang et al. 2025, "KernelBench", section 3. A wrong answer, or one that was not timed, is not fast.
    """

    def fast(sample: Sample) -> float | None:
        if sample.passed_after(sample.allowed) is None:
            return None
        speedup = sample.speedup(baseline)
        return float(speedup is not None and speedup > p)

    return _mean(tasks, fast)


def geometric_mean_speedup(tasks: ByTask, baseline: str) -> Estimate | None:
    """Over correct and timed samples only: within each task, then over the tasks that have any."""
    logs = [
        [math.log(s) for sample in samples if (s := sample.speedup(baseline)) is not None]
        for samples in tasks.values()
    ]
    return estimate([sum(task) / len(task) for task in logs if task], geometric=True)


def mean_per_sample(tasks: ByTask, quantity: Callable[[Sample], float | None]) -> Estimate | None:
    """Mean of a quantity per sample with at least one answer, tasks weighing alike; None where it is unknown."""
    return _mean(tasks, lambda sample: quantity(sample) if any(t.answered for t in sample.attempts) else None)


def _mean(tasks: ByTask, of: Callable[[Sample], float | None]) -> Estimate | None:
    per_task = [_counted(of(sample) for sample in samples) for samples in tasks.values()]
    return estimate([sum(values) / len(values) for values in per_task if values])


def _counted(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _number(passed: bool | None) -> float | None:
    return None if passed is None else float(passed)
