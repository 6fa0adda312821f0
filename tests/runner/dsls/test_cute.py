"""Planted mistakes in a CuTe DSL candidate: the outcome of each without a GPU, and the line it names."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from llmdsl.judge.api import Judge
from llmdsl.resources import data_root

pytest.importorskip("cutlass")
GOOD = (data_root() / "reference_kernels/softmax/cute.py").read_text()


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge(tier="compile") as one:
        yield one


MISTAKES = {
    "syntax": ("new = cute.arch.fmax(top, v)", "new = = cute.arch.fmax(top, v)", "syntax_error"),
    "made_up_name": ("new = cute.arch.fmax(top, v)", "new = cute.arch.maximum(top, v)", "compile_error"),
    "made_up_import": ("import cutlass.cute as cute", "import cutlass.cute.fast as cute", "import_error"),
    "wrong_type": ("total = total * cute.math.exp(top - new)", "total = None * cute.math.exp(top - new)", "compile_error"),
}  # fmt: skip


@pytest.mark.parametrize("kind", MISTAKES)
def test_planted_mistake(judge: Judge, kind: str) -> None:
    old, new, outcome = MISTAKES[kind]
    source = GOOD.replace(old, new, 1)
    assert source != GOOD
    verdict = judge.judge(source, task="softmax", dsl="cute")
    assert verdict.outcome == outcome, verdict.diagnostics
    assert verdict.diagnostics[0].line == source[: source.index(new)].count("\n") + 1, verdict.diagnostics


@pytest.mark.parametrize("task", ["vector_add", "softmax", "quantize_fp8", "matmul"])
def test_reference_compiles_for_both_chips(judge: Judge, task: str) -> None:
    source = (data_root() / f"reference_kernels/{task}/cute.py").read_text()
    verdict = judge.judge(source, task=task, dsl="cute")
    assert verdict.outcome == "compiled", verdict.diagnostics
    assert {case.case.partition("@")[2] for case in verdict.cases} == {"sm_90a", "sm_100a"}
    assert verdict.kernels and all(name.startswith("kernel_cutlass_") for name in verdict.kernels)
