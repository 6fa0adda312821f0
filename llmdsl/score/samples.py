"""A run's records → one `Sample` per draw: what every score is computed from."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from llmdsl.judge.verdict import Outcome, Verdict
from llmdsl.models.base import Usage
from llmdsl.store.history import Attempt, by_slot, history
from llmdsl.store.records import Slot
from llmdsl.store.run import RunFolder

Price = Callable[[str, Usage], float | None]


@dataclass(frozen=True)
class Tried:
    """One attempt. `outcome` is None where an answer waits for its verdict; `cost` where no price is known."""

    number: int
    outcome: Outcome | None
    verdict: Verdict | None = None
    problem: str = ""  # the first diagnostic, or what the provider said
    answered: bool = False
    usage: Usage = field(default_factory=Usage)
    cost: float | None = None
    seconds: float = 0.0  # of the provider's answer
    served_model: str = ""

    @property
    def error(self) -> float | None:
        """Largest error over the cases, in units of the bound (right: <= 1)."""
        errors = [case.error for case in self.verdict.cases if case.error is not None] if self.verdict else []
        return max(errors, default=None)


@dataclass(frozen=True)
class Sample:
    """One draw for (model, DSL, task). `attempts` are in order and may be fewer than `allowed`."""

    slot: Slot
    allowed: int
    attempts: tuple[Tried, ...] = ()

    @property
    def last(self) -> Tried | None:
        return self.attempts[-1] if self.attempts else None

    def passed_after(self, attempts: int) -> bool | None:
        """Whether one of the first `attempts` passed; None where that cannot be held against or for the model:
        an attempt it would have needed was not made, not judged, or ended in infra_error or unsupported."""
        tried = self.attempts[:attempts]
        if any(t.outcome is not None and t.outcome.passed for t in tried):
            return True
        complete = len(tried) == min(attempts, self.allowed)
        return False if complete and all(t.outcome is not None and t.outcome.counts for t in tried) else None

    def speedup(self, baseline: str) -> float | None:
        """Of the attempt that is correct; None where none is or none was timed."""
        correct = [t.verdict for t in self.attempts if t.verdict and t.verdict.correct]
        return correct[0].speedup(baseline) if correct else None


def samples_of(run: RunFolder, price: Price = lambda model, usage: None) -> list[Sample]:
    """Every sample the run's config asks for, those without any attempt included, in the config's order."""
    attempts = by_slot(history(run.records()))
    return [
        Sample(slot, run.config.attempts, tuple(_tried(a, price) for a in attempts.get(slot, ())))
        for slot in run.config.slots()
    ]


def baselines(attempts: Iterable[Tried]) -> list[str]:
    """Baselines that anything was timed against, eager first."""
    names = {name for tried in attempts if tried.verdict for case in tried.verdict.cases if case.timing
             for name in case.timing.baselines_us}  # fmt: skip
    return sorted(names, key=lambda name: (name != "eager", name))


def _tried(attempt: Attempt, price: Price) -> Tried:
    number = attempt.key.attempt
    if attempt.completion is None:
        failure = attempt.failure
        return Tried(
            number, Outcome.infra_error, problem=f"{failure.kind}: {failure.message}" if failure else ""
        )
    answer = attempt.completion.completion
    verdict = attempt.verdict.verdict if attempt.verdict else None
    diagnostics = verdict.diagnostics if verdict else ()
    return Tried(
        number,
        verdict.outcome if verdict else None,
        verdict,
        problem=diagnostics[0].message if diagnostics else "",
        answered=True,
        usage=answer.usage,
        cost=price(attempt.key.model, answer.usage),
        seconds=answer.seconds,
        served_model=answer.served_model,
    )
