"""The command `llmdsl`: a table of commands, each imported only when it runs, and errors without tracebacks.

A command is a module of this package with one plain function (or, for a group, a `typer.Typer`) and a line in
`COMMANDS`. Its parameters are typer annotations, its docstring is its help, and it imports torch and the like inside
the function. It raises LlmdslError for what a user can mend, and typer.Exit(code) where it ran but its subject failed.
"""

from __future__ import annotations

import os
import signal
import sys
from importlib import import_module
from types import FrameType
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

# name → (module:attribute, help). The attribute is the command's function or, for a group, its `typer.Typer`.
COMMANDS: dict[str, tuple[str, str]] = {
    "eval": ("llmdsl.cli.eval:eval", "Ask models for kernels, judge every answer, score the run."),
    "report": ("llmdsl.cli.report:report", "Score a run again from its records."),
    "compare": ("llmdsl.cli.compare:compare", "Compare DSLs, models, contexts or runs, paired by task."),
    "show": ("llmdsl.cli.show:show", "Print prompt, answer, candidate and diagnostics of a run's attempts."),
    "judge": ("llmdsl.cli.judge:judge", "Judge one kernel file, written by whomever."),
    "prompt": ("llmdsl.cli.prompt:prompt", "Print exactly what a model would be asked."),
    "tasks": ("llmdsl.cli.tasks:app", "List, show and check tasks."),
    "doctor": ("llmdsl.cli.doctor:doctor", "What this machine has, what it lacks, and how to get that."),
}


class LazyGroup(TyperGroup):
    """Imports a command's module when that command runs; the list of commands needs none of them."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        return TyperCommand(cmd_name, help=COMMANDS[cmd_name][1])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        return name, load(name) if name and command else command, rest


def load(name: str) -> Any:
    """The command of that name, imported."""
    module, _, attribute = COMMANDS[name][0].partition(":")
    found = getattr(import_module(module), attribute)
    if isinstance(found, typer.Typer):
        group = typer.main.get_command(found)
        group.name = name
        return group
    one = typer.Typer(add_completion=False)
    one.command(name)(found)
    return typer.main.get_command(one)


def _version(wanted: bool) -> None:
    if wanted:
        from llmdsl import __version__

        typer.echo(f"llmdsl {__version__}")
        raise typer.Exit()


def _root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    """In which GPU kernel language do language models write correct, fast kernels?"""


def command() -> TyperGroup:
    """The whole command line."""
    app = typer.Typer(cls=LazyGroup, no_args_is_help=True, add_completion=False)
    app.callback()(_root)
    group = typer.main.get_group(app)
    # For typer's "Did you mean": it looks here, not at `list_commands`.
    group.commands = {name: TyperCommand(name, help=text) for name, (_, text) in COMMANDS.items()}
    return group


def main() -> None:
    """Entry point of the console script. Exits; a mistake of the user is a message, not a traceback."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where a shell made us ignore it
        signal.signal(signal.SIGINT, _interrupt)
    from llmdsl.errors import LlmdslError

    try:
        status = command().main(prog_name="llmdsl", standalone_mode=False)
    except LlmdslError as error:
        _complain(str(error))
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        _complain("Interrupted.")
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output has gone (`llmdsl show … | head`): no fault, and nothing more to write to.
        sys.stdout = None  # type: ignore[assignment]
        sys.exit(0)
    except Exception as error:
        if not hasattr(error, "show"):  # typer's own: a wrong option, an unknown command
            raise
        error.show(file=sys.stderr)
        sys.exit(getattr(error, "exit_code", 2))
    sys.exit(status if isinstance(status, int) else 0)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Ctrl-C, also inside an import: there KeyboardInterrupt would be lost, since numpy's C code and others drop what is
    raised while they load, and the command would run on. Nothing needs an orderly end: a run folder and a runner bear
    a kill at any moment."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            os.write(2, b"llmdsl: Interrupted.\n")
            os._exit(130)
        frame = frame.f_back
    raise KeyboardInterrupt


def _complain(message: str) -> None:
    from llmdsl.cli.clean import clean

    print(f"llmdsl: {clean(message)}", file=sys.stderr)


if __name__ == "__main__":
    main()
