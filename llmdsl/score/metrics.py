"""Scores of one model in one DSL. Tasks weigh alike; a failure is 0; what is not the model's doing is left out."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from pydantic import BaseModel, ConfigDict

from llmdsl.score.intervals import mean_interval
from llmdsl.score.samples import Sample

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
    """Mean over tasks with the interval of `mean_interval`; None without tasks.

    geometric: the values are logarithms; their mean and its bounds are exponentiated.
    """
    if not per_task:
        return None
    finish: Callable[[float], float] = math.exp if geometric else float
    low, high = mean_interval(per_task) or (None, None)
    return Estimate(
        value=finish(math.fsum(per_task) / len(per_task)), low=None if low is None else finish(low),
        high=None if high is None else finish(high), tasks=len(per_task),
    )  # fmt: skip


def passes_at(tasks: ByTask, k: int) -> Estimate | None:
    """pass@k of cold attempts: mean over the tasks that have at least k samples which count."""
    return _over_tasks(tasks, lambda samples: task_pass_at(samples, k))


def passes_after(tasks: ByTask, attempts: int) -> Estimate | None:
    """Share of samples that passed within the first `attempts` attempts, each after the first with feedback."""
    return _over_tasks(tasks, lambda samples: task_pass_after(samples, attempts))


def fast_p(tasks: ByTask, p: float, baseline: str) -> Estimate | None:
    """Share of samples that are correct and more than p times as fast as the baseline."""
    return _over_tasks(tasks, lambda samples: task_fast_p(samples, p, baseline))


def geometric_mean_speedup(tasks: ByTask, baseline: str) -> Estimate | None:
    """Over correct and timed samples only: within each task, then over the tasks that have any."""
    return _over_tasks(tasks, lambda samples: task_log_speedup(samples, baseline), geometric=True)


def mean_per_sample(tasks: ByTask, quantity: Callable[[Sample], float | None]) -> Estimate | None:
    """Mean of a quantity per sample with at least one answer, tasks weighing alike; None where it is unknown."""

    def of_answered(sample: Sample) -> float | None:
        return quantity(sample) if any(t.answered for t in sample.attempts) else None

    return _over_tasks(tasks, lambda samples: _mean(of_answered(sample) for sample in samples))


def task_pass_at(samples: Sequence[Sample], k: int) -> float | None:
    """pass@k of one task's cold attempts; None from fewer than k samples that count."""
    passed = [value for sample in samples if (value := sample.passed_after(1)) is not None]
    return pass_at_k(len(passed), sum(passed), k) if len(passed) >= k else None


def task_pass_after(samples: Sequence[Sample], attempts: int) -> float | None:
    """Share of one task's samples that passed within so many attempts; None where none counts."""
    return _mean(sample.passed_after(attempts) for sample in samples)


def task_fast_p(samples: Sequence[Sample], p: float, baseline: str) -> float | None:
    """Share of one task's samples that are correct and more than p times as fast as the baseline.

    fast_p of Ouyang et al. 2025, "KernelBench", section 3. A wrong answer, or one that was not timed, is not fast.
    """

    def fast(sample: Sample) -> float | None:
        if sample.passed_after(sample.allowed) is None:
            return None
        speedup = sample.speedup(baseline)
        return float(speedup is not None and speedup > p)

    return _mean(fast(sample) for sample in samples)


def task_log_speedup(samples: Sequence[Sample], baseline: str) -> float | None:
    """Mean logarithm of the speedup over one task's correct and timed samples; None where there is none."""
    speedups = (sample.speedup(baseline) for sample in samples)
    return _mean(None if speedup is None else math.log(speedup) for speedup in speedups)


def _over_tasks(
    tasks: ByTask, of: Callable[[list[Sample]], float | None], *, geometric: bool = False
) -> Estimate | None:
    values = [of(samples) for samples in tasks.values()]
    return estimate([value for value in values if value is not None], geometric=geometric)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [float(value) for value in values if value is not None]
    return sum(known) / len(known) if known else None
