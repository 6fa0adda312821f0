"""Attempt n and its verdict → the messages of attempt n + 1, cut to a size every model can read."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from llmdsl.generate.prompt import LAYOUTS, Messages, render
from llmdsl.judge.verdict import Outcome
from llmdsl.models.base import Message

if TYPE_CHECKING:
    from llmdsl.dsls.base import Dsl
    from llmdsl.judge.verdict import Diagnostic, Verdict
    from llmdsl.tasks.task import Task

DIAGNOSTICS_BUDGET = 4_000  # characters of all diagnostics together
ANSWER_BUDGET = 24_000  # characters of the candidate, or of an answer without one

MEANING = {
    Outcome.no_code: "no code was found in it.",
    Outcome.syntax_error: "the file does not parse.",
    Outcome.import_error: "the file could not be loaded, or it does not define the function asked for.",
    Outcome.compile_error: "a kernel does not compile.",
    Outcome.launch_error: "the function raised an error when it was called.",
    Outcome.crash: "the process died.",
    Outcome.timeout: "it took too long.",
    Outcome.out_of_memory: "it asked for more memory than there is.",
    Outcome.wrong_result: "its result is wrong.",
    Outcome.nondeterministic: "its result differs between calls on the same input.",
    Outcome.mutated_inputs: "it changed its inputs.",
    Outcome.foreign_kernel: "the work was not done by your own kernels.",
    Outcome.tampered: "it interfered with its evaluation.",
    Outcome.correct: "it is right.",
    Outcome.compiled: "it compiles.",
    Outcome.infra_error: "the judge failed, not the answer.",
    Outcome.unsupported: "this machine cannot judge it.",
}
"""One sentence for every outcome, completing "Your answer was judged …"."""


class Shown(NamedTuple):
    heading: str
    text: str


def repair_messages(
    cold: Messages, task: Task, dsl: Dsl, answer: str, source: str | None, verdict: Verdict
) -> Messages:
    """The cold prompt, the last candidate and what the judge said of it. Earlier attempts are left out."""
    fence = dsl.fences[0]
    said = (
        clip(answer, ANSWER_BUDGET) if source is None else f"```{fence}\n{clip(source, ANSWER_BUDGET)}```\n"
    )
    feedback = render(
        "feedback.md.j2",
        task=task,
        fence=fence,
        outcome=verdict.outcome.value,
        meaning=MEANING[verdict.outcome],
        diagnostics=shown(verdict.diagnostics, task),
    )
    # Providers refuse an empty turn.
    assistant = Message(role="assistant", content=said if said.strip() else "(no answer)")
    return (*cold, assistant, Message(role="user", content=feedback))


def shown(diagnostics: tuple[Diagnostic, ...], task: Task) -> list[Shown]:
    """Diagnostics as a model may see them. Of a hidden case only the kind of its failure is told: its message could
    hold the shape, and a candidate could print what it saw."""
    visible = {case.id: case for case in task.cases if not case.hidden}
    hidden = {case.id for case in task.cases if case.hidden}
    budget = DIAGNOSTICS_BUDGET // max(1, len(diagnostics))
    result: dict[tuple[str, str], Shown] = {}  # the same fault on several shapes is told once
    for diagnostic in diagnostics:
        heading = diagnostic.kind.replace("_", " ").capitalize()
        if diagnostic.line is not None:
            heading += f", line {diagnostic.line}"
        case = (diagnostic.case or "").partition("@")[0]
        if case in hidden:
            heading = f"{diagnostic.kind.replace('_', ' ').capitalize()}, on a shape that is not listed:"
            result.setdefault(
                (diagnostic.kind, ""), Shown(heading, "The file must be right for every shape.")
            )
            continue
        if case in visible:
            sizes = ", ".join(f"{name}={value}" for name, value in visible[case].params.items())
            layout = LAYOUTS.get(visible[case].layout, visible[case].layout)
            heading += f", on {sizes} ({visible[case].dtype}{layout and '; '}{layout})"
        text = clip(diagnostic.message, budget)
        result.setdefault((diagnostic.kind, text), Shown(heading + ":", text))
    return list(result.values())


def clip(text: str, budget: int) -> str:
    """`text` within `budget` characters: its head and its tail, where compilers say what went wrong."""
    if len(text) <= budget:
        return text
    gap = "\n… {} characters left out …\n"
    room = max(0, budget - len(gap) - len(str(len(text))))
    head, tail = text[: room - room // 2], text[len(text) - room // 2 :]
    return head + gap.format(len(text) - len(head) - len(tail)) + tail
