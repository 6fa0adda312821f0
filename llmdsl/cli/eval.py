"""`llmdsl eval`: ask models for kernels, judge every answer, score the run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from llmdsl.generate.plan import Plan
    from llmdsl.models.base import Sampling
    from llmdsl.store.run import RunFolder

ModelOption = Annotated[
    list[str] | None,
    typer.Option("--model", "-m", help="provider/name: openai/…, anthropic/…, openai-compat/…, local/smollm2, replay/RUN, "
                 "oracle, mock/…. Repeat it to compare models."),
]  # fmt: skip
DslOption = Annotated[
    list[str] | None,
    typer.Option(
        "--dsl",
        help="Kernel language; repeat it or separate by commas; `all` that are installed. (default: triton)",
    ),
]
TasksOption = Annotated[str | None, typer.Option(help="Comma-separated tasks, or `all`. (default: all)")]
ContextOption = Annotated[
    Literal["none", "signature", "guide", "guide+example"] | None,
    typer.Option(help="What the prompt holds beside the description. (default: guide+example)"),
]


def eval(
    model: ModelOption = None,
    dsl: DslOption = None,
    tasks: TasksOption = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first N of the tasks.")] = None,
    samples: Annotated[
        int | None, typer.Option(min=1, help="Independent answers per task. (default: 1)")
    ] = None,
    attempts: Annotated[
        int | None,
        typer.Option(
            min=1, help="Attempts per sample; each after the first sees the judge's feedback. (default: 1)"
        ),
    ] = None,
    concurrency: Annotated[int, typer.Option(min=1, help="Requests in flight.")] = 8,
    max_cost: Annotated[
        float | None, typer.Option(min=0, help="Stop before the run has cost more US dollars.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=0, help="Stop before the run has used more tokens.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print requests, tokens and price; ask nothing.")
    ] = False,
    tier: Annotated[
        Literal["compile", "interpret", "gpu"] | None,
        typer.Option(help="How to judge. (default: the best here)"),
    ] = None,
    arch: Annotated[
        list[str] | None,
        typer.Option(help="Target of the compile tier, e.g. sm_90a; repeat it. (default: the DSL's)"),
    ] = None,
    context: ContextOption = None,
    temperature: Annotated[
        float | None, typer.Option(min=0, help="Sampling temperature (default: the provider's).")
    ] = None,
    max_output_tokens: Annotated[
        int | None, typer.Option(min=1, help="Bound of one answer, reasoning included. (default: 8192)")
    ] = None,
    reasoning_effort: Annotated[
        str | None, typer.Option(help="For models that reason, e.g. low, medium, high.")
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Sampling seed of sample 0 (sample n: seed + n), where the provider has one."),
    ] = None,
    base_url: Annotated[str | None, typer.Option(help="Server of openai-compat/… models.")] = None,
    out: Annotated[Path | None, typer.Option(help="The run's folder. (default: runs/<time>)")] = None,
    resume: Annotated[
        Path | None,
        typer.Option(help="Continue this run. Its settings are kept; what is recorded is not asked again."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")
    ] = False,
    unsafe_no_sandbox: Annotated[
        bool,
        typer.Option("--unsafe-no-sandbox", help="Run candidates unconfined, on a machine you can lose."),
    ] = False,
) -> None:
    """Ask models for kernels, judge every answer, score the run.

    Exit codes:

    \b
      0  done
      2  wrong usage
      3  this machine cannot confine candidates
      4  a provider or the judge failed; --resume asks again
      5  the budget is spent; --resume with a larger one goes on
    130  interrupted; --resume goes on
    """
    from llmdsl.generate.plan import chosen_dsls, chosen_tasks, split

    sampling = {
        "temperature": temperature,
        "max_tokens": max_output_tokens,
        "reasoning_effort": reasoning_effort,
        "seed": seed,
    }
    asked = {
        "models": split(model) if model else None,
        "dsls": chosen_dsls(dsl) if dsl else None,
        "tasks": chosen_tasks([tasks or ""], limit) if tasks or limit else None,
        "samples": samples, "attempts": attempts, "tier": tier, "archs": split(arch) if arch else None,
        "context": context, "base_url": base_url,
    }  # fmt: skip
    choice = Choice(
        {name: value for name, value in asked.items() if value is not None},
        {name: value for name, value in sampling.items() if value is not None},
        out, resume, concurrency, max_cost, max_tokens, unsafe_no_sandbox, as_json,
    )  # fmt: skip
    from llmdsl.cli import evaluation

    if dry_run:
        evaluation.dry_run(choice)
        return
    raise typer.Exit(evaluation.evaluate(choice))


@dataclass(frozen=True)
class Choice:
    """What the user typed; options left out are absent from `asked` and `sampling`."""

    asked: dict[str, Any]
    sampling: dict[str, Any]
    out: Path | None
    resume: Path | None
    concurrency: int
    max_cost: float | None
    max_tokens: int | None
    unsafe_no_sandbox: bool
    as_json: bool

    def plan(self, folder: RunFolder | None) -> Plan:
        """A new run's plan, or that of the run to resume with what was asked for on top."""
        from llmdsl.dsls.registry import load_dsl
        from llmdsl.errors import LlmdslError
        from llmdsl.generate.plan import chosen_tasks, make_plan, replan
        from llmdsl.judge.tiers import best_tier

        if folder:
            if self.out:
                raise LlmdslError("--out names a new run's folder: with --resume, leave it out.")
            sampling = folder.config.sampling.model_copy(update=self.sampling)
            return replan(folder.config, **(self.asked | {"sampling": sampling}))
        if "models" not in self.asked:
            raise LlmdslError("which model? E.g. `llmdsl eval --model oracle --dsl triton`.")
        dsls = self.asked.get("dsls", ["triton"])
        tier = best_tier(*(load_dsl(name).tiers for name in dsls))
        fallback = {"dsls": dsls, "tasks": chosen_tasks([]), "tier": tier}
        return make_plan(**(fallback | self.asked), sampling=self._sampling())

    def _sampling(self) -> Sampling:
        from llmdsl.models.base import Sampling

        return Sampling(**self.sampling)
