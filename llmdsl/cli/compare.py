"""`llmdsl compare RUN…`: DSLs, models, contexts or runs side by side, and whether the data can tell them apart."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console
    from rich.table import Table

    from llmdsl.score.compare import Comparison, Difference, Metric
    from llmdsl.score.metrics import Estimate

_FEW = ("fast_1 ", "fast_2 ")  # of fast_p, what the tables show; --json holds all
_NAMES = 6  # tasks that a line names; more are counted, and --json names them


def compare(
    runs: Annotated[list[Path], typer.Argument(help="Folders of the runs.")],
    by: Annotated[
        Literal["dsl", "model", "context", "run"] | None,
        typer.Option(help="What to compare. Default: the first of these of which the runs hold two or more."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Compare DSLs, models, contexts or runs, paired over the tasks that both attempted.

    Each difference has its interval and a sign test over tasks; where they do not agree that one is better, it says
    "can't tell".
    """
    from llmdsl.score.compare import compare as make
    from llmdsl.store.run import RunFolder

    made = make([RunFolder.open(path) for path in runs], by)
    if as_json:
        from llmdsl.cli.report import print_json

        print_json(made.model_dump(mode="json"))
    else:
        from rich.console import Console

        print_comparison(Console(), made)


def print_comparison(console: Console, made: Comparison) -> None:
    """The values, the paired differences, what is missing, and how to read them."""
    from rich.text import Text

    from llmdsl.cli.clean import clean

    shown = [
        metric
        for metric in made.metrics
        if not metric.name.startswith("fast_") or metric.name.startswith(_FEW)
    ]
    console.print(Text(f"Over the tasks attempted by every {made.axis}, tier {made.tier}", style="bold"))
    console.print(value_table(made, shown))
    console.print(Text("Differences, paired by task", style="bold"))
    console.print(difference_table(shown))
    if made.effects:
        console.print(Text(f"Odds of a right first answer, against the mean {made.axis}", style="bold"))
        console.print(effect_table(made))
    for line in (*changes(made), *missing(made), *made.notes):
        console.print(Text(clean(line)))
    console.print(Text(how_to_read(made), style="dim"))


def value_table(made: Comparison, shown: list[Metric]) -> Table:
    """Rows metrics, then outcomes of last attempts; columns the sides."""
    from rich.table import Table
    from rich.text import Text

    from llmdsl.cli.clean import clean
    from llmdsl.cli.tables import counts

    table = Table()
    table.add_column("score")
    for side in made.sides:
        table.add_column(Text(clean(side.name)))
    for metric in shown:
        values = (metric.values.get(side.name) for side in made.sides)
        table.add_row(Text(metric.name), *(Text(level(metric, value)) for value in values))
    table.add_row("outcomes, all tasks", *(Text(counts(side.final)) for side in made.sides))
    table.add_row(
        "not counted",
        *(Text(counts(s.beside | ({"not_run": s.not_run} if s.not_run else {}))) for s in made.sides),
    )
    return table


def difference_table(shown: list[Metric]) -> Table:
    """A row for each metric and pair: the difference with its interval, the tasks it rests on, what follows."""
    from rich.table import Table
    from rich.text import Text

    from llmdsl.cli.clean import clean

    table = Table()
    for header in ("score", "first − second", "difference", "tasks", "which is better?"):
        table.add_column(header, justify="right" if header == "tasks" else "left")
    for metric in shown:
        for each in metric.differences:
            sign = "/" if metric.unit == "ratio" else "−"
            tasks = each.difference.tasks if each.difference else 0
            words = (
                metric.name,
                f"{each.first} {sign} {each.second}",
                gap(metric, each.difference),
                str(tasks),
            )
            style = "yellow" if each.winner is None else "green"
            table.add_row(*(Text(clean(word)) for word in words), Text(clean(answer(each)), style=style))
    return table


def effect_table(made: Comparison) -> Table:
    """Odds ratio of each side with its interval, best first; tasks and all else being equal."""
    from rich.table import Table
    from rich.text import Text

    from llmdsl.cli.clean import clean

    table = Table()
    for header in (made.axis, "odds ratio", "which is it?"):
        table.add_column(header)
    for side, each in sorted(made.effects.items(), key=lambda item: -item[1].effect):
        ratio, low, high = (f"{math.exp(log):.2g}x" for log in each)
        word = (
            "better than the mean"
            if each.low > 0
            else "worse than the mean"
            if each.high < 0
            else "can't tell"
        )
        style = "yellow" if word == "can't tell" else "green"
        table.add_row(Text(clean(side)), f"{ratio} [{low}, {high}]", Text(word, style=style))
    return table


def level(metric: Metric, value: Estimate | None) -> str:
    from llmdsl.cli.tables import mean, percent

    return percent(value) if metric.unit == "share" else mean(value, "{:.2f}x".format)


def gap(metric: Metric, value: Estimate | None) -> str:
    """`+20 [+5, +35]` in percentage points, or `1.20x [1.05x, 1.40x]`."""
    from llmdsl.cli.tables import mean

    return mean(value, "{:.2f}x".format if metric.unit == "ratio" else _points)


def answer(each: Difference) -> str:
    """`cute (p = 0.003)`, or `can't tell: …`."""
    return f"can't tell: {each.reason}" if each.winner is None else f"{each.winner} ({each.reason})"


def changes(made: Comparison) -> Iterator[str]:
    """For each pair, the tasks in which pass@1 went up and down, and those a speedup leaves out."""
    for metric in made.metrics:
        for each in metric.differences:
            pair = f"{each.first} against {each.second}"
            if metric.name == "pass@1" and (each.better or each.worse):
                yield f"pass@1, {pair}: better in {_named(each.better)}; worse in {_named(each.worse)}."
            elif metric.unit == "ratio" and each.left_out:
                yield f"{metric.name}, {pair}: only where both are right, so without {_named(each.left_out)}."


def missing(made: Comparison) -> Iterator[str]:
    """Every pair that is missing, by side and reason."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for each in made.missing:
        name = f"{each.task} ({each.unit})" if each.unit else each.task
        grouped.setdefault((each.side, each.reason), []).append(name)
    for (side, reason), names in grouped.items():
        yield f"Missing in {side} ({reason}): {', '.join(names)}. No paired number holds them."


def how_to_read(made: Comparison) -> str:
    return (
        f"Intervals: {made.intervals}. Differences of shares are in percentage points, of speedups a ratio. One is "
        "called better only if the interval of the difference leaves out equality and the sign test over tasks, "
        "corrected for the number of pairs (Holm), has p < 0.05. --json holds every number; formulas: docs/score.md."
    )


def _points(share: float) -> str:
    return f"{100 * share:+.0f}" if abs(100 * share) >= 0.5 else "0"


def _named(tasks: tuple[str, ...]) -> str:
    if len(tasks) > _NAMES:
        return f"{', '.join(tasks[:_NAMES])} and {len(tasks) - _NAMES} more"
    return ", ".join(tasks) or "none"
