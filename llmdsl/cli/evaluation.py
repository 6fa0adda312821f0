"""The flow of `llmdsl eval`: plan, check the machine, ask and judge, report; every way it can end."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from llmdsl.cli.eval import Choice
    from llmdsl.generate.budget import Budget
    from llmdsl.generate.plan import Estimate, Plan
    from llmdsl.judge.api import Judge
    from llmdsl.models.base import Model
    from llmdsl.score.report import Report
    from llmdsl.store.history import History
    from llmdsl.store.records import RunConfig
    from llmdsl.store.run import RunFolder


def dry_run(choice: Choice) -> None:
    from llmdsl.generate.plan import estimates
    from llmdsl.models.prices import cost
    from llmdsl.store.history import history
    from llmdsl.store.run import RunFolder

    folder = RunFolder.open(choice.resume) if choice.resume else None
    plan = choice.plan(folder)
    if folder:
        folder.check(plan.config)
    ahead = estimates(plan, history(folder.records()) if folder else {}, cost)
    if choice.as_json:
        from llmdsl.cli.report import print_json

        print_json(
            {
                "config": plan.config.model_dump(mode="json"),
                "estimates": [each.model_dump() for each in ahead],
            }
        )
    else:
        _print_estimates(ahead)


def _print_estimates(ahead: list[Estimate]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from llmdsl.cli.clean import clean
    from llmdsl.cli.tables import dollars

    table = Table()
    for header in (
        "model",
        "requests",
        "input tokens",
        "output tokens",
        "price",
        "at most: requests",
        "tokens",
        "price",
    ):
        table.add_column(header, justify="left" if header == "model" else "right")
    for each in ahead:
        most = each.input_tokens_at_most + each.output_tokens_at_most
        numbers = (each.requests, each.input_tokens, each.output_tokens)
        table.add_row(Text(clean(each.model)), *(f"{n:,}" for n in numbers), dollars(each.cost),
                      f"{each.requests_at_most:,}", f"{most:,}", dollars(each.cost_at_most))  # fmt: skip
    console = Console()
    console.print(Text("Dry run: nothing was asked", style="bold"))
    console.print(table)
    console.print(
        Text("Tokens are counted roughly (four characters each). `?`: no price is known.", style="dim")
    )


def evaluate(choice: Choice) -> int:
    """Runs or resumes, prints the report, returns the exit code."""
    try:
        return _evaluate(choice)
    except KeyboardInterrupt:
        _say("Interrupted before anything was asked.")
        return 130


def _evaluate(choice: Choice) -> int:
    import asyncio
    import os
    import signal

    from llmdsl.generate.budget import Budget
    from llmdsl.models.base import Usage
    from llmdsl.models.prices import cost
    from llmdsl.models.registry import create_model
    from llmdsl.store.history import history
    from llmdsl.store.records import environment
    from llmdsl.store.run import RunFolder

    with ExitStack() as stack:
        folder = stack.enter_context(RunFolder.resume(choice.resume)) if choice.resume else None
        plan = choice.plan(folder)
        config = plan.config
        if folder:
            folder.check(config)
        budget = Budget(choice.max_cost, choice.max_tokens)
        budget.require_prices(name for name in config.models if cost(name, Usage(input=1, output=1)) is None)
        models = {name: create_model(name, base_url=_address(name, config)) for name in config.models}
        from llmdsl.judge.api import Judge  # with torch: not before what is quick to refuse has been refused

        workers = 1 if config.tier == "gpu" else max(1, (os.cpu_count() or 2) // 2)
        judge = stack.enter_context(Judge(tier=config.tier, archs=config.archs, workers=workers,
                                          unsafe_no_sandbox=choice.unsafe_no_sandbox))  # fmt: skip
        _check_judge(judge, plan, history(folder.records()) if folder else {})
        folder = folder or stack.enter_context(
            RunFolder.create(choice.out or _new_folder(), config, environment())
        )
        # asyncio ends its tasks in order at an interrupt, but only where the handler is Python's own.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            out_of_budget = asyncio.run(_ask_and_judge(choice, plan, folder, judge, models, budget, workers))
        except KeyboardInterrupt:
            _say(f"Interrupted. What was answered is kept; go on with: llmdsl eval --resume {folder.path}")
            return 130
    return _conclude(choice, folder, out_of_budget)


def _address(model: str, config: RunConfig) -> str | None:
    """--base-url is for openai-compat models, where there are any: another provider's key must not go there."""
    compatible = [name for name in config.models if name.startswith("openai-compat/")]
    return config.base_url if not compatible or model in compatible else None


async def _ask_and_judge(choice: Choice, plan: Plan, folder: RunFolder, judge: Judge, models: dict[str, Model],
                         budget: Budget, workers: int) -> bool:  # fmt: skip
    """Asks and judges what is left; returns whether the budget ended it."""
    from rich.console import Console

    from llmdsl.cli.progress import EvalProgress
    from llmdsl.generate.evaluate import Evaluation
    from llmdsl.models.prices import cost

    progress = EvalProgress(len(plan.config.slots()), Console(stderr=True), quiet=choice.as_json)
    try:
        with progress:
            evaluation = Evaluation(
                folder, models, plan.tasks, plan.dsls, judge, concurrency=choice.concurrency, judge_workers=workers,
                budget=budget, price=cost, on_event=progress,
            )  # fmt: skip
            await evaluation.run()
        return evaluation.out_of_budget
    finally:
        for model in models.values():
            await model.close()


def _check_judge(judge: Judge, plan: Plan, done: History) -> None:
    """Judges an empty file in each DSL that has answers to come, before they are paid for: raises if this machine
    cannot judge them."""
    from llmdsl.errors import InfraError, LlmdslError
    from llmdsl.generate.plan import unfinished
    from llmdsl.judge.verdict import Outcome

    task = next(iter(plan.tasks.values()))
    needed = {slot.dsl for slot in plan.config.slots() if unfinished(slot, plan.config.attempts, done)}
    for dsl in (plan.dsls[name] for name in plan.config.dsls if name in needed):
        verdict = judge.judge("", task=task, dsl=dsl)
        said = "; ".join(diagnostic.message for diagnostic in verdict.diagnostics)
        if verdict.outcome is Outcome.unsupported:
            raise LlmdslError(
                f"{dsl.title} cannot be judged in tier {judge.tier} here: {said}. "
                "Choose another --tier; `llmdsl doctor` shows what this machine has."
            )
        if verdict.outcome is Outcome.infra_error:
            raise InfraError(
                f"the judge does not work here: {said}\n`llmdsl doctor` shows what this machine has."
            )


def _conclude(choice: Choice, folder: RunFolder, out_of_budget: bool) -> int:
    """Prints the report and what is left to do."""
    from llmdsl.cli.report import print_run
    from llmdsl.cli.tables import problems

    report = print_run(folder.path, choice.as_json)
    again = f"llmdsl eval --resume {folder.path}"
    if out_of_budget:
        _say(f"The budget is spent. Go on with more: {again} --max-cost … (or --max-tokens …)")
        return 5
    if _unfinished(report):
        for line in problems(report.attempts)[:10]:
            _say(line)
        _say(f"Some attempts failed through no doing of the model. Ask again: {again}")
        return 4
    _say(f"Recorded in {folder.path}")
    return 0


def _unfinished(report: Report) -> bool:
    return any(
        score.not_run or {"infra_error", "not_judged"} & score.beside.keys() for score in report.scores
    )


def _say(text: str) -> None:
    from rich.console import Console
    from rich.text import Text

    from llmdsl.cli.clean import clean

    Console(stderr=True).print(Text(clean(text)), soft_wrap=True)


def _new_folder() -> Path:
    from datetime import datetime

    return Path("runs") / datetime.now().strftime("%Y%m%d-%H%M%S-%f")[:-3]
