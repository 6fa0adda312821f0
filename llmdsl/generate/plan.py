"""What a run will ask: its config from what the user chose, and what that will cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from llmdsl.dsls.registry import dsl_names, lacking, load_dsl
from llmdsl.errors import LlmdslError
from llmdsl.generate.budget import typical_usage
from llmdsl.generate.prompt import CONTEXTS, Context, cold_messages, prompts_hash
from llmdsl.judge.verdict import JUDGE_VERSION, Outcome, Tier
from llmdsl.models.base import Sampling, Usage
from llmdsl.store.history import History
from llmdsl.store.records import RunConfig, Slot
from llmdsl.tasks.load import load_task, task_names

if TYPE_CHECKING:
    from llmdsl.dsls.base import Dsl
    from llmdsl.score.samples import Price
    from llmdsl.tasks.task import Task


@dataclass(frozen=True)
class Plan:
    """A config with the tasks and DSLs it names, loaded."""

    config: RunConfig
    tasks: dict[str, Task]
    dsls: dict[str, Dsl]


def make_plan(*, models: Sequence[str], dsls: Sequence[str], tasks: Sequence[str], tier: Tier, samples: int = 1,
              attempts: int = 1, archs: Sequence[str] = (), sampling: Sampling | None = None,
              base_url: str | None = None, context: Context = "guide+example") -> Plan:  # fmt: skip
    """Raises UnknownTask, UnknownDsl, MissingPrompt, and LlmdslError for a context that does not exist."""
    if context not in CONTEXTS:
        raise LlmdslError(f"--context must be one of {', '.join(CONTEXTS)}, not {context!r}.")
    loaded_tasks = {task.name: task for task in map(load_task, tasks)}
    loaded_dsls = {dsl.name: dsl for dsl in map(load_dsl, dsls)}
    config = RunConfig(
        models=tuple(dict.fromkeys(models)), dsls=tuple(loaded_dsls), tasks=tuple(loaded_tasks), samples=samples,
        attempts=attempts, tier=tier, archs=tuple(archs), sampling=sampling or Sampling(), base_url=base_url,
        context=context, prompts_hash=prompts_hash(loaded_tasks.values(), loaded_dsls.values(), context),
        task_versions={task.name: task.version for task in loaded_tasks.values()}, judge_version=JUDGE_VERSION,
    )  # fmt: skip
    return Plan(config, loaded_tasks, loaded_dsls)


def replan(config: RunConfig, **changes: object) -> Plan:
    """The plan of an earlier run with this installation's prompts, tasks and judge, and the changes asked for."""
    kept = {name: getattr(config, name) for name in ("models", "dsls", "tasks", "samples", "attempts", "tier", "archs",
                                                     "sampling", "base_url", "context")}  # fmt: skip
    return make_plan(**(kept | changes))


def split(values: Iterable[str]) -> list[str]:
    """Repeated and comma-separated options as one list, in order, once each."""
    parts = (part.strip() for value in values for part in value.split(","))
    return list(dict.fromkeys(part for part in parts if part))


def chosen_tasks(names: Iterable[str], limit: int | None = None) -> list[str]:
    """Task names from a `--tasks` option; `all` or nothing is every task."""
    chosen = split(names)
    if not chosen or "all" in chosen:
        chosen = task_names()
    return chosen[:limit]


def chosen_dsls(names: Iterable[str]) -> list[str]:
    """DSL names from a `--dsl` option; `all` is every one that is installed here."""
    chosen = split(names)
    return [name for name in dsl_names() if not lacking(load_dsl(name))] if "all" in chosen else chosen


class Estimate(BaseModel):
    """Cost ahead of one model. `expected`: one attempt a sample and answers of usual length; `at_most`: every attempt
    made and every answer as long as allowed (repair prompts, which grow with the candidate, are counted so too).
    Costs are US dollars, None where no price is known."""

    model_config = ConfigDict(frozen=True)

    model: str
    requests: int
    requests_at_most: int
    input_tokens: int
    output_tokens: int
    input_tokens_at_most: int
    output_tokens_at_most: int
    cost: float | None
    cost_at_most: float | None


def estimates(plan: Plan, done: History, price: Price) -> list[Estimate]:
    """What is left to ask of each model; tokens are counted roughly, four characters each."""
    config = plan.config
    usages = {(task.name, dsl.name): typical_usage(cold_messages(task, dsl, config.context), config.sampling)
              for task in plan.tasks.values() for dsl in plan.dsls.values()}  # fmt: skip
    return [_estimate(model, config, usages, done, price) for model in config.models]


def _estimate(
    model: str, config: RunConfig, usages: dict[tuple[str, str], Usage], done: History, price: Price
) -> Estimate:
    expected, most = Usage(), Usage()
    requests = requests_at_most = 0
    for slot in config.slots():
        if slot.model != model:
            continue
        missing = _missing(slot, config.attempts, done)
        if not missing:
            continue
        usage = usages[slot.task, slot.dsl]
        if 1 in missing:
            requests += 1
            expected = _sum(expected, usage)
        requests_at_most += len(missing)
        for number in missing:
            longest = config.sampling.max_tokens
            feedback = 0 if number == 1 else longest + 1_500
            most = _sum(most, Usage(input=usage.input + feedback, output=longest))
    return Estimate(
        model=model, requests=requests, requests_at_most=requests_at_most, input_tokens=expected.input,
        output_tokens=expected.output, input_tokens_at_most=most.input, output_tokens_at_most=most.output,
        cost=price(model, expected), cost_at_most=price(model, most),
    )  # fmt: skip


def unfinished(slot: Slot, attempts: int, done: History) -> bool:
    """Whether something is still to be asked or judged for a sample."""
    return bool(_missing(slot, attempts, done)) or any(
        attempt.completion and not attempt.settled
        for attempt in (done.get(slot.key(number)) for number in range(1, attempts + 1))
        if attempt
    )


def _missing(slot: Slot, attempts: int, done: History) -> list[int]:
    """Attempts of a sample that may still be asked for."""
    for number in range(1, attempts + 1):
        known = done.get(slot.key(number))
        if known is None or known.completion is None:
            return list(range(number, attempts + 1))
        outcome = known.verdict.verdict.outcome if known.verdict else None
        if outcome is not None and (outcome.passed or outcome is Outcome.unsupported):
            return []
    return []


def _sum(one: Usage, other: Usage) -> Usage:
    return Usage(input=one.input + other.input, output=one.output + other.output)
