"""The gpu tier on a real GPU: references, cheats, the clock. Run with `make test-gpu`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from llmdsl.judge.api import Judge
from llmdsl.resources import reference_kernels_dir
from llmdsl.tasks.load import load_task, task_names
from tests.corpus import Entry, entries

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="session")
def gpu() -> Iterator[Judge]:
    with Judge(tier="gpu") as judge:
        yield judge


@pytest.mark.parametrize("name", task_names())
def test_reference_is_right_and_timed(gpu: Judge, name: str) -> None:
    source = (reference_kernels_dir() / name / "triton.py").read_text()
    verdict = gpu.judge(source, task=name, dsl="triton")
    assert verdict.outcome == "correct", verdict.diagnostics
    timed = [case.timing for case in verdict.cases if case.timing]
    assert len(timed) == len(load_task(name).bench_cases)
    assert all(t.method == "cuda_graph" and t.floor_us <= t.candidate_us for t in timed)
    assert verdict.speedup() is not None and verdict.hardware["gpu"]


@pytest.mark.parametrize("entry", entries("cheats", "gpu"), ids=lambda e: e.id)
def test_cheat_gets_its_outcome(gpu: Judge, entry: Entry) -> None:
    verdict = gpu.judge(entry.source, task=entry.task, dsl=entry.dsl)
    assert verdict.outcome == entry.expect, [d.message for d in verdict.diagnostics]


SIDE_STREAM = """
import torch, triton
import triton.language as tl

@triton.jit
def add(a, b, out, n, a_row, a_col, b_row, b_col, cols, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    r, c = i // cols, i % cols
    x = tl.load(a + r * a_row + c * a_col, mask=m).to(tl.float32)
    tl.store(out + i, x + tl.load(b + r * b_row + c * b_col, mask=m).to(tl.float32), mask=m)

stream = None

def vector_add(a, b):
    global stream
    if stream is None:
        stream = torch.cuda.Stream()
    out = torch.empty(a.shape, dtype=a.dtype, device=a.device)
    n = out.numel()
    with torch.cuda.stream(stream):
        add[(triton.cdiv(n, 1024),)](a, b, out, n, *a.stride(), *b.stride(), a.shape[1], BLOCK=1024)
    return out
"""

LYING_CLOCK = (
    SIDE_STREAM.replace("with torch.cuda.stream(stream):", "if True:")
    + """
torch.cuda.Event.elapsed_time = lambda self, other: 0.05
"""
)


def test_work_on_a_side_stream_is_no_time_saved(gpu: Judge) -> None:
    """Not synchronised with the stream of the clock: the answer is not there yet when it is looked at."""
    verdict = gpu.judge(SIDE_STREAM, task="vector_add", dsl="triton")
    assert verdict.outcome != "correct", verdict.cases


def test_a_lying_clock_is_tampering(gpu: Judge) -> None:
    verdict = gpu.judge(LYING_CLOCK, task="vector_add", dsl="triton")
    assert verdict.outcome == "tampered", verdict.cases
    assert "no kernel can be faster" in verdict.diagnostics[0].message
