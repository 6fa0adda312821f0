"""One module a DSL: how its candidates are compiled and run. Each exports one `BACKEND`."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any


class Unjudgeable(Exception):
    """This tier cannot judge what the candidate does (an interpreter without the feature): the case is skipped by name."""


class MissingTool(Exception):
    """A program that the language needs is not on this machine."""


class Backend:
    """How a DSL's candidates are judged inside the sandbox. What is here suits a language that is written in Python."""

    must_record = False
    """Whether a call that no CUDA graph can record is refused: where only a recording shows all that it does."""

    def warm(self, tier: str) -> None:
        """Imports what candidates will need, before any fork. Opens no GPU context."""
        raise NotImplementedError

    def versions(self) -> dict[str, str]:
        """Versions of what is no Python package, after `warm`: compilers."""
        return {}

    def start(self, tier: str, arch: str, log: LaunchLog, watch: Any) -> None:
        """Once per candidate process, before the candidate is imported."""
        raise NotImplementedError

    def load(self, path: str, entry: str, signature: str) -> Any:
        """Path of the candidate's file → its callable `entry`, whose first line in the file's language is `signature`."""
        from ..candidate import import_file

        return import_file(path, entry)

    def call(self, entry: Any, arguments: list[Any], outputs: list[dict[str, Any]]) -> Any:
        """Calls the entry. `outputs`: {"shape", "dtype"} of each result, for languages whose entry is handed its outputs."""
        return entry(*arguments)

    def own_kernels(self, log: LaunchLog) -> set[str]:
        """Names, as the driver knows them, of the GPU kernels that the candidate's code in this language became."""
        return set(log.launches) - log.others

    def classify(self, error: BaseException) -> str:
        """Which stage an exception of a call belongs to: "compile", "launch", "crash", "memory" or "run"."""
        return "run"

    def classify_load(self, error: BaseException) -> str:
        """The same for an exception of `load`: "syntax", "import" or "compile"."""
        return "import"

    def line_of(self, error: BaseException, path: Path) -> int | None:
        """Line of the candidate's file that the error's own fields name; None where only its traceback tells."""
        return None


class LaunchLog:
    """What the candidate's own kernels did during the current call."""

    def __init__(self) -> None:
        self.launches: list[str] = []
        self.others: set[str] = set()  # kernels of another language with the same run time
        self.ghost = False  # suppress every write a kernel makes

    def reset(self, ghost: bool = False) -> None:
        self.launches = []
        self.others = set()
        self.ghost = ghost

    def launched(self, kernel: str) -> None:
        if len(self.launches) < 1000:
            self.launches.append(kernel)


def gpu_fault(error: BaseException) -> str | None:
    """Stage of what the CUDA run time says of a kernel that ended badly; None for any other error."""
    text = str(error).lower()
    if isinstance(error, MemoryError) or "out of memory" in text or "can't allocate memory" in text:
        return "memory"
    faults = ("illegal memory access", "illegal address", "misaligned address", "unspecified launch failure",
              "illegal instruction", "hardware stack error", "device-side assert")  # fmt: skip
    return "crash" if any(fault in text for fault in faults) else None


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
