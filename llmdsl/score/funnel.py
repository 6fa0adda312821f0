"""How far answers came: counts by outcome, in the order of the funnel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from llmdsl.judge.verdict import FUNNEL, Outcome


def funnel(outcomes: Iterable[Outcome]) -> dict[str, int]:
    """Counts of the outcomes that are a model's doing; outcomes that did not occur are left out."""
    counts = Counter(outcomes)
    return {outcome.value: counts[outcome] for outcome in FUNNEL if counts[outcome]}


def beside(outcomes: Iterable[Outcome | None]) -> dict[str, int]:
    """Counts of what is held against no model: infra_error, unsupported, and None as `not_judged`."""
    counts = Counter("not_judged" if outcome is None else outcome.value for outcome in outcomes
                     if outcome is None or not outcome.counts)  # fmt: skip
    return dict(sorted(counts.items()))
