"""`llmdsl compare` as a person reads it."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from llmdsl.cli.compare import print_comparison
from llmdsl.score.compare import Comparison, compare
from tests.cli.running import llmdsl
from tests.score.test_compare import Said, make_run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """triton is right and twice as fast as eager in 8 tasks; cute wrong in 6, right in one, not judged in one."""
    said: Said = {("mock/a", "triton", f"t{n}"): [[("correct", 2.0)]] for n in range(8)}
    said |= {("mock/a", "cute", f"t{n}"): [["crash"]] for n in range(6)}
    said |= {("mock/a", "cute", "t6"): [[("correct", 1.0)]], ("mock/a", "cute", "t7"): [["infra_error"]]}
    make_run(tmp_path / "run", said)
    return tmp_path / "run"


def lines(text: str) -> list[str]:
    return [" ".join(line.replace("│", " ").replace("┃", " ").split()) for line in text.splitlines()]


def test_tables_say_who_is_better_and_where_the_data_cannot_tell(run: Path) -> None:
    done = llmdsl("compare", run)
    assert done.returncode == 0, done.stderr
    said = lines(done.stdout)
    assert "score triton cute" in said
    assert "pass@1 triton − cute +86 [+43, +100] 7 triton (p = 0.031)" in said
    assert "speedup over eager triton / cute 2.00x 1 can't tell: one task only" in said
    assert not [line for line in said if line.startswith("fast_0.8")]
    assert "Odds of a right first answer, against the mean dsl" in said
    assert [line.split()[0] for line in said if line.endswith("the mean")] == ["triton", "cute"]
    whole = " ".join(said)
    assert "Missing in cute (infra_error): t7. No paired number holds them." in whole
    assert "better in t0, t1, t2, t3, t4, t5; worse in none." in whole
    assert "only where both are right, so without t0, t1, t2, t3, t4, t5 and 1 more." in whole


def test_json_holds_everything(run: Path) -> None:
    done = llmdsl("compare", run, "--json")
    made = Comparison.model_validate(json.loads(done.stdout))
    assert [m.name for m in made.metrics if m.name.startswith("fast_0.8")] == ["fast_0.8 over eager"]
    assert [(m.side, m.task, m.reason) for m in made.missing] == [("cute", "t7", "infra_error")]


def test_nothing_to_compare_is_a_message(run: Path, tmp_path: Path) -> None:
    done = llmdsl("compare", run, "--by", "model")
    assert done.returncode == 2 and "only one model" in done.stderr and "--by" in done.stderr
    assert "Traceback" not in done.stderr
    assert llmdsl("compare", tmp_path / "nowhere").returncode == 2


def test_hostile_names_stay_text_and_a_narrow_terminal_loses_nothing(tmp_path: Path) -> None:
    said: Said = {(m, "d", "t"): [["crash"]] for m in ("mock/[red]a", "mock/b\x1b[2J")}
    out = io.StringIO()
    print_comparison(Console(file=out, width=80), compare([make_run(tmp_path / "run", said)]))
    assert "mock/[red]a" in out.getvalue() and "\x1b" not in out.getvalue()
    assert max(map(len, out.getvalue().splitlines())) <= 80
