"""The command line as a user meets it: exit codes, messages without tracebacks, and nothing a candidate can do to a terminal."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from llmdsl.cli.app import COMMANDS
from llmdsl.dsls.triton import DSL
from llmdsl.generate.prompt import cold_messages
from llmdsl.resources import reference_kernels_dir
from llmdsl.tasks.load import load_task, task_names

COMMAND = (sys.executable, "-m", "llmdsl.cli.app")


def llmdsl(*arguments: object, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *map(str, arguments)], input=stdin, capture_output=True, text=True, timeout=120,
                          env=os.environ | {"COLUMNS": "200"} | environment)  # fmt: skip


def test_help_lists_every_command_quickly():
    taken = []
    for _ in range(5):
        before = os.times()
        done = llmdsl("--help")
        after = os.times()
        taken.append(
            after.children_user + after.children_system - before.children_user - before.children_system
        )
    assert done.returncode == 0
    for name, (_, text) in COMMANDS.items():
        assert name in done.stdout and text in done.stdout
    # Processor seconds, the least of a few: what else runs on this machine must not count. It takes 0.2.
    assert min(taken) < 0.3


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_its_own_help(name: str):
    done = llmdsl(name, "--help")
    assert done.returncode == 0, done.stderr
    assert f"llmdsl {name}" in done.stdout
    assert "--help" in done.stdout


def test_version():
    assert llmdsl("--version").stdout == "llmdsl 0.1.0\n"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["evla"], 2, "Did you mean 'eval'?"),
        (["judge", "--no-such-option"], 2, "No such option"),
        (["tasks", "show", "sofmax"], 2, "Did you mean 'softmax'?"),
        (["prompt", "softmax", "--dsl", "tritn"], 2, "Did you mean 'triton'?"),
        (["judge", "/no/such/file.py", "--task", "softmax"], 2, "cannot read /no/such/file.py"),
        (["report", "/no/such/run"], 2, "/no/such/run"),
    ],
)
def test_mistakes_are_messages(arguments: list[str], code: int, said: str):
    done = llmdsl(*arguments)
    assert done.returncode == code
    assert said in done.stderr
    assert "Traceback" not in done.stderr and done.stdout == ""


def test_interrupted_exits_130(tmp_path: Path):
    """Ctrl-C while a candidate runs: no traceback, no orphan."""
    slow = tmp_path / "slow.py"
    slow.write_text("import time\ntime.sleep(60)\n")
    process = subprocess.Popen([*COMMAND, "judge", str(slow), "--task", "softmax", "--tier", "interpret"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # fmt: skip
    time.sleep(6)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=90)
    assert process.returncode == 130, err
    assert "Traceback" not in err and out == ""


def test_prompt_prints_what_is_sent():
    messages = cold_messages(load_task("softmax"), DSL, "signature")
    done = llmdsl("prompt", "softmax", "--dsl", "triton", "--context", "signature")
    assert done.stdout == "".join(f"===== {message.role} =====\n{message.content}\n" for message in messages)
    sent = json.loads(llmdsl("prompt", "softmax", "--context", "signature", "--json").stdout)
    assert sent["messages"] == [message.model_dump() for message in messages]


def test_tasks_list_and_show():
    listed = json.loads(llmdsl("tasks", "list", "--json").stdout)
    assert [task["task"] for task in listed["tasks"]] == task_names()
    shown = json.loads(llmdsl("tasks", "show", "softmax", "--json").stdout)
    case = next(case for case in shown["cases"] if case["id"] == "small-float32")
    assert case["flops"] == 5 * 4 * 64
    assert case["bytes"] == 2 * 4 * 64 * 4
    text = llmdsl("tasks", "show", "softmax").stdout
    assert "def softmax(x: torch.Tensor) -> torch.Tensor:" in text
    assert "long-row" in text and "hidden" in text and "torch.softmax(x, dim=-1)" in text


def test_judge_passes_a_right_kernel():
    done = llmdsl("judge", reference_kernels_dir() / "vector_add" / "triton.py", "--task", "vector_add",
                  "--tier", "interpret", "--json")  # fmt: skip
    assert done.returncode == 0, done.stderr
    verdict = json.loads(done.stdout)
    assert verdict["outcome"] == "correct"
    assert len(verdict["cases"]) == len(load_task("vector_add").test_cases)


def test_judge_names_the_line_of_a_wrong_one_from_stdin():
    done = llmdsl(
        "judge", "-", "--task", "softmax", "--tier", "interpret", stdin="import torch\n\ndef softmax(x:\n"
    )
    assert done.returncode == 1
    assert done.stdout.startswith("syntax_error · softmax · triton · tier interpret")
    assert "line 3" in done.stdout


def test_judge_makes_hostile_text_harmless():
    """A candidate's own words must neither move the cursor nor be taken for markup."""
    source = "raise RuntimeError('\\x1b[2J\\x1b]0;owned\\x07[bold red]not markup[/bold red] \\u202egnp')\n"
    done = llmdsl("judge", "-", "--task", "softmax", "--tier", "interpret", stdin=source)
    assert done.returncode == 1
    assert "[bold red]not markup[/bold red]" in done.stdout
    assert not set(done.stdout) & {"\x1b", "\x07", "\u202e"}


def test_judge_refuses_what_is_not_text(tmp_path: Path):
    file = tmp_path / "kernel.py"
    file.write_bytes(b"\xff\xfe\x00")
    done = llmdsl("judge", file, "--task", "softmax")
    assert done.returncode == 2 and "not UTF-8" in done.stderr


def test_doctor_tells_what_is_there_and_no_secret():
    done = llmdsl("doctor", "--json", OPENAI_API_KEY="sk-very-secret")
    found = json.loads(done.stdout)
    assert found["keys"]["OPENAI_API_KEY"] is True
    assert "sk-very-secret" not in done.stdout + llmdsl("doctor", OPENAI_API_KEY="sk-very-secret").stdout
    triton = found["dsls"]["triton"]
    assert set(triton["packages"]) == {"triton", "torch", "numpy"}
    assert triton["all_tiers"] == ["gpu", "interpret", "compile"]
    assert {"interpret", "compile"} <= set(triton["tiers"])
    assert found["sandbox"]["sufficient"] is True and done.returncode == 0
    if not found["gpus"]:
        assert "gpu" not in triton["tiers"]
        assert any("gpu tier" in each["what"] and each["get"] for each in found["missing"])


def test_doctor_without_a_package_names_the_command(tmp_path: Path):
    """An interpreter that sees llmdsl's light half only: Triton is missing, and doctor says what brings it."""
    code = (
        "import importlib.metadata as m, llmdsl.cli.doctor as d; real = m.version\n"
        "def version(name):\n"
        "    if name == 'triton': raise m.PackageNotFoundError(name)\n"
        "    return real(name)\n"
        "m.version = version\n"
        "f = d.examine(); print(f['dsls']['triton']['tiers'], [x['get'] for x in f['missing'] if 'Triton' in x['what']])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd=tmp_path
    )
    assert done.stdout == "[] [\"pip install 'llmdsl[triton]'\"]\n", done.stderr
