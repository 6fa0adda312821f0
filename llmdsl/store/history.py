"""Records → what is known of each attempt. Shared by resume, scores, `show` and the replay model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from llmdsl.judge.verdict import Outcome
from llmdsl.store.records import CompletionRecord, FailureRecord, Key, Slot, VerdictRecord


@dataclass
class Attempt:
    """What is recorded of one attempt. `failure` is the last one; an answer received later overrides it."""

    key: Key
    completion: CompletionRecord | None = None
    failure: FailureRecord | None = None
    verdict: VerdictRecord | None = None

    @property
    def settled(self) -> bool:
        """Whether a resume has nothing left to do for it: it is answered and judged, and not by an infra_error."""
        return self.verdict is not None and self.verdict.verdict.outcome is not Outcome.infra_error


History = dict[Key, Attempt]


def history(records: Iterable[CompletionRecord | FailureRecord | VerdictRecord]) -> History:
    """Attempts by key. Of two completions the first wins, of two verdicts the first that is no infra_error."""
    attempts: History = {}
    for record in records:
        attempt = attempts.setdefault(record.key, Attempt(record.key))
        match record:
            case CompletionRecord():
                attempt.completion = attempt.completion or record
            case FailureRecord():
                attempt.failure = record
            case VerdictRecord():
                if not attempt.settled:
                    attempt.verdict = record
    return attempts


def by_slot(attempts: History) -> dict[Slot, list[Attempt]]:
    """The attempts of every sample, in order."""
    slots: dict[Slot, list[Attempt]] = {}
    for key in sorted(attempts, key=lambda key: key.attempt):
        slots.setdefault(key.slot, []).append(attempts[key])
    return slots
