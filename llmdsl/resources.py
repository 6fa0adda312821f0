"""Where tasks, prompts and reference kernels lie: beside the package in a checkout, inside it in a wheel."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


@cache
def data_root() -> Path:
    """The folder that holds `tasks/`, `prompts/` and `reference_kernels/`."""
    bundled = _PACKAGE / "data"
    return bundled if bundled.is_dir() else _PACKAGE.parent


def tasks_dir() -> Path:
    return data_root() / "tasks"


def prompts_dir() -> Path:
    return data_root() / "prompts"


def reference_kernels_dir() -> Path:
    return data_root() / "reference_kernels"
