"""Task folders → `Task`."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from llmdsl.errors import InvalidTask, UnknownTask
from llmdsl.resources import tasks_dir
from llmdsl.tasks.task import Case, Task


def task_names() -> list[str]:
    """Names of all tasks that ship with the project."""
    return sorted(path.parent.name for path in tasks_dir().glob("*/task.yaml"))


@cache
def load_task(name: str) -> Task:
    """The task of that name, or the one in the folder of that path. Raises UnknownTask, InvalidTask."""
    folder = Path(name) if "/" in name else tasks_dir() / name
    if not (folder / "task.yaml").is_file():
        raise UnknownTask(name, task_names())
    return read_task(folder)


def read_task(folder: Path) -> Task:
    """Reads `folder/task.yaml`; each case entry becomes one `Case` per dtype."""
    try:
        data = yaml.safe_load((folder / "task.yaml").read_text())
        dtypes = data.pop("dtypes")
        cases = data.pop("cases")
        expanded = [
            case
            for kind in ("test", "bench")
            for entry in cases[kind]
            for case in _expand(entry, kind, dtypes)
        ]
        task = Task(**data, cases=tuple(expanded), folder=folder)
    except (ValidationError, KeyError, TypeError, yaml.YAMLError) as error:
        raise InvalidTask(
            f"{folder / 'task.yaml'}: {error}\nFix it, then run `llmdsl tasks check {folder.name}`."
        ) from error
    ids = [case.id for case in task.cases]
    if twice := sorted({i for i in ids if ids.count(i) > 1}):
        raise InvalidTask(
            f"{folder / 'task.yaml'}: case names must be unique, but {', '.join(twice)} stands twice."
        )
    return task


def _expand(entry: dict[str, Any], kind: str, dtypes: list[str]) -> list[Case]:
    entry = dict(entry)
    return [Case(kind=kind, dtype=dtype, **entry) for dtype in entry.pop("dtypes", dtypes)]
