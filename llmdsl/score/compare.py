"""Runs → DSLs (or models, contexts, runs) side by side, paired by task and by everything else that both share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from llmdsl.errors import Incomparable
from llmdsl.score import metrics
from llmdsl.score.effects import Count, Effect, side_effects
from llmdsl.score.funnel import beside, funnel
from llmdsl.score.intervals import CONFIDENCE, METHOD, TIE, holm, sign_test
from llmdsl.score.metrics import Estimate
from llmdsl.score.samples import Sample, baselines, samples_of
from llmdsl.store.run import RunFolder

COMPARISON_VERSION = 2
FAST_P = (0.0, 0.5, 0.8, 1.0, 1.2, 1.5, 2.0)
Axis = Literal["dsl", "model", "context", "run"]
AXES: tuple[Axis, ...] = ("dsl", "model", "context", "run")
Unit = Literal["share", "ratio"]
Of = Callable[[Sequence[Sample]], float | None]


class Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Difference(Part):
    """`first` against `second` in one metric, over the tasks in which both have a value.

    `difference` is first minus second, for a speedup first over second. `p` is the sign test's over tasks, `holm_p` the
    same corrected for the number of pairs compared in this metric. `winner` is None where the data cannot tell, and
    `reason` says why. `better` and `worse` name the tasks in which first is above and below second, `left_out` those
    that a side was asked for but that have no value on both: not attempted, or for a speedup not right in both.
    """

    first: str
    second: str
    difference: Estimate | None
    p: float
    holm_p: float
    winner: str | None
    reason: str
    better: tuple[str, ...]
    worse: tuple[str, ...]
    left_out: tuple[str, ...]


class Metric(Part):
    """`values` holds each side's value over the cells that all sides have: the same tasks for each."""

    name: str
    unit: Unit
    values: dict[str, Estimate]
    differences: tuple[Difference, ...]


class Side(Part):
    """One of the things compared. `cold` counts first attempts by outcome, `final` last ones, `beside` what counts for
    nobody, `not_run` samples without any attempt."""

    name: str
    samples: int
    not_run: int
    cold: dict[str, int]
    final: dict[str, int]
    beside: dict[str, int]


class Missing(Part):
    """A task that `side` has no sample of that counts, though another side has: it is in no paired number."""

    side: str
    task: str
    unit: str  # what else the pair shares, e.g. the model; "" where there is only one
    reason: str


class Comparison(Part):
    """What `llmdsl compare` prints; as JSON, what `--json` prints."""

    version: int = COMPARISON_VERSION
    axis: Axis
    runs: tuple[str, ...]
    tier: str
    attempts: int
    intervals: str = METHOD
    sides: tuple[Side, ...]
    metrics: tuple[Metric, ...]
    effects: dict[str, Effect]  # by side, of first answers; empty where there is too little to fit
    missing: tuple[Missing, ...]
    notes: tuple[str, ...]


class Cell(NamedTuple):
    """What one side did on one task, all else being equal: `unit` is (dsl, model, context) without the axis."""

    side: str
    unit: tuple[str, ...]
    task: str


Cells = dict[Cell, list[Sample]]


def compare(runs: Sequence[RunFolder], axis: Axis | None = None) -> Comparison:
    """Compares along `axis`, by default the first of dsl, model, context and run of which there are two or more.

    Pure: the same records give the same comparison. Samples that several runs hold of the same cell are pooled. Raises
    Incomparable where the runs were judged in different tiers, by different judges or on different GPUs, or where
    there is nothing to compare.
    """
    runs = list({run.path.resolve(): run for run in runs}.values())
    _refuse_mixtures(runs)
    axis = axis or _axis(runs)
    attempts = min(run.config.attempts for run in runs)
    cells, skipped = _cells(runs, axis, attempts)
    sides = list(dict.fromkeys(cell.side for cell in cells))
    if len(sides) < 2:
        raise Incomparable(
            f"there is only one {axis} in what was given: {', '.join(sides) or 'none'}. Give more runs, or another "
            "axis: `llmdsl compare RUN RUN --by dsl|model|context|run`."
        )
    measures = _measures(runs, cells, attempts)
    return Comparison(
        axis=axis, runs=tuple(str(run.path) for run in runs), tier=runs[0].config.tier, attempts=attempts,
        sides=tuple(_side(side, cells) for side in sides),
        metrics=tuple(_metric(name, unit, _values(cells, of), sides, cells) for name, unit, of in measures),
        effects=side_effects(_counts(cells)), missing=_missing(cells, sides), notes=_notes(runs, axis, attempts, skipped),
    )  # fmt: skip


def _refuse_mixtures(runs: Sequence[RunFolder]) -> None:
    for what, values in (
        ("in different tiers", {run.config.tier for run in runs}),
        ("by different versions of the judge", {str(run.config.judge_version) for run in runs}),
    ):
        if len(values) > 1:
            raise Incomparable(
                f"these runs were judged {what} ({', '.join(sorted(values))}): their numbers do not mean the same. "
                "Judge the answers of one again: `llmdsl eval --model replay/RUN`."
            )


def _axis(runs: Sequence[RunFolder]) -> Axis:
    configs = [run.config for run in runs]
    several: dict[Axis, set[str]] = {
        "dsl": {dsl for config in configs for dsl in config.dsls},
        "model": {model for config in configs for model in config.models},
        "context": {config.context for config in configs},
    }
    return next((axis for axis, values in several.items() if len(values) > 1), "run")


def _cells(runs: Sequence[RunFolder], axis: Axis, attempts: int) -> tuple[Cells, list[str]]:
    """Samples by cell, cut to the attempts that every run allowed; and the tasks left out because they changed."""
    versions: dict[str, set[int]] = {}
    for run in runs:
        for task, version in run.config.task_versions.items():
            versions.setdefault(task, set()).add(version)
    changed = sorted(task for task, known in versions.items() if len(known) > 1)
    cells: Cells = {}
    gpus: set[str] = set()
    for run in runs:
        for sample in samples_of(run):
            slot = sample.slot
            if slot.task in changed:
                continue
            names = {"dsl": slot.dsl, "model": slot.model, "context": run.config.context}
            side = str(run.path) if axis == "run" else names.pop(axis)
            cell = Cell(side, tuple(names.values()), slot.task)
            cut = replace(sample, allowed=min(attempts, sample.allowed), attempts=sample.attempts[:attempts])
            cells.setdefault(cell, []).append(cut)
            gpus |= {
                str(t.verdict.hardware["gpu"])
                for t in cut.attempts
                if t.verdict and "gpu" in t.verdict.hardware
            }
    if len(gpus) > 1:
        raise Incomparable(
            f"these runs were timed on different GPUs ({', '.join(sorted(gpus))}): their speeds do not compare. "
            "Judge the answers of one again on the other machine: `llmdsl eval --model replay/RUN`."
        )
    return cells, changed


def _measures(runs: Sequence[RunFolder], cells: Cells, attempts: int) -> list[tuple[str, Unit, Of]]:
    """(name, unit, value of one cell) of every metric that these runs can have."""
    k = min(run.config.samples for run in runs)
    found: list[tuple[str, Unit, Of]] = [
        (f"pass@{n}", "share", lambda samples, n=n: metrics.task_pass_at(samples, n))
        for n in sorted({1, *(n for n in (5, 10, 100) if n <= k), k})
    ]
    found += [
        (f"pass after {n} attempts", "share", lambda samples, n=n: metrics.task_pass_after(samples, n))
        for n in range(2, attempts + 1)
    ]
    for name in baselines(
        tried for samples in cells.values() for sample in samples for tried in sample.attempts
    ):
        found += [
            (
                f"fast_{p:g} over {name}",
                "share",
                lambda samples, p=p, b=name: metrics.task_fast_p(samples, p, b),
            )
            for p in FAST_P
        ]
        found.append(
            (f"speedup over {name}", "ratio", lambda samples, b=name: metrics.task_log_speedup(samples, b))
        )
    return found


def _values(cells: Cells, of: Of) -> dict[Cell, float]:
    values = {cell: of(samples) for cell, samples in cells.items()}
    return {cell: value for cell, value in values.items() if value is not None}


def _metric(name: str, unit: Unit, values: dict[Cell, float], sides: list[str], cells: Cells) -> Metric:
    shared = set.intersection(*({(c.unit, c.task) for c in values if c.side == side} for side in sides))
    geometric = unit == "ratio"
    levels = {}
    for side in sides:
        of_side = [
            (c.task, value) for c, value in values.items() if c.side == side and (c.unit, c.task) in shared
        ]
        if level := metrics.estimate(list(_task_means(of_side).values()), geometric=geometric):
            levels[side] = level
    per_pair = {pair: _paired(values, *pair) for pair in combinations(sides, 2)}
    tests = [sign_test(list(differences.values())) for differences in per_pair.values()]
    rows = zip(per_pair.items(), tests, holm(tests), strict=True)
    differences = tuple(
        _difference(pair, of, geometric, p, corrected, asked=_tasks_of(cells, pair))
        for (pair, of), p, corrected in rows
    )
    return Metric(name=name, unit=unit, values=levels, differences=differences)


def _tasks_of(cells: Cells, sides: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(cell.task for cell in cells if cell.side in sides))


def _paired(values: dict[Cell, float], first: str, second: str) -> dict[str, float]:
    """Task → first minus second, a mean over the units (models, say) in which both have a value."""
    differences = [
        (cell.task, value - values[other])
        for cell, value in values.items()
        if cell.side == first and (other := cell._replace(side=second)) in values
    ]
    return _task_means(differences)


def _task_means(pairs: Iterable[tuple[str, float]]) -> dict[str, float]:
    by_task: dict[str, list[float]] = {}
    for task, value in pairs:
        by_task.setdefault(task, []).append(value)
    return {task: math.fsum(several) / len(several) for task, several in by_task.items()}


def _difference(
    pair: tuple[str, str],
    by_task: dict[str, float],
    geometric: bool,
    p: float,
    corrected: float,
    asked: list[str],
) -> Difference:
    found = metrics.estimate(list(by_task.values()), geometric=geometric)
    winner, reason = _decide(pair, found, 1.0 if geometric else 0.0, p, corrected)
    return Difference(
        first=pair[0], second=pair[1], difference=found, p=p, holm_p=corrected, winner=winner, reason=reason,
        better=tuple(task for task, value in by_task.items() if value > TIE),
        worse=tuple(task for task, value in by_task.items() if value < -TIE),
        left_out=tuple(task for task in asked if task not in by_task),
    )  # fmt: skip


def _decide(
    pair: tuple[str, str], found: Estimate | None, neutral: float, p: float, corrected: float
) -> tuple[str | None, str]:
    """Who is better, if interval and test both say so; and why not, if they do not."""
    limit = 1 - CONFIDENCE
    if found is None:
        return None, "no task in common"
    if found.low is None or found.high is None:
        return None, "one task only"
    if found.low <= neutral <= found.high:
        return None, f"interval holds {neutral:g}"
    if p >= limit:
        return None, f"sign test p = {p:.2g}"
    if corrected >= limit:
        return None, f"p = {corrected:.2g} over all pairs"
    return pair[found.value < neutral], f"p = {corrected:.2g}"


def _counts(cells: Cells) -> list[Count]:
    """First answers that count, and how many of them were right."""
    counts = []
    for (side, unit, task), samples in cells.items():
        passed = [right for sample in samples if (right := sample.passed_after(1)) is not None]
        counts.append(Count(side, unit, task, len(passed), sum(passed)))
    return counts


def _side(name: str, cells: Cells) -> Side:
    samples = [sample for cell, several in cells.items() if cell.side == name for sample in several]
    final = [sample.last.outcome for sample in samples if sample.last]
    cold = [sample.attempts[0].outcome for sample in samples if sample.attempts]
    return Side(
        name=name, samples=len(samples), not_run=sum(not sample.attempts for sample in samples),
        cold=funnel(o for o in cold if o), final=funnel(o for o in final if o), beside=beside(final),
    )  # fmt: skip


def _missing(cells: Cells, sides: list[str]) -> tuple[Missing, ...]:
    """Every (task, unit) that one side has a cold attempt of that counts, and another has not."""
    attempted = {cell for cell, samples in cells.items() if metrics.task_pass_at(samples, 1) is not None}
    units = {cell.unit for cell in cells}
    missing = []
    for unit, task in dict.fromkeys((cell.unit, cell.task) for cell in cells if cell in attempted):
        for side in sides:
            cell = Cell(side, unit, task)
            if cell not in attempted:
                shared = " · ".join(unit) if len(units) > 1 else ""
                missing.append(Missing(side=side, task=task, unit=shared, reason=_why(cells.get(cell))))
    return tuple(missing)


def _why(samples: list[Sample] | None) -> str:
    """Why no sample of a cell counts."""
    if samples is None:
        return "not asked for"
    known = beside(sample.attempts[0].outcome for sample in samples if sample.attempts)
    return ", ".join(known) or "not run"


def _notes(runs: Sequence[RunFolder], axis: Axis, attempts: int, changed: list[str]) -> tuple[str, ...]:
    """What a reader must know of the runs: what was cut, left out, or differs between them."""
    notes = []
    if changed:
        notes.append(f"Left out, because the runs hold different versions of the task: {', '.join(changed)}.")
    if any(run.config.attempts > attempts for run in runs):
        notes.append(f"Only the first {attempts} attempts of each sample count: not every run allowed more.")
    configs = [run.config.model_dump(mode="json") for run in runs]
    own = {
        "dsls",
        "models",
        "tasks",
        "samples",
        "attempts",
        "tier",
        "judge_version",
        "task_versions",
        "context",
    }
    # The prompts' hash follows from DSLs, tasks and context: it says something only where these are the same.
    if any(config[name] != configs[0][name] for config in configs for name in ("dsls", "tasks", "context")):
        own |= {"prompts_hash"}
    differing = [
        name for name in configs[0] if name not in own and any(c[name] != configs[0][name] for c in configs)
    ]
    if differing:
        notes.append(
            f"The runs also differ in {', '.join(differing)}: a difference may be theirs, not the {axis}'s."
        )
    return tuple(notes)
