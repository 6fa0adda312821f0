"""CUDA C++ without a GPU: planted mistakes and their lines, what the compiler made, names in the guide."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from llmdsl.dsls.registry import load_dsl
from llmdsl.judge.api import Judge
from llmdsl.resources import prompts_dir, reference_kernels_dir
from llmdsl.runner.dsls import gpu_fault
from llmdsl.runner.dsls.nvcc import DTYPES
from llmdsl.runner.toolchain import find_tool
from llmdsl.tasks.load import task_names

NVCC = find_tool("nvcc")
if NVCC is None:
    pytest.skip("no nvcc on this machine", allow_module_level=True)
GOOD = (reference_kernels_dir() / "softmax/cuda.cu").read_text()
HEADER = (Path(load_dsl.__code__.co_filename).parents[1] / "runner/dsls/tensor.cuh").read_text()


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge(tier="compile") as one:
        yield one


MISTAKES = {
    "syntax": ("float scale = 1.0f / total;", "float scale = 1.0f / total", "syntax_error", 1),
    "made_up_name": ("total *= expf(top - next);", "total *= fast_expf(top - next);", "compile_error", 0),
    "made_up_header": ("#include <cuda_fp16.h>", "#include <cuda_softmax.h>", "import_error", 0),
    "wrong_type": ("float scale = 1.0f / total;", "float scale = x;", "compile_error", 0),
    "other_arguments": ("const Tensor& y, cudaStream_t stream) {\n    switch", "float* y, cudaStream_t stream) {\n    switch",
                        "compile_error", 0),
    "no_entry": ('extern "C" void softmax(', "void softmax_of(", "import_error", None),
}  # fmt: skip


@pytest.mark.parametrize("kind", MISTAKES)
def test_planted_mistake(judge: Judge, kind: str) -> None:
    old, new, outcome, below = MISTAKES[kind]
    assert old in GOOD
    source = GOOD.replace(old, new, 1)
    verdict = judge.judge(source, task="softmax", dsl="cuda")
    assert verdict.outcome == outcome, verdict.diagnostics
    line = source[: source.index(new)].count("\n") + 1
    assert verdict.diagnostics[0].line == (None if below is None else line + below), verdict.diagnostics


def test_too_much_shared_memory_names_the_kernel(judge: Judge) -> None:
    source = GOOD.replace("float of_warp[THREADS / 32];", "float of_warp[THREADS * 400];")
    verdict = judge.judge(source, task="softmax", dsl="cuda")
    assert verdict.outcome == "compile_error"
    assert "too much shared data" in verdict.diagnostics[0].message
    assert verdict.diagnostics[0].line == source[: source.index("softmax_kernel(")].count("\n") + 1


def test_a_file_without_kernels_is_foreign(judge: Judge) -> None:
    source = 'extern "C" void softmax(const Tensor& x, const Tensor& y, cudaStream_t stream) {}'
    verdict = judge.judge(source, task="softmax", dsl="cuda")
    assert verdict.outcome == "foreign_kernel"


def test_kernels_have_the_driver_s_names(judge: Judge) -> None:
    verdict = judge.judge(GOOD, task="softmax", dsl="cuda")
    assert verdict.outcome == "compiled"
    assert len(verdict.kernels) == 12, "three dtypes, packed or not, short rows or long"
    assert all(re.fullmatch(r"_Z14softmax_kernelI\w+", name) for name in verdict.kernels)
    assert re.fullmatch(r"\d+\.\d+\.\d+", verdict.versions["nvcc"])
    assert {case.case.partition("@")[2] for case in verdict.cases} == {"sm_90a", "sm_100a"}


@pytest.mark.parametrize("task", task_names())
def test_references_compile(judge: Judge, task: str) -> None:
    path = reference_kernels_dir() / task / "cuda.cu"
    verdict = judge.judge(path.read_text(), task=task, dsl="cuda")
    assert verdict.outcome == "compiled", verdict.diagnostics


def test_the_example_compiles_for_a_task_of_its_own(judge: Judge, tmp_path: Path) -> None:
    (tmp_path / "llmdsl_tensor.cuh").write_text(HEADER)
    command = [NVCC, "-std=c++17", "-cubin", "-arch=sm_90a", "-include", tmp_path / "llmdsl_tensor.cuh",
               "-o", tmp_path / "example.cubin", prompts_dir() / "dsl/cuda/example.cu"]  # fmt: skip
    assert subprocess.run(command, capture_output=True, text=True, check=True).stderr == ""


def test_the_guide_shows_what_is_handed_over() -> None:
    """Field by field: the guide's `Tensor` has no bodies and fewer words."""
    guide = (prompts_dir() / "dsl/cuda/guide.md").read_text()
    fields = re.compile(r"^ *(\w+(?:<class T>)?[\w*<> ]*\*? \w+(?:\[8\])?);", re.MULTILINE)
    shown = fields.findall(guide[guide.index("struct Tensor") : guide.index("};\n```")])
    held = fields.findall(HEADER[HEADER.index("struct Tensor") : HEADER.index("template")])
    assert shown == held and len(held) == 5
    enums = [re.search(r"enum class DType : int32_t {(.*?)}", text)[1] for text in (guide, HEADER)]
    assert enums[0] == enums[1]
    assert tuple(enums[0].replace("boolean", "bool").replace(" ", "").split(",")) == DTYPES


def test_names_in_the_guide_exist(tmp_path: Path) -> None:
    guide = (prompts_dir() / "dsl/cuda/guide.md").read_text()
    code = " ".join(re.findall(r"`([^`\n]+)`", guide))
    names = set(re.findall(r"\b(?:cuda[A-Z]\w+|__\w{4,}|atomic\w+|\w+f)\b(?=\()", code))
    assert len(names) > 10
    headers = sorted(set(re.findall(r"<(\w+\.h)>", guide)))
    (tmp_path / "all.cu").write_text("".join(f"#include <{header}>\n" for header in headers))
    command = [NVCC, "-std=c++17", "-E", "-D__CUDA_ARCH__=900", "-arch=sm_90a", tmp_path / "all.cu"]
    known = set(
        re.findall(r"\w+", subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    )
    assert sorted(names - known) == []


def test_faults_of_a_kernel_are_crashes() -> None:
    assert gpu_fault(RuntimeError("CUDA error: an illegal memory access was encountered")) == "crash"
    assert gpu_fault(RuntimeError("CUDA out of memory. Tried to allocate")) == "memory"
    assert gpu_fault(RuntimeError("CUDA error: invalid argument")) is None
