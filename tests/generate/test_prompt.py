"""What a model is shown, and what it must never be."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from jinja2 import UndefinedError

from llmdsl import resources
from llmdsl.dsls.registry import dsl_names, load_dsl
from llmdsl.errors import MissingPrompt
from llmdsl.generate.feedback import repair_messages
from llmdsl.generate.prompt import CONTEXTS, LAYOUTS, cold_messages, prompts_hash, render
from llmdsl.judge.verdict import Diagnostic
from llmdsl.tasks.load import load_task, task_names
from llmdsl.tasks.signature import signature
from llmdsl.tasks.task import Task
from tests.generate.made import DSL, TASK, verdict

TRITON = resources.prompts_dir() / "dsl" / "triton"


def text(task: Task, context: str = "guide+example") -> str:
    return "\n".join(message.content for message in cold_messages(task, DSL, context))


def code_lines(source: str) -> set[str]:
    """Lines that say something: what two files about the same op would share anyway is left out."""
    lines = {re.sub(r"\s+", " ", line).strip() for line in source.splitlines()}
    return {line for line in lines if len(line) > 24 and not line.startswith(("import ", "from ", "#"))}


@pytest.mark.parametrize("name", task_names())
def test_no_prompt_holds_hidden_cases_or_references(name: str) -> None:
    task = load_task(name)
    kernels = resources.reference_kernels_dir() / name
    sources = [task.reference_source(), *(path.read_text() for path in kernels.glob("*.*"))]
    secrets = {line for source in sources for line in code_lines(source)}
    # What every task's prompt holds is nobody's secret, and nor is the function's own first line.
    public = cold_messages(TASK, DSL)[0].content + signature(task, ".py", typed=False)
    secrets = {line for line in secrets if line not in public}
    shown_sizes = {str(sorted(case.params.items())) for case in task.cases if not case.hidden}
    hidden = [case for case in task.cases if case.hidden]
    failed = [
        Diagnostic(kind="wrong_elements", message=f"y[{case.params}] in {case.name}", case=case.id)
        for case in hidden
    ]
    for context in CONTEXTS:
        judged = verdict("wrong_result", diagnostics=failed)
        messages = repair_messages(cold_messages(task, DSL, context), task, DSL, "", "def f(): ...", judged)
        shown = re.sub(r"[ \t]+", " ", "\n".join(message.content for message in messages))
        assert not {line for line in secrets if line in shown}
        for case in hidden:
            named = re.search(
                rf"\b{re.escape(case.name)}\b", "\n".join(message.content for message in messages[1:])
            )
            assert not named or any(not c.hidden and case.name in c.name for c in task.cases)
            if str(sorted(case.params.items())) not in shown_sizes:
                assert ", ".join(f"{name}={value}" for name, value in case.params.items()) not in shown


@pytest.mark.parametrize("name", task_names())
def test_the_task_is_told_in_full(name: str) -> None:
    task = load_task(name)
    prompt = text(task)
    assert task.title in prompt and task.description.strip() in prompt and signature(task, ".py") in prompt
    for spec in (*task.arguments, *task.outputs):
        assert f"- `{spec.name}`: " in prompt and spec.shape in prompt
    for case in task.bench_cases:
        sizes = ", ".join(f"{name}={value}" for name, value in case.params.items())
        assert sizes in prompt and case.dtype in prompt
    assert "swapped in memory" in prompt or not any(
        c.layout == "transposed" and not c.hidden for c in task.cases
    )


@pytest.mark.parametrize("name", task_names())
def test_prompts_fit_small_models(name: str) -> None:
    assert len(text(load_task(name))) / 4 < 3500


def test_rules_are_stated() -> None:
    prompt = text(TASK, "none")
    for rule in ("foreign_kernel", "one fenced code block", "Import nothing but `torch`, `triton`", "No network, no files",
                 "Inputs are not to be changed", "under the name"):  # fmt: skip
        assert rule in prompt


def test_contexts_build_on_each_other() -> None:
    bare, signed, guided, full = (text(TASK, context) for context in CONTEXTS)
    assert "def softmax(x):" in bare and "torch.Tensor" not in bare and "cols=129" not in bare
    assert (
        "def softmax(x: torch.Tensor) -> torch.Tensor:" in signed
        and "rows=7, cols=129 (float32, float16, bfloat16)" in signed
    )
    assert "tl.program_id" not in signed and "tl.program_id" in guided
    assert "scaled_row_l1" not in guided and "def scaled_row_l1(" in full
    assert len(bare) < len(signed) < len(guided) < len(full)


def test_the_system_message_is_the_same_for_every_task() -> None:
    """Providers cache a prompt's common start."""
    other = TASK.model_copy(update={"name": "other", "title": "Other", "entry": "other"})
    assert cold_messages(TASK, DSL)[0] == cold_messages(other, DSL)[0]


def test_an_undefined_name_in_a_template_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UndefinedError, match="dsl"):
        render("system.md.j2")


def test_a_dsl_without_a_guide_says_what_to_type() -> None:
    from dataclasses import replace

    unguided = replace(DSL, name="unguided", title="Unguided")
    with pytest.raises(MissingPrompt, match="--context signature"):
        cold_messages(TASK, unguided, "guide")
    assert cold_messages(TASK, unguided, "signature")


def test_the_hash_changes_with_what_is_shown() -> None:
    same = prompts_hash([TASK], [DSL], "guide")
    assert same == prompts_hash([TASK], [DSL], "guide") and len(same) == 16
    changed = TASK.model_copy(update={"description": "Another op."})
    assert len({same, prompts_hash([TASK], [DSL], "none"), prompts_hash([changed], [DSL], "guide")}) == 3


@pytest.mark.parametrize("name", dsl_names())
def test_every_dsl_has_a_guide_and_an_example(name: str) -> None:
    dsl = load_dsl(name)
    assert (resources.prompts_dir() / "dsl" / name / "guide.md").is_file()
    assert (resources.prompts_dir() / "dsl" / name / f"example{dsl.suffix}").is_file()


@pytest.mark.parametrize("file", ["guide.md", "example.py"])
def test_every_triton_name_that_is_mentioned_exists(file: str) -> None:
    import triton
    import triton.language as tl

    content = (TRITON / file).read_text()
    names = set(re.findall(r"\b(tl|triton)\.([A-Za-z_][\w.]*\w)", content))
    assert len(names) > 8
    for root, dotted in names:
        found: object = {"tl": tl, "triton": triton}[root]
        for part in dotted.split("."):
            assert hasattr(found, part), f"{file} mentions {root}.{dotted}"
            found = getattr(found, part)
    for module, what in re.findall(r"`?from ([\w.]+) import (\w+)`?", content):
        assert hasattr(__import__(module, fromlist=[what]), what)


def test_the_triton_example_is_right_in_the_interpreter(tmp_path: Path) -> None:
    program = tmp_path / "check.py"
    program.write_text(
        (TRITON / "example.py").read_text()
        + """
for rows, cols, dtype in [(1, 1, torch.float32), (5, 1025, torch.float32), (7, 300, torch.float16), (3, 4000, torch.bfloat16)]:
    wide = (torch.randn(rows, 2 * cols) * 4).to(dtype)
    for x in (wide[:, :cols].contiguous(), wide[:, ::2], wide[:, :cols].t().contiguous().t()):
        want = (x.double().abs().sum(dim=1) * 0.5).to(dtype)
        torch.testing.assert_close(scaled_row_l1(x, 0.5), want)
print("right")
"""
    )
    done = subprocess.run([sys.executable, str(program)], env={"TRITON_INTERPRET": "1", "PATH": "/usr/bin:/bin"},
                          capture_output=True, text=True)  # fmt: skip
    assert done.stdout == "right\n", done.stderr


@pytest.mark.parametrize("name", task_names())
def test_every_layout_is_explained(name: str) -> None:
    assert {case.layout for case in load_task(name).cases} <= LAYOUTS.keys()


def test_every_dsl_names_modules_that_can_be_imported_and_its_own_kind_of_function() -> None:
    for name in dsl_names():
        dsl = load_dsl(name)
        system, user = (message.content for message in cold_messages(TASK, dsl))
        allowed = re.search(r"Import nothing but (.*) and modules", system)
        assert bool(allowed) == (dsl.suffix == ".py")
        for module in re.findall(r"`([^`]+)`", allowed[1]) if allowed else ():
            assert find_spec(module), f"{name}: no module {module}"
        assert signature(TASK, dsl.suffix) in user
