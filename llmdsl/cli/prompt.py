"""`llmdsl prompt TASK`: exactly what a model would be asked, without asking one."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

import typer


def prompt(
    task: Annotated[str, typer.Argument(help="A task's name, or a folder that holds one.")],
    dsl: Annotated[str, typer.Option("--dsl", help="Kernel language.")] = "triton",
    context: Annotated[
        Literal["none", "signature", "guide", "guide+example"],
        typer.Option(help="What the prompt holds beside the description."),
    ] = "guide+example",
    as_json: Annotated[bool, typer.Option("--json", help="Print the messages as one JSON object.")] = False,
) -> None:
    """Print exactly what a model would be asked: the system message, then the user's."""
    from llmdsl.dsls.registry import load_dsl
    from llmdsl.generate.prompt import cold_messages
    from llmdsl.tasks.load import load_task

    messages = cold_messages(load_task(task), load_dsl(dsl), context)
    if as_json:
        from llmdsl.cli.report import print_json

        print_json({"task": task, "dsl": dsl, "context": context,
                    "messages": [message.model_dump(mode="json") for message in messages]})  # fmt: skip
        return
    # Our own text, sent as it is: nothing is wrapped, escaped or coloured.
    for message in messages:
        sys.stdout.write(f"===== {message.role} =====\n{message.content}\n")
