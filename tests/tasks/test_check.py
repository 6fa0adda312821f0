"""A task that could not tell right from wrong is refused, and told why."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from llmdsl.errors import InvalidTask
from llmdsl.resources import tasks_dir
from llmdsl.tasks.check import check_task
from llmdsl.tasks.load import load_task, read_task
from llmdsl.tasks.mutants import Situation, mutants


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """As the command does: on tensors this small, threads mostly wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def softmax(tmp_path: Path) -> Path:
    """A copy of the task softmax to spoil."""
    return Path(shutil.copytree(tasks_dir() / "softmax", tmp_path / "softmax"))


def edit(path: Path, pattern: str, replacement: str) -> None:
    text, times = re.subn(pattern, replacement, path.read_text())
    assert times, f"{pattern!r} is not in {path}"
    path.write_text(text)


def test_softmax_is_fit():
    check = check_task(load_task("softmax"))
    assert check.problems == []
    assert check.passed
    assert check.margin > 10
    assert 0 < check.good <= 1
    assert check.answers >= 3 + 10 * 3  # planted ones, and mutants in three dtypes


def test_lax_tolerance_is_refused(softmax: Path):
    edit(softmax / "task.yaml", r"\nwork:", "\ntolerance: {units: 1.0e9}\nwork:")
    check = check_task(read_task(softmax))
    assert not check.passed
    text = "\n".join(check.problems)
    assert "planted wrong/low_precision.py: accepted on all 26 cases" in text
    for name in ("zeros", "half of it zero", "sign flipped", "low precision", "rounded result", "last element left out",
                 "right for shown shapes only"):  # fmt: skip
        for dtype in ("float32", "float16", "bfloat16"):
            assert f"mutant {name}, {dtype}: accepted" in text
    assert "mutant NaN" not in text  # a NaN is within no bound, however wide


def test_strict_tolerance_refuses_the_good_answer(softmax: Path):
    edit(softmax / "task.yaml", r"\nwork:", "\ntolerance: {units: 0.01}\nwork:")
    problems = check_task(read_task(softmax)).problems
    assert any("the good answer is rejected" in problem for problem in problems)


def test_right_answer_among_the_planted_is_named(softmax: Path):
    (softmax / "wrong" / "right.py").write_text(
        "import torch\ndef softmax(x): return torch.softmax(x.float(), -1).to(x.dtype)\n"
    )
    assert check_task(read_task(softmax)).problems == ["planted wrong/right.py: accepted on all 26 cases"]


def test_planted_file_without_the_function(softmax: Path):
    (softmax / "wrong" / "empty.py").write_text("")
    with pytest.raises(InvalidTask, match="llmdsl tasks check softmax"):
        check_task(read_task(softmax))


def test_missing_variety_is_named(softmax: Path):
    edit(softmax / "task.yaml", r", layout: \w+", "")
    edit(softmax / "task.yaml", r", values: \w+", "")
    edit(softmax / "task.yaml", r", hidden: true", "")
    edit(softmax / "task.yaml", r', source: "[^"]*"', "")
    edit(softmax / "task.yaml", r"flops: .*", "flops: 0 * rows")
    shutil.rmtree(softmax / "wrong")
    text = "\n".join(check_task(read_task(softmax)).problems)
    for reason in ("has no test case whose layout is not contiguous", "has no test case with larger values than normal",
                   "has no hidden test case", "bench case vocabulary-bfloat16 names no source",
                   "work.flops of case small-float32 is 0, not positive", "has no planted wrong answers",
                   "mutant right for shown shapes only, bfloat16: accepted on all 8 cases"):  # fmt: skip
        assert reason in text


def test_hidden_case_of_a_shape_that_is_shown_hides_nothing(softmax: Path):
    """The flag alone is not enough: a kernel for the shapes of the prompt alone must meet another one, in every dtype."""
    edit(softmax / "task.yaml", r"rows: 2, cols: 3001", "rows: 7, cols: 129")
    edit(softmax / "task.yaml", r"rows: 130, cols: 17", "rows: 4, cols: 64")
    problems = check_task(read_task(softmax)).problems
    # float32 has a third hidden case, very-long-row.
    assert problems == [f"mutant right for shown shapes only, {dtype}: accepted on all 8 cases"
                        for dtype in ("float16", "bfloat16")]  # fmt: skip


def test_even_sizes_only(softmax: Path):
    path = softmax / "task.yaml"
    path.write_text(re.sub(r"(rows|cols): (\d+)", lambda m: f"{m[1]}: {2 * int(m[2])}", path.read_text()))
    assert check_task(read_task(softmax)).problems == ["has no test case of an odd size"]


def test_layouts_that_reference_does_not_make(softmax: Path):
    edit(
        softmax / "reference.py", r"make\.tensor\(\(rows, cols\)\)", "make.tensor((rows, cols)).contiguous()"
    )
    assert check_task(read_task(softmax)).problems == ["makes contiguous inputs for every layout"]


def test_broken_parts_are_named(softmax: Path):
    edit(softmax / "task.yaml", r"flops: .*", "flops: 5 * rows * columns")
    edit(softmax / "task.yaml", r"bytes: .*", "bytes: rows / (cols - cols)")
    edit(
        softmax / "reference.py", r"make\.tensor\(\(rows, cols\)\)", "make.tensor((rows, 100 // (cols - 64)))"
    )
    text = "\n".join(check_task(read_task(softmax)).problems)
    assert "work.flops of case small-float32: formula '5 * rows * columns': unknown name 'columns'" in text
    assert "work.bytes of case small-float32: division by zero" in text
    assert "case small-float32: reference.py fails with ZeroDivisionError" in text


def test_each_output_is_tried_alone(tmp_path: Path):
    """Zeros in both outputs fail by the scale, however wide the bound of the values."""
    folder = Path(shutil.copytree(tasks_dir() / "quantize_fp8", tmp_path / "quantize_fp8"))
    edit(folder / "task.yaml", r"(name: q,.*)units: [\d.]+", r"\g<1>units: 1.0e9")
    problems = check_task(read_task(folder)).problems
    assert any(problem.startswith("mutant zeros in q, float32: accepted") for problem in problems)
    assert not any("in scale" in problem for problem in problems)


def test_inputs_that_ignore_or_outgrow_their_seed(softmax: Path):
    reference = softmax / "reference.py"
    body = reference.read_text()
    reference.write_text(
        body.replace(
            "make.tensor((rows, cols))", "torch.linspace(-2, 2, rows * cols).view(rows, cols).to(make.dtype)"
        )
    )
    assert "case small-float32: inputs are the same for every seed" in check_task(read_task(softmax)).problems

    other = softmax.with_name("softmax2")
    shutil.copytree(softmax, other)
    (other / "reference.py").write_text(
        body.replace("make.tensor((rows, cols))", "torch.randn(rows, cols).to(make.dtype)")
    )
    assert ("case small-float32: inputs of one seed differ from call to call"
            in check_task(read_task(other)).problems)  # fmt: skip


def test_mutants_are_what_they_say():
    task = load_task("softmax")
    meaning = task.meaning()
    case = next(case for case in task.test_cases if case.id == "transposed-float32")
    args, others = meaning.make_inputs(case, 1), meaning.make_inputs(case, 2)
    good, other = meaning.good(case, args), meaning.good(case, others)
    situation = Situation(case, args, (), good, other)
    made = {name: mutant(situation)[0] for name, mutant in mutants(meaning).items()}
    y = good[0]
    assert torch.equal(made["rows permuted"][1:], y[:-1])
    assert torch.equal(made["last row left out"][:-1], y[:-1]) and not made["last row left out"][-1].any()
    assert int((made["last element left out"] != y).sum()) == 1
    assert torch.equal(made["stale"], other[0])
    # Memory read as if contiguous: the transposed matrix holds x's columns one after the other.
    read = args["x"].t().reshape(-1).view(args["x"].shape)
    assert torch.equal(made["strides ignored"], torch.softmax(read, -1))
    assert torch.equal(made["low precision"], torch.softmax(args["x"].bfloat16().float(), -1))
    assert torch.equal(made["rounded result"], y.bfloat16().float())
    assert torch.equal(made["copy of x"], args["x"])
    assert torch.equal(made["right for shown shapes only"], y)  # this case is shown


def test_command_exits_1_and_names_what_was_accepted(softmax: Path):
    edit(softmax / "task.yaml", r"\nwork:", "\ntolerance: {units: 1.0e9}\nwork:")
    command = [sys.executable, "-m", "llmdsl.cli.app", "tasks", "check", str(softmax)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1, done.stderr
    assert "FAILED softmax" in done.stdout and "low_precision.py: accepted on all 26 cases" in done.stdout
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=120)
    answer = json.loads(done.stdout)
    assert done.returncode == 1 and answer["passed"] is False


def test_command_goes_on_after_a_task_that_does_not_load(softmax: Path):
    (softmax / "reference.py").write_text("def inputs(:\n")
    command = [sys.executable, "-m", "llmdsl.cli.app", "tasks", "check", str(softmax), "vector_add"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and done.stderr == ""
    assert re.search(r"FAILED .*softmax: no wrong answer could be tried", done.stdout)
    assert "reference.py cannot be imported (SyntaxError" in done.stdout
    assert "ok     vector_add" in done.stdout
