"""A run folder → its report: every attempt's outcome and every score, from the records alone."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from llmdsl.judge.verdict import Outcome
from llmdsl.score import metrics
from llmdsl.score.funnel import beside, funnel
from llmdsl.score.intervals import METHOD
from llmdsl.score.metrics import ByTask, Estimate
from llmdsl.score.samples import Price, Sample, Tried, baselines, samples_of
from llmdsl.store.records import RunConfig
from llmdsl.store.run import RunFolder

REPORT_VERSION = 1


class Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class AttemptRow(Part):
    """One attempt. `outcome` is None where its answer waits for a verdict."""

    model: str
    dsl: str
    task: str
    sample: int
    attempt: int
    outcome: Outcome | None
    stage: str = ""
    problem: str = ""
    error: float | None = None
    speedup: dict[str, float] = {}
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    seconds: float = 0.0
    served_model: str = ""


class Score(Part):
    """One model in one DSL. `passed` means `correct`, in the compile tier `compiled`.

    `cold` counts first attempts by outcome, `final` last ones; `beside` counts last attempts held against nobody, and
    `not_run` samples without any attempt: neither is in a denominator. `cost` is None where a price is not known.
    """

    model: str
    dsl: str
    samples: int
    not_run: int
    beside: dict[str, int]
    cold: dict[str, int]
    final: dict[str, int]
    pass_at: dict[int, Estimate]
    pass_after: dict[int, Estimate]
    speedup: dict[str, Estimate]
    fast_p: dict[str, dict[float, Estimate]]
    input_tokens: int
    output_tokens: int
    cost: float | None
    seconds: float
    tokens_per_sample: Estimate | None
    cost_per_sample: Estimate | None
    seconds_per_sample: Estimate | None


class Report(Part):
    """What `llmdsl report` prints; as JSON, what `--json` prints."""

    version: int = REPORT_VERSION
    run: str
    created: str
    tier: str
    config: RunConfig
    intervals: str = METHOD
    attempts: tuple[AttemptRow, ...]
    scores: tuple[Score, ...]


def report(run: RunFolder, price: Price = lambda model, usage: None) -> Report:
    """Scores a run. Pure: the same records and prices give the same report, whether or not the run is complete."""
    samples = samples_of(run, price)
    rows = tuple(_row(sample, tried) for sample in samples for tried in sample.attempts)
    pairs = [(model, dsl) for dsl in run.config.dsls for model in run.config.models]
    timed = baselines(tried for sample in samples for tried in sample.attempts)
    scores = tuple(_score(model, dsl, samples, run.config, timed) for model, dsl in pairs)
    return Report(run=str(run.path), created=run.created, tier=run.config.tier, config=run.config, attempts=rows,
                  scores=scores)  # fmt: skip


def _row(sample: Sample, tried: Tried) -> AttemptRow:
    verdict = tried.verdict
    speedups = {name: verdict.speedup(name) for name in baselines([tried])} if verdict else {}
    return AttemptRow(
        **sample.slot._asdict(), attempt=tried.number, outcome=tried.outcome, stage=verdict.stage if verdict else "",
        problem=tried.problem, error=tried.error, speedup={k: v for k, v in speedups.items() if v is not None},
        input_tokens=tried.usage.input, output_tokens=tried.usage.output, cost=tried.cost, seconds=tried.seconds,
        served_model=tried.served_model,
    )  # fmt: skip


def _score(model: str, dsl: str, everything: list[Sample], config: RunConfig, timed: list[str]) -> Score:
    samples = [s for s in everything if (s.slot.model, s.slot.dsl) == (model, dsl)]
    tasks: ByTask = {}
    for sample in samples:
        tasks.setdefault(sample.slot.task, []).append(sample)
    tried = [attempt for sample in samples for attempt in sample.attempts]
    cold = [sample.attempts[0].outcome for sample in samples if sample.attempts]
    final = [sample.last.outcome for sample in samples if sample.last]
    ks = sorted({k for k in (1, 5, 10, 100) if k <= config.samples} | {config.samples})
    pass_at = {k: metrics.passes_at(tasks, k) for k in ks}
    pass_after = {n: metrics.passes_after(tasks, n) for n in range(1, config.attempts + 1)}
    return Score(
        model=model, dsl=dsl, samples=len(samples), not_run=sum(not sample.attempts for sample in samples),
        beside=beside(final), cold=funnel(o for o in cold if o), final=funnel(o for o in final if o),
        pass_at=_known(pass_at), pass_after=_known(pass_after),
        speedup=_known({name: metrics.geometric_mean_speedup(tasks, name) for name in timed}),
        fast_p={name: _known({p: metrics.fast_p(tasks, p, name) for p in metrics.FAST_P}) for name in timed},
        input_tokens=sum(t.usage.input for t in tried), output_tokens=sum(t.usage.output for t in tried),
        cost=_total_cost(tried), seconds=sum(t.seconds for t in tried),
        tokens_per_sample=metrics.mean_per_sample(tasks, lambda s: float(sum(t.usage.input + t.usage.output for t in s.attempts))),
        cost_per_sample=metrics.mean_per_sample(tasks, lambda s: _total_cost(s.attempts)),
        seconds_per_sample=metrics.mean_per_sample(tasks, lambda s: sum(t.seconds for t in s.attempts)),
    )  # fmt: skip


def _total_cost(tried: list[Tried] | tuple[Tried, ...]) -> float | None:
    answered = [t for t in tried if t.answered]
    return None if any(t.cost is None for t in answered) else sum(t.cost or 0.0 for t in answered)


def _known(estimates: dict) -> dict:
    return {name: value for name, value in estimates.items() if value is not None}
