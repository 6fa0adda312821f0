"""What may import what: a cheap command line, and a wall between the judge and what runs beside a candidate."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import llmdsl

PACKAGE = Path(llmdsl.__file__).parent
HEAVY = ("torch", "triton", "openai", "anthropic", "xllamacpp", "jinja2")


@pytest.mark.parametrize(
    "statement",
    [
        "import llmdsl",
        "import sys; sys.argv = ['llmdsl', '--help']; from llmdsl.cli.app import main; main()",
        "import sys; sys.argv = ['llmdsl', 'judge', '--help']; from llmdsl.cli.app import main; main()",
        "import llmdsl.cli.doctor as doctor; doctor.examine()",
        "import llmdsl.judge.verdict, llmdsl.tasks.load, llmdsl.dsls.triton",
    ],
)
def test_nothing_heavy_is_imported(statement: str):
    watched = f"import atexit, sys; atexit.register(lambda: print('HEAVY', [m for m in {HEAVY} if m in sys.modules]))"
    done = subprocess.run(
        [sys.executable, "-c", f"{watched}\n{statement}"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "HEAVY []"


def test_runner_imports_nothing_of_the_rest():
    """It runs beside candidates, in environments that hold nothing of llmdsl but itself."""
    for path in (PACKAGE / "runner").rglob("*.py"):
        outside = [name for name in imports(path) if name.split(".")[:2] != ["llmdsl", "runner"]]
        assert [name for name in outside if name.split(".")[0] == "llmdsl"] == [], path


def test_judge_never_imports_what_loads_a_candidate():
    """A candidate's module in the judge's process would end every guarantee."""
    for path in (PACKAGE / "judge").rglob("*.py"):
        forbidden = ("llmdsl.runner.dsls", "llmdsl.runner.candidate")
        assert [name for name in imports(path) if name.startswith(forbidden)] == [], path


def imports(path: Path) -> Iterator[str]:
    """Absolute names of all modules, and of what is taken from them, that a file imports anywhere."""
    package = ("llmdsl", *path.relative_to(PACKAGE).parent.parts)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{module}.{alias.name}" for alias in node.names)


def test_import_walk_sees_relative_and_nested_imports(tmp_path: Path):
    """Guards the guard: a walk that sees nothing would let everything pass."""
    seen = set(imports(PACKAGE / "runner" / "dsls" / "triton_offline.py"))
    assert "llmdsl.runner.watch.MAX_SHARED_MEMORY" in seen  # `from ..watch import …`
    assert "triton.backends.compiler.GPUTarget" in seen  # inside a function
