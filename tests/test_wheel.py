"""A wheel holds all that llmdsl needs: installed from it, away from any checkout, it lists tasks and runs an evaluation."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).resolve().parent.parent


def run(*command: object, cwd: Path, expect: int = 0, timeout: float = 300) -> str:
    """stdout of a command in an environment that points to no checkout."""
    environment = {
        k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    }
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert done.returncode == expect, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps", "--no-index",
        "-w", out, ROOT, cwd=out)  # fmt: skip
    (made,) = out.glob("llmdsl-*.whl")
    return made


@pytest.fixture(scope="module")
def elsewhere(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`bin/` of an environment that holds the wheel, and this one's packages except the checkout."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", wheel,
        cwd=folder)  # fmt: skip
    own = Path(
        run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder).strip()
    )
    # A .pth adds the folder behind the environment's own; the .pth files in there, which lead to the checkout, are not read.
    paths = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (own / "packages.pth").write_text("\n".join(sorted(paths)) + "\n")
    return folder / "bin"


def test_wheel_holds_data_and_nothing_else(wheel: Path):
    names = ZipFile(wheel).namelist()
    for needed in ("llmdsl/cli/app.py", "llmdsl/data/tasks/softmax/task.yaml", "llmdsl/data/tasks/softmax/wrong/no_max.py",
                   "llmdsl/data/prompts/system.md.j2", "llmdsl/data/prompts/dsl/triton/guide.md",
                   "llmdsl/data/reference_kernels/softmax/triton.py"):  # fmt: skip
        assert needed in names
    assert {name.split("/")[0] for name in names} == {"llmdsl", "llmdsl-0.1.0.dist-info"}
    assert [name for name in names if "__pycache__" in name] == []
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_modules_and_data_come_from_the_wheel(elsewhere: Path, tmp_path: Path):
    code = "import llmdsl.cli.app, llmdsl.resources as r; print(llmdsl.__file__); print(r.tasks_dir())"
    for line in run(elsewhere / "python", "-c", code, cwd=tmp_path).splitlines():
        assert line.startswith(str(elsewhere.parent)), line


def test_tasks_are_listed(elsewhere: Path, tmp_path: Path):
    listed = json.loads(run(elsewhere / "llmdsl", "tasks", "list", "--json", cwd=tmp_path))
    softmax = next(task for task in listed["tasks"] if task["task"] == "softmax")
    assert "triton" in softmax["references"]
    assert softmax["test"] == 26 and softmax["bench"] == 3
    assert "softmax" in run(elsewhere / "llmdsl", "tasks", "list", cwd=tmp_path)


def test_evaluation_from_a_wheel(elsewhere: Path, tmp_path: Path):
    """The judge's sandbox must find the runner in an installed package, and the oracle its kernels."""
    answer = run(elsewhere / "llmdsl", "eval", "--model", "oracle", "--dsl", "triton", "--tasks", "softmax",
                 "--tier", "interpret", "--out", tmp_path / "run", "--json", cwd=tmp_path)  # fmt: skip
    report = json.loads(answer)
    assert [attempt["outcome"] for attempt in report["attempts"]] == ["correct"]
