"""Every error a user can cause, each a class of its own; the message ends in what to type next."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class LlmdslError(Exception):
    """Base of all errors that the command line prints without a traceback. `exit_code` is its exit status."""

    exit_code = 2


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """Text for an unknown name: the nearest known one first, then all of them."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"unknown {kind} {name!r}.{hint} Known: {', '.join(names)}."


class UnknownTask(LlmdslError):
    def __init__(self, name: str, known: Iterable[str]):
        super().__init__(unknown("task", name, known) + " `llmdsl tasks list` shows them.")


class UnknownDsl(LlmdslError):
    def __init__(self, name: str, known: Iterable[str]):
        super().__init__(unknown("DSL", name, known) + " `llmdsl doctor` shows what is installed.")


class BrokenDsl(LlmdslError):
    """A DSL's adapter that another package brings cannot be imported, or is no `Dsl`."""

    def __init__(self, name: str, package: str, reason: str):
        super().__init__(f"DSL {name!r} of the package {package} does not load: {reason}. Mend that package, or "
                         f"remove it: pip uninstall {package}")  # fmt: skip


class UnknownProvider(LlmdslError):
    def __init__(self, name: str, known: Iterable[str]):
        super().__init__(
            unknown("model provider", name, known) + " Write it as provider/name, e.g. openai/gpt-5."
        )


class BrokenProvider(LlmdslError):
    """A provider that another package brings cannot be imported."""

    def __init__(self, name: str, package: str, reason: str):
        super().__init__(f"model provider {name!r} of the package {package} does not load: {reason}. Mend that package, "
                         f"or remove it: pip uninstall {package}")  # fmt: skip


class InvalidModel(LlmdslError):
    """A model that cannot be asked as it was named: no key, no address, no such file, no such script."""


class InvalidTask(LlmdslError):
    """A task folder that cannot be loaded, or that `llmdsl tasks check` refuses."""


class MissingDependency(LlmdslError):
    """Something optional is not installed; the message holds the command that installs it."""


class NoSandbox(LlmdslError):
    """The kernel offers too little to confine a candidate and `--unsafe-no-sandbox` was not given."""

    exit_code = 3


class InfraError(LlmdslError):
    """The judge or its runner broke, not the candidate. Retried, never held against a model."""

    exit_code = 4


class ConfigChanged(LlmdslError):
    """A run is resumed with other settings than it was started with."""


class RunNotFound(LlmdslError):
    """No run folder at the path given."""


class BudgetExceeded(LlmdslError):
    """`--max-cost` or `--max-tokens` was reached; what was paid for is in the run folder."""

    exit_code = 5


class RunExists(LlmdslError):
    """A new run would be written over an old one."""


class RunLocked(LlmdslError):
    """Another process is appending to the run."""


class DamagedRun(LlmdslError):
    """A run folder holds something that no `llmdsl eval`, killed or not, leaves behind; the message names the line."""


class NewerRecords(LlmdslError):
    """Records of a version that this llmdsl does not know."""


class MissingPrompt(LlmdslError):
    """A DSL without the guide or example that the chosen `--context` puts into the prompt."""


class Incomparable(LlmdslError):
    """Runs whose numbers do not mean the same, or that hold nothing to compare."""
