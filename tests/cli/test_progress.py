"""What is seen of a run while it goes on."""

from __future__ import annotations

import io

from rich.console import Console

from llmdsl.cli.progress import EvalProgress
from llmdsl.generate.budget import Spent
from llmdsl.generate.evaluate import Answered, Asked, Failed, Finished, Judged
from llmdsl.judge.verdict import Diagnostic
from llmdsl.models.base import Completion
from llmdsl.store.records import FailureRecord, Slot
from tests.generate.made import verdict

KEY = Slot("mock/[bold]a", "triton", "softmax", 0).key(1)
ANSWER = Completion(text="", served_model="a")


def follow(progress: EvalProgress) -> None:
    hostile = Diagnostic(kind="compiler", message="\x1b]0;owned\x07 [red]no[/red] name")
    with progress:
        progress(Asked(KEY))
        progress(Answered(KEY, ANSWER, Spent(1000, 234, 0.0125)))
        progress(Judged(KEY, verdict("compile_error", diagnostics=[hostile])))
        progress(Finished(KEY.slot))
        progress(Asked(KEY))
        progress(Failed(KEY, FailureRecord(time="", key=KEY, kind="timeout", message="600 s")))


def test_plain_lines_where_there_is_no_terminal() -> None:
    out = io.StringIO()
    follow(EvalProgress(2, Console(file=out, width=80)))
    first, second = out.getvalue().splitlines()
    assert first == (
        "[1] softmax · mock/[bold]a · triton · sample 0 attempt 1: compile_error  ␛]0;owned␇ [red]no[/red] name "
        "(compile_error 1 · 1,234 tokens · $0.0125)"
    )
    assert "infra_error  timeout: 600 s" in second and "compile_error 1 infra_error 1" in second


def test_a_bar_on_a_terminal() -> None:
    out = io.StringIO()
    follow(EvalProgress(2, Console(file=out, width=200, force_terminal=True)))
    shown = out.getvalue()
    assert "1/2" in shown and "1,234 tokens" in shown and "asking 0" in shown
    assert "\x1b]0;" not in shown and "[red]no[/red]" in shown


def test_quiet_says_nothing() -> None:
    out = io.StringIO()
    follow(EvalProgress(2, Console(file=out, force_terminal=True), quiet=True))
    assert out.getvalue() == ""


def test_what_was_recorded_before_is_counted_and_not_told_again() -> None:
    out = io.StringIO()
    progress = EvalProgress(1, Console(file=out))
    progress(Answered(KEY, ANSWER, Spent(10, 5, 0.0, unpriced=1), recorded=True))
    progress(Judged(KEY, verdict("correct"), recorded=True))
    assert out.getvalue() == ""
    assert progress.status() == "correct 1 · 15 tokens · $0 + 1 unpriced · asking 0 · judging 0"
