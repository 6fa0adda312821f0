"""What a DSL is to llmdsl. One module per DSL in this package exports one `Dsl` named `DSL`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from llmdsl.judge.verdict import Tier


@dataclass(frozen=True)
class Dsl:
    """The trusted facts of a kernel language. Nothing here imports the language or a candidate.

    `backend` names the module in `llmdsl/runner/dsls/` (or the path of a file) that compiles and runs candidates
    inside the sandbox.
    """

    name: str
    title: str
    suffix: Literal[".py", ".cu"]
    fences: tuple[str, ...]  # markdown fence languages an answer may use, best first
    packages: tuple[str, ...]  # PyPI names whose versions go into every record
    tiers: tuple[Tier, ...]  # best first
    backend: str
    install: str  # the command that brings it
    modules: tuple[str, ...] = ()  # what a candidate may import besides torch; () where named as the packages
    tools: tuple[str, ...] = ()  # programs it needs besides its packages
    archs: tuple[str, ...] = ("sm_90a", "sm_100a")
    beyond_interpreter: tuple[str, ...] = ()
    """Names in a source without which its interpreter has no reason to skip a case."""
    skips: Callable[[str, str], str | None] = field(default=lambda tier, dtype: None)
    """(tier, dtype) → why that tier cannot judge such a case, or None."""
