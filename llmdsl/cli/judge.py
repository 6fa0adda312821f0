"""`llmdsl judge FILE`: the judge's word on one kernel file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from llmdsl.judge.verdict import Verdict


def judge(
    file: Annotated[Path, typer.Argument(help="The candidate's source; `-` reads standard input.")],
    task: Annotated[str, typer.Option("--task", "-t", help="A task's name, or a folder that holds one.")],
    dsl: Annotated[str, typer.Option("--dsl", help="Kernel language.")] = "triton",
    tier: Annotated[
        Literal["gpu", "interpret", "compile"] | None,
        typer.Option(help="What to judge by. (default: the best of this machine)"),
    ] = None,
    arch: Annotated[
        list[str] | None, typer.Option("--arch", help="Compile tier: sm_90a, sm_100a, …; repeat it.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the verdict as one JSON object.")] = False,
    unsafe_no_sandbox: Annotated[
        bool, typer.Option("--unsafe-no-sandbox", help="Run the file even where nothing can confine it.")
    ] = False,
) -> None:
    """Judge one kernel file, in a sandbox. Exit code: 0 it passed, 1 it did not, 4 the judge itself failed."""
    from llmdsl.judge.api import Judge

    source = _read(file)
    with Judge(tier=tier, archs=arch or (), unsafe_no_sandbox=unsafe_no_sandbox) as one:
        verdict = one.judge(source, task=task, dsl=dsl)
    if as_json:
        from llmdsl.cli.report import print_json

        print_json(verdict.model_dump(mode="json"))
    else:
        from rich.console import Console

        print_verdict(Console(), verdict)
    if not verdict.outcome.passed:
        raise typer.Exit(4 if verdict.outcome == "infra_error" else 1)


def print_verdict(console: Console, verdict: Verdict) -> None:
    """Outcome, diagnostics, cases and where it was judged. All text of the candidate is made harmless."""
    from rich.text import Text

    from llmdsl.cli.clean import clean
    from llmdsl.runner.confine import sufficient

    style = (
        "bold green" if verdict.outcome.passed else "bold red" if verdict.outcome.counts else "bold yellow"
    )
    where = f" · {verdict.task} · {verdict.dsl} · tier {verdict.tier}"
    console.print(Text.assemble((verdict.outcome.value, style), clean(where)))
    for diagnostic in verdict.diagnostics:
        place = [f"line {diagnostic.line}"] if diagnostic.line else []
        place += [f"case {diagnostic.case}"] if diagnostic.case else []
        head = diagnostic.kind + (f" ({', '.join(place)})" if place else "") + ": "
        console.print(Text.assemble((clean(head), "bold"), clean(diagnostic.message)), soft_wrap=True)
    if verdict.cases:
        console.print(_cases(verdict))
    if verdict.kernels:
        console.print(Text(clean(f"kernels: {', '.join(verdict.kernels)}")), soft_wrap=True)
    if verdict.stage and not sufficient(verdict.sandbox):
        console.print(Text("judged without a sandbox", style="yellow"))
    versions = ", ".join(f"{name} {version}" for name, version in verdict.versions.items())
    seconds = verdict.seconds.get("total")
    console.print(Text(clean(f"{versions or 'versions unknown'} · seed {verdict.seed}"
                             + (f" · {seconds:.1f} s" if seconds is not None else "")), style="dim"))  # fmt: skip


def _cases(verdict: Verdict) -> Table:
    """One row a case: its error in units of the bound (right: at most 1) and, where it was timed, its times."""
    from rich.table import Table
    from rich.text import Text

    from llmdsl.cli.clean import one_line

    timed = any(case.timing for case in verdict.cases)
    columns = ["case", "status", "error / bound", *(["us", "baselines"] if timed else []), "reason"]
    table = Table(*columns)
    styles = {"passed": "green", "failed": "red", "skipped": "yellow"}
    for case in verdict.cases:
        cells = [one_line(case.case), case.status, "" if case.error is None else f"{case.error:.3g}"]
        if timed:
            timing = case.timing
            cells.append(f"{timing.candidate_us:.1f}" if timing else "")
            baselines = timing.baselines_us.items() if timing else ()
            cells.append(", ".join(f"{name} {us:.1f}" for name, us in baselines))
        cells.append(one_line(case.reason))
        table.add_row(*(Text(cell) for cell in cells), style=styles[case.status])
    return table


def _read(file: Path) -> str:
    from llmdsl.errors import LlmdslError

    try:
        data = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
        return data.decode()
    except OSError as error:
        raise LlmdslError(
            f"cannot read {file}: {error.strerror}. Give the path of a kernel file, or `-` for standard input."
        ) from error
    except UnicodeDecodeError as error:
        raise LlmdslError(
            f"{file} is not UTF-8 text ({error}). Save it as UTF-8 and judge it again."
        ) from error
