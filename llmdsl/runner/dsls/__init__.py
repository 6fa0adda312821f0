"""One module a DSL: how its candidates are compiled and run. Each exports one `BACKEND`."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol


class Unjudgeable(Exception):
    """This tier cannot judge what the candidate does (an interpreter without the feature): the case is skipped by name."""


class Backend(Protocol):
    """How a DSL's candidates are judged inside the sandbox."""

    def warm(self, tier: str) -> None:
        """Imports what candidates will need, before any fork. Opens no GPU context."""

    def start(self, tier: str, arch: str, log: LaunchLog) -> None:
        """Once per candidate process, before the candidate is imported."""

    def load(self, path: str, entry: str) -> Any:
        """Path of the candidate's file → the callable `entry`."""

    def classify(self, error: BaseException) -> str:
        """Which stage an exception of a call belongs to: "compile", "launch", "crash", "memory" or "run"."""


class LaunchLog:
    """What the candidate's own kernels did during the current call."""

    def __init__(self) -> None:
        self.launches: list[str] = []
        self.ghost = False  # suppress every write a kernel makes

    def reset(self, ghost: bool = False) -> None:
        self.launches = []
        self.ghost = ghost

    def launched(self, kernel: str) -> None:
        if len(self.launches) < 1000:
            self.launches.append(kernel)


def load_backend(where: str) -> Any:
    """The backend of that module name in this folder, or of the file at that path."""
    if "/" in where:
        spec = importlib.util.spec_from_file_location("llmdsl_backend_" + Path(where).stem, where)
        assert spec and spec.loader
        module: ModuleType = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    else:
        module = importlib.import_module("." + where, __name__)
    return module.BACKEND
