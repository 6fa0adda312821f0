"""What an evaluation is doing: a live bar on a terminal, one plain line per verdict elsewhere. On stderr, always."""

from __future__ import annotations

from collections import Counter
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from llmdsl.cli.clean import clean, one_line
from llmdsl.cli.tables import dollars
from llmdsl.generate.budget import Spent
from llmdsl.generate.evaluate import Answered, Asked, Event, Failed, Finished, Judged
from llmdsl.judge.verdict import Outcome
from llmdsl.store.records import Key


class EvalProgress:
    """Follows an evaluation by its events. Use as a context manager; call with each event."""

    def __init__(self, samples: int, console: Console, *, quiet: bool = False):
        self._samples, self._console, self._quiet = samples, console, quiet
        self._outcomes: Counter[Outcome] = Counter()
        self._asking = self._judging = self._finished = 0
        self._spent = Spent()
        self._bar: Progress | None = None
        if console.is_terminal and not quiet:
            self._bar = Progress(
                BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.fields[status]}", markup=False),
                console=console, refresh_per_second=4,
            )  # fmt: skip
            self._row = self._bar.add_task("", total=samples, status="")

    def __call__(self, event: Event) -> None:
        match event:
            case Asked():
                self._asking += 1
            case Answered(recorded=recorded, spent=spent):
                self._asking -= not recorded
                self._judging += 1
                self._spent = spent
            case Failed(key=key, record=record):
                self._asking -= 1
                self._outcomes[Outcome.infra_error] += 1
                self._line(key, Outcome.infra_error, f"{record.kind}: {record.message}")
            case Judged(key=key, verdict=verdict, recorded=recorded):
                self._judging -= 1
                self._outcomes[verdict.outcome] += 1
                if not recorded:
                    said = verdict.diagnostics[0].message if verdict.diagnostics else ""
                    self._line(key, verdict.outcome, said)
            case Finished():
                self._finished += 1
        if self._bar:
            self._bar.update(self._row, completed=self._finished, status=self.status())

    def status(self) -> str:
        """Counts by outcome, tokens and cost so far, and what is under way."""
        counts = " ".join(
            f"{outcome.value} {self._outcomes[outcome]}" for outcome in Outcome if self._outcomes[outcome]
        )
        parts = [
            counts,
            f"{self._spent.tokens:,} tokens",
            self._cost(),
            f"asking {self._asking}",
            f"judging {self._judging}",
        ]
        return " · ".join(part for part in parts if part)

    def _so_far(self) -> list[str]:
        counts = " ".join(
            f"{outcome.value} {self._outcomes[outcome]}" for outcome in Outcome if self._outcomes[outcome]
        )
        return [counts, f"{self._spent.tokens:,} tokens", self._cost()]

    def _cost(self) -> str:
        cost = dollars(self._spent.cost)
        return f"{cost} + {self._spent.unpriced} unpriced" if self._spent.unpriced else cost

    def _line(self, key: Key, outcome: Outcome, said: str) -> None:
        if self._quiet:
            return
        style = "yellow" if not outcome.counts else "green" if outcome.passed else "red"
        where = f"{key.task} · {clean(key.model)} · {key.dsl} · sample {key.sample} attempt {key.attempt}: "
        text = Text.assemble(
            where, (outcome.value, style), (f"  {one_line(said, 160)}" if said else "", "dim")
        )
        if self._bar:
            text.truncate(self._console.width, overflow="ellipsis")
            self._console.print(text)
        else:
            number = f"[{sum(self._outcomes.values())}] "
            self._console.print(Text(f"{number}{text.plain} ({' · '.join(self._so_far())})"), soft_wrap=True)

    def __enter__(self) -> Self:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:  # fmt: skip
        if self._bar:
            self._bar.stop()
