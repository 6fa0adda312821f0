"""What each CPU tier says of one planted mistake of each kind, and that the diagnostic names the line."""

from __future__ import annotations

import textwrap

import pytest

from llmdsl.judge.api import Judge
from tests.corpus import entries

GOOD = next(e for e in entries("cheats", "interpret") if e.path.stem == "daemon").source
GOOD = GOOD[: GOOD.index("def softmax(x)")] + "def softmax(x):\n    return run_kernel(x)\n"


def line_of(source: str, text: str) -> int:
    return source[: source.index(text)].count("\n") + 1


MISTAKES = {
    "syntax": ("e = tl.exp(v", "e = = tl.exp(v", "syntax_error", "syntax_error"),
    "made_up_name": ("tl.exp(v", "tl.expo(v", "compile_error", "compile_error"),
    "made_up_import": ("import triton\n", "import triton.fastmath\n", "import_error", "import_error"),
    "non_power_of_two": ("tl.arange(0, BLOCK)", "tl.arange(0, 100)", "compile_error", "compile_error"),
    "wrong_type": (
        "tl.program_id(0).to(tl.int64)",
        "tl.program_id(0) + None",
        "compile_error",
        "compile_error",
    ),
    "missing_argument": ("x.stride(1), BLOCK", "BLOCK", "launch_error", "launch_error"),
    "wrong_index": ("cols * stride_col, mask", "(cols + 1) * stride_col, mask", "compiled", "crash"),
}


@pytest.mark.parametrize("kind", MISTAKES)
@pytest.mark.parametrize("tier", ["compile", "interpret"])
def test_planted_mistake(kind: str, tier: str, interpreter: Judge, compiler: Judge) -> None:
    old, new, compiled, interpreted = MISTAKES[kind]
    source = GOOD.replace(old, new, 1)
    assert source != GOOD
    verdict = (compiler if tier == "compile" else interpreter).judge(source, task="softmax", dsl="triton")
    assert verdict.outcome == (compiled if tier == "compile" else interpreted), verdict.diagnostics
    if not verdict.outcome.passed and kind != "missing_argument":
        assert verdict.diagnostics[0].line == line_of(source, new.split("\n")[0]), verdict.diagnostics


def test_good_candidate_in_both_tiers(interpreter: Judge, compiler: Judge) -> None:
    verdict = interpreter.judge(GOOD, task="softmax", dsl="triton")
    assert verdict.outcome == "correct"
    assert verdict.kernels == ("softmax_kernel",)
    assert all(case.status == "passed" and case.error <= 1 for case in verdict.cases)
    assert verdict.sandbox["sufficient"] and verdict.versions["triton"] and verdict.seed is not None
    verdict = compiler.judge(GOOD, task="softmax", dsl="triton")
    assert verdict.outcome == "compiled"
    assert {case.case.partition("@")[2] for case in verdict.cases} == {"sm_90a", "sm_100a"}


def test_too_much_shared_memory_is_found_without_a_gpu(compiler: Judge) -> None:
    source = textwrap.dedent("""
        import torch, triton
        import triton.language as tl

        @triton.jit
        def hungry(x, y, n, M: tl.constexpr, K: tl.constexpr):
            i = tl.arange(0, M)
            a = tl.load(x + (i[:, None] * K + tl.arange(0, K)[None, :]) % n).to(tl.float16)
            tl.store(y + (i[:, None] * M + i[None, :]) % n, tl.dot(a, tl.trans(a)).to(tl.float32))

        def softmax(x):
            y = torch.empty_like(x)
            hungry[(1,)](x, y, x.numel(), M=64, K=2048, num_warps=8)
            return y
    """)
    verdict = compiler.judge(source, task="softmax", dsl="triton")
    assert verdict.outcome == "launch_error"
    assert "shared memory" in verdict.diagnostics[0].message


def test_what_the_interpreter_cannot_do_is_unsupported_not_wrong(interpreter: Judge) -> None:
    source = GOOD.replace(
        "    e = tl.exp(v",
        '    v = tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [v], tl.float32, is_pure=True, pack=1)\n    e = tl.exp(v',
    )
    verdict = interpreter.judge(source, task="softmax", dsl="triton")
    assert verdict.outcome == "unsupported"
    assert all(case.status == "skipped" and "inline PTX" in case.reason for case in verdict.cases)


def test_missing_entry_is_named(interpreter: Judge) -> None:
    verdict = interpreter.judge(GOOD.replace("def softmax(", "def my_softmax("), task="softmax", dsl="triton")
    assert verdict.outcome == "import_error"
    assert "softmax" in verdict.diagnostics[0].message


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("return run_kernel(x).double()", "float64"),
        ("return run_kernel(x)[:-1]", "expected"),
        ("return run_kernel(x), x", "2 outputs"),
        ("run_kernel(x)", "NoneType"),
        ("return run_kernel(x).tolist()", "list"),
    ],
)
def test_wrong_kind_of_output(interpreter: Judge, answer: str, reason: str) -> None:
    verdict = interpreter.judge(GOOD.replace("return run_kernel(x)", answer), task="softmax", dsl="triton")
    assert verdict.outcome == "wrong_result"
    assert any(reason in d.message for d in verdict.diagnostics), verdict.diagnostics
