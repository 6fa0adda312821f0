"""What a run may spend, and what it is going to."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from llmdsl.errors import LlmdslError
from llmdsl.models.base import Message, Sampling, Usage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

TYPICAL_OUTPUT = 1_500  # tokens of an answer without reasoning; what an estimate assumes
_CHARS_PER_TOKEN = 4


def prompt_tokens(messages: Iterable[Message]) -> int:
    """A rough count: four characters a token."""
    return sum(len(message.content) for message in messages) // _CHARS_PER_TOKEN


@dataclass(frozen=True)
class Spent:
    """Tokens and US dollars. `unpriced` counts answers of models whose price is not known."""

    input: int = 0
    output: int = 0
    cost: float = 0.0
    unpriced: int = 0

    @property
    def tokens(self) -> int:
        return self.input + self.output

    def plus(self, usage: Usage, cost: float | None) -> Spent:
        return Spent(self.input + usage.input, self.output + usage.output, self.cost + (cost or 0.0),
                     self.unpriced + (cost is None))  # fmt: skip


class OutOfBudget(Exception):
    """No further request fits. Internal: the evaluation ends cleanly on it."""


@dataclass
class Budget:
    """Lets a request start only while its estimate fits beside what is spent and what is in flight.

    Answers cost what they cost: the limit can be passed by as much as answers in flight exceed their estimates.
    """

    max_cost: float | None = None
    max_tokens: int | None = None
    spent: Spent = Spent()
    _in_flight: list[tuple[int, float]] = field(default_factory=list)
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    @asynccontextmanager
    async def reserve(self, tokens: int, cost: float | None) -> AsyncIterator[None]:
        """Holds an estimate while a request is in flight. Raises OutOfBudget; waits where answers in flight decide."""
        reserved = (tokens, cost or 0.0)
        async with self._changed:
            while not self._fits(*reserved):
                if not self._in_flight:
                    raise OutOfBudget
                await self._changed.wait()
            self._in_flight.append(reserved)
        try:
            yield
        finally:
            self._in_flight.remove(reserved)
            async with self._changed:
                self._changed.notify_all()

    def _fits(self, tokens: int, cost: float) -> bool:
        tokens += self.spent.tokens + sum(t for t, _ in self._in_flight)
        cost += self.spent.cost + sum(c for _, c in self._in_flight)
        return (self.max_tokens is None or tokens <= self.max_tokens) and (
            self.max_cost is None or cost <= self.max_cost
        )

    def require_prices(self, unpriced: Iterable[str]) -> None:
        """Raises where --max-cost could not hold because a model's price is not known."""
        names = sorted(unpriced)
        if self.max_cost is not None and names:
            raise LlmdslError(
                f"--max-cost needs prices, and none is known for {', '.join(names)}. Bound the run with --max-tokens instead."
            )


def typical_usage(messages: Iterable[Message], sampling: Sampling) -> Usage:
    """What one answer is expected to use."""
    return Usage(input=prompt_tokens(messages), output=min(TYPICAL_OUTPUT, sampling.max_tokens))
