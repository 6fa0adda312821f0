"""What the compile tier says of Gluon: planted mistakes with their lines, whose kernels count, and the references."""

from __future__ import annotations

import pytest

from llmdsl.judge.api import Judge
from llmdsl.resources import prompts_dir, reference_kernels_dir
from llmdsl.tasks.load import task_names

GOOD = """
import torch
import triton
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import warpgroup_mma


@triton.jit
def plain_kernel(x, y, cols, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < cols), mask=i < cols)


@gluon.jit
def add_kernel(a, b, out, n, a_row, a_col, b_row, b_col, cols, BLOCK: gl.constexpr, layout: gl.constexpr):
    i = gl.program_id(0).to(gl.int64) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    m = i < n
    x = gl.load(a + i // cols * a_row + i % cols * a_col, mask=m).to(gl.float32)
    y = gl.load(b + i // cols * b_row + i % cols * b_col, mask=m).to(gl.float32)
    gl.store(out + i, x + y, mask=m)


def vector_add(a, b):
    out = torch.empty(a.shape, dtype=a.dtype, device=a.device)
    layout = gl.BlockedLayout([4], [32], [4], [0])
    grid = (triton.cdiv(out.numel(), 512),)
    add_kernel[grid](a, b, out, out.numel(), *a.stride(), *b.stride(), a.shape[1], BLOCK=512, layout=layout, num_warps=4)
    return out
"""

STORE = "    gl.store(out + i, x + y, mask=m)\n"
LAUNCH = "    add_kernel[grid]("
# kind → (old, new, outcome, text of the diagnosed line, words of the message)
MISTAKES = {
    "syntax": ("m = i < n", "m = i < < n", "syntax_error", "m = i <", "syntax"),
    "made_up_name": ("x + y, mask", "gl.fast_add(x, y), mask", "compile_error", "gl.fast_add", "fast_add"),
    "made_up_import": ("nvidia.hopper import warpgroup_mma", "nvidia.hopper import wgmma", "import_error", "import wgmma",
                       "wgmma"),
    "wrong_type": ("x + y, mask", "x + None, mask", "compile_error", "x + None", ""),
    "not_a_power_of_two": ("gl.arange(0, BLOCK,", "gl.arange(0, 100,", "compile_error", "gl.arange(0, 100", "power of 2"),
    "layouts_differ": ("m = i < n", "m = gl.arange(0, BLOCK, layout=gl.BlockedLayout([1], [32], [4], [0])) < n",
                       "compile_error", "x = gl.load", "Layout mismatch"),
    "rank_of_layout": ("([4], [32], [4], [0])", "([1, 4], [1, 32], [4, 1], [1, 0])", "compile_error", "i = gl.program_id",
                       "rank"),
    "no_layout": ("gl.arange(0, BLOCK, layout=layout)", "gl.arange(0, BLOCK)", "compile_error", "i = gl.program_id",
                  "Failed to infer return type"),
    "compiler_aborts": (STORE, "    s = gl.allocate_shared_memory(gl.float16, [64, 64], gl.NVMMASharedLayout(128, 16, 2))\n"
                        "    acc = gl.zeros([64, 64], gl.float32, gl.BlockedLayout([1, 1], [1, 32], [4, 1], [1, 0]))\n"
                        "    acc = warpgroup_mma(s, s, acc)\n" + STORE, "compile_error", "acc = warpgroup_mma",
                        "LLVM ERROR"),
    "missing_argument": ("BLOCK=512, layout=layout,", "BLOCK=512,", "launch_error", LAUNCH, "layout"),
    "shared_memory": (STORE, "    s = gl.allocate_shared_memory(gl.float32, [65536], gl.SwizzledSharedLayout(1, 1, 1, [0]))\n"
                      "    s.store(gl.full([65536], 1.0, gl.float32, layout))\n" + STORE, "launch_error", LAUNCH,
                      "shared memory, Required: 262144"),
}  # fmt: skip


def line_of(source: str, text: str) -> int:
    return source[: source.index(text)].count("\n") + 1


@pytest.mark.parametrize("kind", MISTAKES)
def test_planted_mistake(kind: str, compiler: Judge) -> None:
    old, new, outcome, where, says = MISTAKES[kind]
    source = GOOD.replace(old, new, 1)
    assert source != GOOD
    verdict = compiler.judge(source, task="vector_add", dsl="gluon")
    assert verdict.outcome == outcome, verdict.diagnostics
    assert says in verdict.diagnostics[0].message
    assert verdict.diagnostics[0].line == line_of(source, where), verdict.diagnostics


def test_good_candidate(compiler: Judge) -> None:
    verdict = compiler.judge(GOOD, task="vector_add", dsl="gluon")
    assert verdict.outcome == "compiled", verdict.diagnostics
    assert verdict.kernels == ("add_kernel",) and verdict.versions["triton"]
    assert {case.case.partition("@")[2] for case in verdict.cases} == {"sm_90a", "sm_100a"}


@pytest.mark.parametrize("beside", [False, True])
def test_a_triton_kernel_is_not_gluon(compiler: Judge, beside: bool) -> None:
    plain = "    plain_kernel[(1,)](a, out, a.shape[1], BLOCK=64)\n"
    at = GOOD.index(LAUNCH)
    source = GOOD[:at] + plain + (GOOD[at:] if beside else "    return out\n")
    verdict = compiler.judge(source, task="vector_add", dsl="gluon")
    assert verdict.outcome == "foreign_kernel"
    assert "Triton kernel plain_kernel" in verdict.diagnostics[0].message


def test_a_gluon_kernel_is_not_triton(compiler: Judge) -> None:
    verdict = compiler.judge(GOOD, task="vector_add", dsl="triton")
    assert verdict.outcome == "foreign_kernel"
    assert "Gluon kernel add_kernel" in verdict.diagnostics[0].message


@pytest.mark.parametrize(
    "name", [name for name in task_names() if (reference_kernels_dir() / name / "gluon.py").exists()]
)
def test_reference_compiles(compiler: Judge, name: str) -> None:
    source = (reference_kernels_dir() / name / "gluon.py").read_text()
    verdict = compiler.judge(source, task=name, dsl="gluon")
    assert verdict.outcome == "compiled", verdict.diagnostics


def test_example_compiles(compiler: Judge) -> None:
    """The prompt's example answers no task of ours: a call in its own signature stands for one."""
    source = (prompts_dir() / "dsl" / "gluon" / "example.py").read_text()
    source += "\n\ndef softmax(x):\n    scaled_row_l1(x, 0.5)\n    return torch.empty_like(x)\n"
    verdict = compiler.judge(source, task="softmax", dsl="gluon")
    assert verdict.outcome == "compiled", verdict.diagnostics
    assert verdict.kernels == ("scaled_row_l1_kernel",)
