"""`llmdsl report RUN`: scores a run again, from its records alone."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from llmdsl.score.report import Report


def report(
    run: Annotated[Path, typer.Argument(help="The run's folder.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Score a run again from its records alone; it may be incomplete or still running."""
    print_run(run, as_json)


def print_run(path: Path, as_json: bool) -> Report:
    """Prints the report of a run on stdout, and returns it."""
    from llmdsl.models.prices import cost
    from llmdsl.score.report import report as make_report
    from llmdsl.store.run import RunFolder

    made = make_report(RunFolder.open(path), cost)
    if as_json:
        print_json(made.model_dump(mode="json"))
    else:
        from rich.console import Console

        from llmdsl.cli.tables import print_report

        print_report(Console(), made)
    return made


def print_json(value: object) -> None:
    """One JSON object on stdout, in ASCII: no terminal obeys what a model put into it."""
    import json

    sys.stdout.write(json.dumps(value, indent=2) + "\n")
    sys.stdout.flush()
