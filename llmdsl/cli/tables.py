"""A report as rich tables: what each model got on each task, then the scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from llmdsl.cli.clean import clean, one_line
from llmdsl.judge.verdict import Outcome

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from llmdsl.score.metrics import Estimate
    from llmdsl.score.report import AttemptRow, Report, Score

_SEQUENCES = 3  # samples of a cell that are written out; more are counted


def print_report(console: Console, report: Report) -> None:
    """Both tables, what they mean, and what went wrong first for each model."""
    from rich.text import Text

    console.print(Text(f"Outcomes in tier {report.tier}", style="bold"))
    console.print(outcome_table(report))
    console.print(Text("Scores", style="bold"))
    console.print(score_table(report))
    console.print(Text(notes(report), style="dim"))


def outcome_table(report: Report) -> Table:
    """Rows tasks, columns models; every attempt's outcome, with the error or the speedup of a right one."""
    from rich.table import Table
    from rich.text import Text

    table = Table()
    table.add_column("task")
    for score in report.scores:
        table.add_column(_header(report, score))
    cells: dict[tuple[str, str, str], list[AttemptRow]] = {}
    for row in report.attempts:
        cells.setdefault((row.task, row.model, row.dsl), []).append(row)
    for task in report.config.tasks:
        rows = (cells.get((task, score.model, score.dsl), []) for score in report.scores)
        table.add_row(Text(task), *(cell(each) for each in rows))
    return table


def cell(rows: list[AttemptRow]) -> Text:
    """All samples of one task: `crash → correct 2.10x`, one line a sample, or counts where there are many."""
    from rich.text import Text

    samples: dict[int, list[AttemptRow]] = {}
    for row in rows:
        samples.setdefault(row.sample, []).append(row)
    if not samples:
        return Text("not run", style="yellow")
    if len(samples) <= _SEQUENCES:
        lines = [Text(" → ").join(_outcome(row) for row in attempts) for attempts in samples.values()]
        return Text("\n").join(lines)
    counts = Counter(attempts[-1].outcome for attempts in samples.values())
    parts = [
        Text.assemble(str(number), " ", (_word(outcome), _style(outcome)))
        for outcome, number in counts.most_common()
    ]
    return Text(", ").join(parts)


def score_table(report: Report) -> Table:
    """Rows scores, columns models, in the order of the first table."""
    from rich.table import Table
    from rich.text import Text

    table = Table()
    table.add_column("score")
    for score in report.scores:
        table.add_column(_header(report, score))
    for name, value in score_rows(report):
        table.add_row(Text(name), *(Text(value(score)) for score in report.scores))
    return table


def score_rows(report: Report) -> list[tuple[str, Callable[[Score], str]]]:
    """(name of a score, its text for one model); scores that say nothing about this run are left out."""
    attempts = report.config.attempts
    rows: list[tuple[str, Callable[[Score], str]]] = []
    for k in sorted({1, *(k for score in report.scores for k in score.pass_at)}):
        rows.append((f"pass@{k}", lambda score, k=k: percent(score.pass_at.get(k))))
    if attempts > 1:
        rows.append(
            (f"pass after {attempts} attempts", lambda score: percent(score.pass_after.get(attempts)))
        )
    for baseline in dict.fromkeys(name for score in report.scores for name in score.fast_p):
        for p in (1.0, 2.0):
            rows.append((f"fast_{p:g} over {baseline}",
                         lambda score, b=baseline, p=p: percent(score.fast_p.get(b, {}).get(p))))  # fmt: skip
        rows.append(
            (
                f"speedup over {baseline}, correct ones",
                lambda score, b=baseline: mean(score.speedup.get(b), "{:.2f}x".format),
            )
        )
    return [
        *rows,
        ("tasks counted", lambda score: str(score.pass_at[1].tasks if 1 in score.pass_at else 0)),
        ("outcomes", lambda score: counts(score.final)),
        ("not counted", lambda score: counts(_not_counted(score))),
        ("tokens in + out", lambda score: f"{score.input_tokens:,} + {score.output_tokens:,}"),
        ("cost", lambda score: dollars(score.cost)),
        ("tokens per sample", lambda score: mean(score.tokens_per_sample, "{:,.0f}".format)),
        ("cost per sample", lambda score: mean(score.cost_per_sample, dollars)),
        ("seconds per sample", lambda score: mean(score.seconds_per_sample, "{:.1f}".format)),
    ]


def _header(report: Report, score: Score) -> Text:
    from rich.text import Text

    return Text(clean(f"{score.model}\n{score.dsl}" if len(report.config.dsls) > 1 else score.model))


def notes(report: Report) -> str:
    """How to read the numbers."""
    archs = " and ".join(report.config.archs) or "every target of its DSL"
    right = (
        f"compiles for {archs}, which says nothing of its results"
        if report.tier == "compile"
        else "is correct"
    )
    lines = [
        f"pass: the answer {right}. Intervals: {report.intervals}. A failure counts 0; what is not counted is held "
        "against no model.",
    ]
    if report.tier == "interpret":
        lines.append(
            "The number beside `correct` is the largest error in units of its bound (right: at most 1)."
        )
    if report.tier == "gpu":
        lines.append(
            "The number beside `correct` is the speedup over PyTorch eager, geometric mean over bench cases."
        )
    if any(score.cost is None for score in report.scores):
        lines.append("Cost ?: no price is known for that model.")
    lines.append(f"One attempt in full: llmdsl show {report.run} TASK")
    return "\n".join(lines)


def percent(estimate: Estimate | None) -> str:
    """`50 % [20, 80]`; a dash where nothing counts."""
    if estimate is None:
        return "–"
    interval = "" if estimate.low is None else f" [{100 * estimate.low:.0f}, {100 * estimate.high:.0f}]"
    return f"{100 * estimate.value:.0f} %{interval}"


def mean(estimate: Estimate | None, form: Callable[[float], str]) -> str:
    """`1.20 [1.05, 1.40]`, each number written by `form`."""
    if estimate is None:
        return "–"
    interval = "" if estimate.low is None else f" [{form(estimate.low)}, {form(estimate.high)}]"
    return form(estimate.value) + interval


def dollars(cost: float | None) -> str:
    if cost is None:
        return "?"
    return "$0" if cost == 0 else f"${cost:.4f}" if cost < 0.1 else f"${cost:,.2f}"


def counts(numbers: dict[str, int]) -> str:
    """`2 crash`, `1 correct`, a line each."""
    return "\n".join(f"{number} {name}" for name, number in numbers.items()) or "–"


def problems(rows: Iterable[AttemptRow]) -> list[str]:
    """One line per attempt that ended without the model's doing, for the end of an evaluation."""
    return [
        f"{one_line(row.model)} · {row.task} · {row.dsl}: {one_line(row.problem)}"
        for row in rows
        if row.outcome is Outcome.infra_error
    ]


def _not_counted(score: Score) -> dict[str, int]:
    return score.beside | ({"not_run": score.not_run} if score.not_run else {})


def _outcome(row: AttemptRow) -> Text:
    from rich.text import Text

    text = Text(_word(row.outcome), style=_style(row.outcome))
    if row.outcome is Outcome.correct:
        if "eager" in row.speedup:
            text.append(f" {row.speedup['eager']:.2f}x")
        elif row.error is not None:
            text.append(f" {row.error:.2f}")
    return text


def _word(outcome: Outcome | None) -> str:
    return "not judged" if outcome is None else outcome.value


def _style(outcome: Outcome | None) -> str:
    if outcome is None or not outcome.counts:
        return "yellow"
    return "green" if outcome.passed else "red"
