"""What attempt n + 1 is told of attempt n."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmdsl.generate.feedback import ANSWER_BUDGET, DIAGNOSTICS_BUDGET, MEANING, clip, repair_messages, shown
from llmdsl.generate.prompt import cold_messages
from llmdsl.judge.verdict import Diagnostic, Outcome
from tests.generate.made import DSL, TASK, verdict

COLD = cold_messages(TASK, DSL, "none")


def test_candidate_outcome_and_diagnostics_are_in_it() -> None:
    said = [Diagnostic(kind="compiler", message="name 'tl.expo' is not defined", line=12, case="odd-float16")]
    *_, assistant, user = repair_messages(
        COLD, TASK, DSL, "words", "import torch\n", verdict("compile_error", diagnostics=said)
    )
    assert assistant.role == "assistant" and assistant.content == "```python\nimport torch\n```\n"
    assert "judged `compile_error`: a kernel does not compile." in user.content
    assert (
        "Compiler, line 12, on rows=7, cols=129 (float16):\n```\nname 'tl.expo' is not defined\n```"
        in user.content
    )
    assert "```python" in user.content and "defining `softmax`" in user.content


def test_without_code_the_answer_itself_is_shown() -> None:
    said = [Diagnostic(kind="no_code", message="no code in the answer (finish reason: stop)")]
    *_, assistant, user = repair_messages(
        COLD, TASK, DSL, "I cannot.", None, verdict("no_code", diagnostics=said)
    )
    assert assistant.content == "I cannot." and "finish reason: stop" in user.content
    *_, assistant, _ = repair_messages(COLD, TASK, DSL, " ", None, verdict("no_code"))
    assert assistant.content == "(no answer)"


def test_nothing_of_a_hidden_case_is_told_but_the_kind() -> None:
    hidden = next(case for case in TASK.cases if case.hidden)
    said = [Diagnostic(kind="launch", message=f"saw {hidden.params}", line=3, case=hidden.id),
            Diagnostic(kind="compiler", message="seen", case=f"{hidden.id}@sm_90a")]  # fmt: skip
    first, second = shown(tuple(said), TASK)
    assert (
        first.heading == "Launch, on a shape that is not listed:" and "3001" not in first.text + first.heading
    )
    assert "seen" not in second.text


def test_a_layout_is_named() -> None:
    (one,) = shown(
        (Diagnostic(kind="wrong_elements", message="y[0, 1] is wrong", case="transposed-float32"),), TASK
    )
    assert (
        one.heading
        == "Wrong elements, on rows=33, cols=47 (float32; tensors with their last two dimensions swapped in memory, so that the last stride is not 1):"
    )


def test_the_same_fault_on_several_shapes_is_told_once() -> None:
    said = [Diagnostic(kind="foreign_op", message="torch.softmax", case=case.id) for case in TASK.test_cases]
    assert [one.text for one in shown(tuple(said), TASK)] == [
        "torch.softmax",
        "The file must be right for every shape.",
    ]


def test_diagnostics_and_candidates_are_cut() -> None:
    said = [Diagnostic(kind="compiler", message=f"head{n} " + "x" * 50_000 + f" tail{n}") for n in range(3)]
    *_, assistant, user = repair_messages(
        COLD, TASK, DSL, "", "y" * 100_000, verdict("compile_error", diagnostics=said)
    )
    assert len(user.content) < DIAGNOSTICS_BUDGET + 600 and len(assistant.content) < ANSWER_BUDGET + 100
    for n in range(3):
        assert f"head{n} x" in user.content and f"x tail{n}" in user.content


@pytest.mark.parametrize("outcome", list(Outcome))
def test_every_outcome_has_a_meaning(outcome: Outcome) -> None:
    assert MEANING[outcome].endswith(".")


@given(st.text(max_size=400), st.integers(50, 300))
def test_clip_keeps_head_and_tail_within_the_budget(text: str, budget: int) -> None:
    cut = clip(text, budget)
    assert len(cut) <= budget
    if len(text) <= budget:
        assert cut == text
    else:
        head, _, tail = cut.partition("\n… ")
        assert text.startswith(head) and text.endswith(tail.partition(" …\n")[2])
