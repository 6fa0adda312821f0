"""One sample: a cold attempt, then repairs with the judge's feedback until one passes or attempts run out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from llmdsl.generate.feedback import repair_messages
from llmdsl.generate.prompt import Messages

if TYPE_CHECKING:
    from llmdsl.dsls.base import Dsl
    from llmdsl.models.base import Completion
    from llmdsl.store.records import Key, Slot, VerdictRecord
    from llmdsl.tasks.task import Task

Ask = Callable[["Key", Messages], Awaitable["Completion | None"]]
"""The answer to a prompt; None where the provider gave none."""
Assess = Callable[["Key", "Completion"], Awaitable["VerdictRecord"]]


async def run_sample(slot: Slot, cold: Messages, task: Task, dsl: Dsl, attempts: int, *, ask: Ask,
                     assess: Assess) -> None:  # fmt: skip
    """Runs the attempts of a sample in order, the first with the messages `cold`. What was recorded before is handed
    out by `ask` and `assess`."""
    messages = cold
    for number in range(1, attempts + 1):
        key = slot.key(number)
        completion = await ask(key, messages)
        if completion is None:
            return
        judged = await assess(key, completion)
        outcome = judged.verdict.outcome
        if outcome.passed or not outcome.counts:
            return
        if number < attempts:
            messages = repair_messages(cold, task, dsl, completion.text, judged.source, judged.verdict)
