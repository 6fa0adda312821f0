"""`llmdsl show RUN [TASK]`: what a model was asked, what it answered, and what the judge said."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from llmdsl.judge.verdict import Verdict
    from llmdsl.store.history import Attempt


def show(
    run: Annotated[Path, typer.Argument(help="The run's folder.")],
    task: Annotated[str | None, typer.Argument(help="One task; all of them where it is left out.")] = None,
    model: Annotated[str | None, typer.Option("--model", "-m", help="Only this model.")] = None,
    dsl: Annotated[str | None, typer.Option("--dsl", help="Only this DSL.")] = None,
    sample: Annotated[int | None, typer.Option(help="Only this sample, from 0.")] = None,
    attempt: Annotated[int | None, typer.Option(help="Only this attempt, from 1.")] = None,
    prompt: Annotated[bool, typer.Option("--prompt/--no-prompt", help="Print the prompts too.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
) -> None:
    """Print prompt, answer, candidate and diagnostics of a run's attempts."""
    from llmdsl.errors import LlmdslError, unknown
    from llmdsl.store.run import RunFolder

    folder = RunFolder.open(run)
    for kind, name, known in (("task", task, folder.config.tasks), ("model", model, folder.config.models),
                              ("DSL", dsl, folder.config.dsls)):  # fmt: skip
        if name is not None and name not in known:
            raise LlmdslError(f"{unknown(kind, name, known)} Those are in {run}.")
    wanted = {"task": task, "model": model, "dsl": dsl, "sample": sample, "attempt": attempt}
    attempts = list(_matching(folder, {name: value for name, value in wanted.items() if value is not None}))
    if as_json:
        from llmdsl.cli.report import print_json

        print_json({"run": str(run), "attempts": [_plain(each) for each in attempts]})
        return
    if not attempts:
        raise LlmdslError(f"{run} has no such attempt yet. `llmdsl report {run}` lists those it has.")
    from rich.console import Console

    console = Console()
    for each in attempts:
        _print(console, each, prompt)


def _matching(folder, wanted: dict[str, object]) -> Iterator[Attempt]:
    from llmdsl.store.history import by_slot, history

    slots = by_slot(history(folder.records()))
    for slot in folder.config.slots():
        for attempt in slots.get(slot, ()):
            if all(getattr(attempt.key, name) == value for name, value in wanted.items()):
                yield attempt


def _plain(attempt: Attempt) -> dict[str, object]:
    records = {"completion": attempt.completion, "failure": attempt.failure, "verdict": attempt.verdict}
    return {"key": attempt.key.model_dump()} | {
        name: record.model_dump(mode="json", exclude={"key", "type"}) if record else None
        for name, record in records.items()
    }


def _print(console: Console, attempt: Attempt, prompt: bool) -> None:
    from rich.rule import Rule
    from rich.text import Text

    from llmdsl.cli.clean import clean

    key = attempt.key

    def section(title: str, text: str) -> None:
        console.print(Text(clean(title), style="bold cyan"))
        console.print(Text(clean(text.rstrip("\n"))))
        console.print()

    console.print(
        Rule(
            Text(clean(f"{key.task} · {key.dsl} · {key.model} · sample {key.sample} · attempt {key.attempt}"))
        )
    )
    if attempt.completion:
        completion = attempt.completion.completion
        for message in attempt.completion.messages if prompt else ():
            section(f"Prompt, {message.role}", message.content)
        usage = completion.usage
        section(
            f"Answer of {completion.served_model}: {usage.input} + {usage.output} tokens in {completion.seconds:.1f} s, "
            f"finish reason {completion.finish_reason}",
            completion.text,
        )
    elif attempt.failure:
        section(
            f"No answer: {attempt.failure.kind} after {attempt.failure.retries} retries",
            attempt.failure.message,
        )
    if attempt.verdict:
        if attempt.verdict.source is not None:
            section("Candidate", _numbered(attempt.verdict.source))
        section(f"Verdict: {attempt.verdict.verdict.outcome.value}", _diagnosis(attempt.verdict.verdict))
    elif attempt.completion:
        section("Verdict", "not judged yet")


def _numbered(source: str) -> str:
    return "\n".join(
        f"{number:4} {line}" for number, line in enumerate(source.rstrip("\n").split("\n"), start=1)
    )


def _diagnosis(verdict: Verdict) -> str:
    """Diagnostics, cases and where it was judged, as text."""
    lines = [f"tier {verdict.tier}, stage {verdict.stage or 'done'}"]
    for diagnostic in verdict.diagnostics:
        place = "".join(
            [
                f", line {diagnostic.line}" if diagnostic.line else "",
                f", case {diagnostic.case}" if diagnostic.case else "",
            ]
        )
        lines.append(f"- {diagnostic.kind}{place}: {diagnostic.message}")
    for case in verdict.cases:
        error = "" if case.error is None else f", error {case.error:.3g} of its bound"
        speed = ""
        if case.timing:
            speed = f", {case.timing.candidate_us:.1f} us" + "".join(
                f", {name} {us:.1f} us" for name, us in case.timing.baselines_us.items()
            )
        lines.append(
            f"  {case.case}: {case.status}{error}{speed}{f' ({case.reason})' if case.reason else ''}"
        )
    if verdict.versions:
        lines.append(
            "versions: " + ", ".join(f"{name} {version}" for name, version in verdict.versions.items())
        )
    return "\n".join(lines)
