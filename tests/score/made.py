"""Samples written as words: `[["crash", ("correct", 2.0)]]` is one sample of two attempts, the second correct at 2x."""

from __future__ import annotations

from llmdsl.judge.verdict import Outcome
from llmdsl.models.base import Usage
from llmdsl.score.samples import Sample, Tried
from llmdsl.store.records import Slot
from tests.generate.made import verdict

Word = str | tuple[str, float] | None


def tried(number: int, word: Word) -> Tried:
    if word is None:
        return Tried(number, None, answered=True)
    name, speedup = word if isinstance(word, tuple) else (word, None)
    return Tried(number, Outcome(name), verdict(name, speedup), answered=name != "infra_error",
                 usage=Usage(input=100, output=10 * number), cost=0.5, seconds=2.0)  # fmt: skip


def sample(
    words: list[Word], *, allowed: int | None = None, task: str = "softmax", number: int = 0
) -> Sample:
    attempts = tuple(tried(n, word) for n, word in enumerate(words, start=1))
    return Sample(Slot("mock/a", "triton", task, number), allowed or max(1, len(words)), attempts)


def tasks(allowed: int = 1, **samples: list[list[Word]]) -> dict[str, list[Sample]]:
    return {
        name: [sample(words, allowed=allowed, task=name, number=n) for n, words in enumerate(several)]
        for name, several in samples.items()
    }
