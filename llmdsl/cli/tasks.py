"""`llmdsl tasks list | show | check`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from llmdsl.tasks.check import Check
    from llmdsl.tasks.task import Case, Task

app = typer.Typer(no_args_is_help=True, add_completion=False, help="List, show and check tasks.")

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Name = Annotated[str, typer.Argument(help="A task's name, or a folder that holds one.")]


@app.command("list")
def list_tasks(as_json: Json = False) -> None:
    """All tasks: group, level, dtypes, number of cases, reference kernels."""
    from llmdsl.tasks.load import load_task, task_names

    rows = [_summary(load_task(name)) for name in task_names()]
    if as_json:
        _print_json({"tasks": rows})
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("task", "group", "level", "dtypes", "test", "bench", "references")
    for row in rows:
        cells = (", ".join(cell) if isinstance(cell, list) else str(cell) for cell in row.values())
        table.add_row(*map(Text, cells))
    Console().print(table)


@app.command()
def show(name: Name, as_json: Json = False) -> None:
    """One task: signature, description, cases with their work, and its meaning in PyTorch."""
    from llmdsl.tasks.load import load_task
    from llmdsl.tasks.signature import signature

    task = load_task(name)
    if as_json:
        _print_json(_whole(task))
        return
    from rich.console import Console
    from rich.syntax import Syntax
    from rich.table import Column, Table
    from rich.text import Text

    console = Console()
    about = f" · {task.group} · {task.level} · version {task.version}"
    console.print(Text.assemble((f"{task.name}: {task.title}", "bold"), about))
    console.print(Text(f"\n{signature(task, '.py')}\n", style="cyan"), soft_wrap=True)
    console.print(Text(task.description.strip() + "\n"))
    # Cases of one name differ in their dtype alone.
    named: dict[str, list[Case]] = {}
    for case in task.cases:
        named.setdefault(case.name, []).append(case)
    table = Table(
        *(Column(name, overflow="fold") for name in ("case", "dtypes", "params", "inputs", "GFLOP", "MB"))
    )
    for name, cases in named.items():
        first = cases[0]
        table.add_row(*map(Text, (
            f"{name}\n({first.source or first.kind}{', hidden' if first.hidden else ''})",
            "\n".join(case.dtype for case in cases),
            "\n".join(f"{key}={value}" for key, value in first.params.items()),
            f"{first.values}\n{first.layout}",
            f"{task.flops(first) / 1e9:.3g}",
            "\n".join(f"{task.bytes(case) / 1e6:.3g}" for case in cases),
        )))  # fmt: skip
    console.print(table)
    console.print(Syntax(task.reference_source(), "python", background_color="default"))


@app.command()
def check(
    names: Annotated[
        list[str] | None, typer.Argument(help="Tasks or folders; all tasks where left out.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Try wrong answers on the judge: all must be rejected, a good one accepted. Exit code 1 where a task fails."""
    import torch

    from llmdsl.errors import InvalidTask
    from llmdsl.tasks.check import Check, check_task
    from llmdsl.tasks.load import load_task, task_names

    # The tensors are small: threads would only wait for each other.
    torch.set_num_threads(1)
    checks = []
    for name in names or task_names():
        try:
            checks.append(check_task(load_task(name)))
        except InvalidTask as error:  # the other tasks are still worth a look
            checks.append(Check(name, [str(error)]))
        if not as_json:
            _print_check(checks[-1])
    if as_json:
        _print_json({"passed": all(one.passed for one in checks), "tasks": [_plain(one) for one in checks]})
    if not all(one.passed for one in checks):
        raise typer.Exit(1)


def _print_check(check: Check) -> None:
    from rich.console import Console
    from rich.text import Text

    word = Text("ok    ", style="green") if check.passed else Text("FAILED", style="red")
    numbers = "no wrong answer could be tried"
    if check.answers:
        margin = f"smallest margin {check.margin:.3g} ({check.margin_of})"
        numbers = f"{check.answers} wrong answers, {margin}, good {check.good:.2g}"
    console = Console()
    console.print(Text.assemble(word, f" {check.task}: ", numbers), soft_wrap=True)
    for problem in check.problems:
        console.print(Text(f"       - {problem}"), soft_wrap=True)


def _plain(check: Check) -> dict[str, Any]:
    import math
    from dataclasses import asdict

    # JSON has no infinity: null where every rejection had another reason than an error's size.
    finite = {
        key: None if isinstance(v, float) and not math.isfinite(v) else v for key, v in asdict(check).items()
    }
    return finite | {"passed": check.passed}


def _summary(task: Task) -> dict[str, Any]:
    from llmdsl.resources import reference_kernels_dir

    kernels = sorted((reference_kernels_dir() / task.name).glob("*.*"))
    return {
        "task": task.name,
        "group": task.group,
        "level": task.level,
        "dtypes": list(dict.fromkeys(case.dtype for case in task.test_cases)),
        "test": len(task.test_cases),
        "bench": len(task.bench_cases),
        "references": [path.stem for path in kernels],
    }


def _whole(task: Task) -> dict[str, Any]:
    cases = [
        case.model_dump(mode="json") | {"id": case.id, "flops": task.flops(case), "bytes": task.bytes(case)}
        for case in task.cases
    ]
    return task.model_dump(mode="json") | {"cases": cases, "reference": task.reference_source()}


def _print_json(value: object) -> None:
    from llmdsl.cli.report import print_json

    print_json(value)
