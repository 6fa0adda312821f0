"""Task + DSL → the messages a model gets. Only what a model may see goes in: never hidden cases, never references."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Literal, get_args

from llmdsl.errors import MissingPrompt
from llmdsl.models.base import Message
from llmdsl.resources import prompts_dir
from llmdsl.tasks.signature import signature

if TYPE_CHECKING:
    from jinja2 import Environment

    from llmdsl.dsls.base import Dsl
    from llmdsl.tasks.task import Argument, Case, Output, Task

Messages = tuple[Message, ...]
Context = Literal["none", "signature", "guide", "guide+example"]
CONTEXTS: tuple[Context, ...] = get_args(Context)
"""What a prompt holds, each with all before it: the bare function, its types and shapes, the DSL's guide, an example."""

LAYOUTS = {
    "contiguous": "",
    "transposed": "tensors with their last two dimensions swapped in memory, so that the last stride is not 1",
    "sliced": "tensors cut out of wider rows: the last stride is 1, the row stride larger than the row",
    "offset": "contiguous tensors that are not aligned to 16 bytes",
    "heads_last": "tensors whose memory order is (batch, sequence, heads, head_dim)",
}
"""What a case's layout means to who must write code for it."""


def cold_messages(task: Task, dsl: Dsl, context: Context = "guide+example") -> Messages:
    """System and user message of attempt 1. Raises MissingPrompt where the DSL has no guide or example."""
    system = render(
        "system.md.j2",
        dsl=dsl,
        fence=dsl.fences[0],
        imports=", ".join(
            f"`{name}`" for name in sorted({"torch", *(dsl.modules or dsl.packages)} - {"numpy"})
        ),
        guide=_dsl_text(dsl, "guide.md") if context in ("guide", "guide+example") else "",
        example=_dsl_text(dsl, f"example{dsl.suffix}") if context == "guide+example" else "",
    )
    visible = [case for case in task.cases if not case.hidden]
    user = render(
        "task.md.j2",
        task=task,
        dsl=dsl,
        fence="python" if dsl.suffix == ".py" else "cpp",
        detailed=context != "none",
        signature=signature(task, dsl.suffix, typed=context != "none"),
        arguments=[_about(argument, task) for argument in task.arguments],
        outputs=[_about(output, task) for output in task.outputs],
        test_cases=_case_lines(case for case in visible if case.kind == "test"),
        bench_cases=_case_lines(case for case in visible if case.kind == "bench"),
    )
    return Message(role="system", content=system), Message(role="user", content=user)


def prompts_hash(tasks: Iterable[Task], dsls: Iterable[Dsl], context: Context) -> str:
    """Identifies every prompt of a run as a model sees it: 16 hex digits."""
    digest = hashlib.sha256((prompts_dir() / "feedback.md.j2").read_bytes())
    dsls = list(dsls)
    for task in tasks:
        for dsl in dsls:
            for message in cold_messages(task, dsl, context):
                digest.update(f"{task.name}\0{dsl.name}\0{message.role}\0{message.content}\0".encode())
    return digest.hexdigest()[:16]


def render(template: str, **values: object) -> str:
    """A template under `prompts/`, with exactly one newline at the end. An undefined name in it is an error."""
    return _environment().get_template(template).render(**values).strip() + "\n"


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(prompts_dir()),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _dsl_text(dsl: Dsl, name: str) -> str:
    path = prompts_dir() / "dsl" / dsl.name / name
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        raise MissingPrompt(
            f"{dsl.title} has no {name} for prompts ({path}). Write it, or ask with `--context signature`."
        ) from None


def _about(spec: Argument | Output, task: Task) -> str:
    """What an argument or output is, for a reader who is to write code for it."""
    kind = getattr(spec, "type", "tensor")
    dtypes = spec.dtype
    if spec.dtype == "input":
        names = dict.fromkeys(case.dtype for case in task.cases if not case.hidden)
        dtypes = "in the dtype of the inputs" if spec in task.outputs else " or ".join(names)
    what = f"tensor of shape {spec.shape or 'any'}, {dtypes}" if kind == "tensor" else f"Python {kind}"
    return f"`{spec.name}`: {what}" + (f"; {spec.about.strip()}" if spec.about else "")


def _case_lines(cases: Iterable[Case]) -> list[str]:
    """One line per shape; dtypes of the same shape together."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for case in cases:
        sizes = ", ".join(f"{name}={value}" for name, value in case.params.items())
        grouped.setdefault((sizes, LAYOUTS.get(case.layout, case.layout)), []).append(case.dtype)
    return [
        f"{sizes} ({', '.join(dict.fromkeys(dtypes))})" + (f"; {layout}" if layout else "")
        for (sizes, layout), dtypes in grouped.items()
    ]
