"""The report as a person reads it."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from llmdsl.cli.tables import cell, dollars, percent, print_report, score_rows
from llmdsl.judge.verdict import Outcome
from llmdsl.models.base import Completion, Usage
from llmdsl.score.metrics import Estimate
from llmdsl.score.report import AttemptRow, Report, report
from llmdsl.store.records import CompletionRecord, Slot, VerdictRecord
from llmdsl.store.run import RunFolder
from tests.generate.made import config, verdict


def rows(*words: str | None, sample: int = 0, **last: object) -> list[AttemptRow]:
    made = [AttemptRow(model="m", dsl="d", task="t", sample=sample, attempt=n, outcome=w and Outcome(w))
            for n, w in enumerate(words, start=1)]  # fmt: skip
    return [*made[:-1], made[-1].model_copy(update=last)]


@pytest.mark.parametrize(
    ("attempts", "text"),
    [
        ([], "not run"),
        (rows("crash"), "crash"),
        (rows("crash", "no_code", "correct", speedup={"eager": 2.5}), "crash → no_code → correct 2.50x"),
        (rows("correct", error=0.25), "correct 0.25"),
        (rows("compiled"), "compiled"),
        (rows(None), "not judged"),
        (rows("crash") + rows("correct", sample=1), "crash\ncorrect"),
        (
            [row for n in range(5) for row in rows("crash" if n else "correct", sample=n)],
            "4 crash, 1 correct",
        ),
    ],
)
def test_cell(attempts: list[AttemptRow], text: str) -> None:
    assert cell(attempts).plain == text


def test_numbers() -> None:
    assert percent(Estimate(value=0.5, low=0.25, high=0.75, tasks=4)) == "50 % [25, 75]"
    assert percent(Estimate(value=1.0, tasks=1)) == "100 %" and percent(None) == "–"
    assert [dollars(c) for c in (None, 0.0, 0.00123, 12.5)] == ["?", "$0", "$0.0012", "$12.50"]


@pytest.fixture
def made(tmp_path: Path) -> Report:
    asked = config(
        models=("mock/a", "mock/[red]b"),
        tasks=("softmax", "add"),
        task_versions={"softmax": 1, "add": 1},
        tier="gpu",
    )
    with RunFolder.create(tmp_path / "run", asked, {}) as folder:
        for model, task, word, speedup in [("mock/a", "softmax", "correct", 2.0), ("mock/a", "add", "crash", None),
                                           ("mock/[red]b", "softmax", "no_code", None)]:  # fmt: skip
            key = Slot(model, "triton", task, 0).key(1)
            answer = Completion(text="", served_model="s", usage=Usage(input=1200, output=34), seconds=1.5)
            folder.append(CompletionRecord(time="", key=key, messages=(), completion=answer))
            folder.append(
                VerdictRecord(time="", key=key, source="", verdict=verdict(word, speedup, tier="gpu"))
            )
        return report(folder)


def test_models_stand_side_by_side(made: Report) -> None:
    out = io.StringIO()
    print_report(Console(file=out, width=100), made)
    lines = [
        " ".join(line.replace("│", " ").replace("┃", " ").split()) for line in out.getvalue().splitlines()
    ]
    assert (
        "task mock/a mock/[red]b" in lines
        and "softmax correct 2.00x no_code" in lines
        and "add crash not run" in lines
    )
    assert "pass@1 50 % [0, 100] 0 %" in lines
    assert "fast_1 over eager 50 % [0, 100] 0 %" in lines
    assert "speedup over eager, correct ones 2.00x –" in lines
    assert "tasks counted 2 1" in lines and "not counted – 1 not_run" in lines
    assert "tokens in + out 2,400 + 68 1,200 + 34" in lines and "cost ? ?" in lines
    assert "tokens per sample 1,234 [1,234, 1,234] 1,234" in lines and "cost per sample – –" in lines
    assert "seed 0" in out.getvalue() and "llmdsl show" in out.getvalue()


def test_it_fits_a_narrow_terminal(made: Report) -> None:
    out = io.StringIO()
    print_report(Console(file=out, width=80), made)
    assert max(map(len, out.getvalue().splitlines())) <= 80


def test_attempts_and_samples_have_rows_only_where_there_are_several(made: Report) -> None:
    names = [name for name, _ in score_rows(made)]
    assert "pass@1" in names and not any("attempts" in name or name == "pass@2" for name in names)
