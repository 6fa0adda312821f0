"""What the interpreter does wrongly as shipped is right here: conversions bit by bit, bfloat16 arithmetic, bounds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import triton.language as tl

from llmdsl.judge.api import Judge
from llmdsl.runner.dsls.triton_interpreter import convert
from tests.corpus import entries

GOOD = next(e for e in entries("cheats", "interpret") if e.path.stem == "daemon").source
GOOD = GOOD[: GOOD.index("def softmax(x)")] + "def softmax(x):\n    return run_kernel(x)\n"


@pytest.mark.parametrize(
    ("target", "dtype"),
    [(tl.bfloat16, torch.bfloat16), (tl.float8e4nv, torch.float8_e4m3fn), (tl.float8e5, torch.float8_e5m2)],
)
def test_conversions_round_to_nearest_even(target: tl.dtype, dtype: torch.dtype) -> None:
    """Every float16 value: halfway cases, subnormals and both zeros are among them."""
    halves = torch.arange(65536, dtype=torch.int32).to(torch.int16).view(torch.float16)
    halves = halves[torch.isfinite(halves)]
    singles = halves.float()
    expected = singles
    if dtype.itemsize == 1:
        largest = torch.finfo(dtype).max
        expected = singles.clamp(-largest, largest)  # the chip's conversion saturates
    expected = expected.to(dtype)
    for source, values in ((tl.float16, halves), (tl.float32, singles)):
        bits = convert(values.numpy(), source, target)
        got = torch.from_numpy(bits.copy()).view(dtype)
        assert torch.equal(got.float(), expected.float())
    back = convert(bits, target, tl.float32).view(np.float32)
    assert np.array_equal(back, expected.float().numpy())


KERNEL = """
import os
os.environ["TRITON_INTERPRET"] = "1"
import torch, triton
import triton.language as tl
from llmdsl.runner.dsls import LaunchLog
from llmdsl.runner.dsls.triton_interpreter import install
from llmdsl.runner.watch import TorchWatch

log = LaunchLog()
install("sm_90a", log, TorchWatch())

@triton.jit
def arithmetic(a, b, out, top, total, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    m = i < n
    x, y = tl.load(a + i, mask=m, other=0.0), tl.load(b + i, mask=m, other=0.0)
    z = x * y + x
    tl.store(out + i, tl.where(z > 1.0, z, -z), mask=m)
    tl.store(top, tl.max(z, axis=0))
    tl.store(total, tl.sum(z.to(tl.float32), axis=0))

@triton.jit
def product(a, b, out, N: tl.constexpr):
    i = tl.arange(0, N)
    p = i[:, None] * N + i[None, :]
    tl.store(out + p, tl.dot(tl.load(a + p), tl.load(b + p)).to(tl.bfloat16))

torch.manual_seed(0)
a, b = torch.randn(100).bfloat16(), torch.randn(100).bfloat16()
out, top, total = torch.empty_like(a), torch.empty(1, dtype=a.dtype), torch.empty(1)
arithmetic[(1,)](a, b, out, top, total, 100, BLOCK=128)
z = a * b + a
assert torch.equal(out, torch.where(z > 1, z, -z))
assert top.item() == z.max().item()
assert abs(total.item() - z.float().sum().item()) < 1e-4
a, b = torch.randn(32, 32).bfloat16(), torch.randn(32, 32).bfloat16()
out = torch.empty_like(a)
product[(1,)](a, b, out, N=32)
exact = a.double() @ b.double()
assert ((out.double() - exact).abs() <= exact.abs() * 2**-8 + 1e-5).all()
assert log.launches == ["arithmetic", "product"]
"""


def test_bfloat16_arithmetic(tmp_path: Path) -> None:
    """In a process of its own: the patches stay for good."""
    file = tmp_path / "kernel.py"
    file.write_text(KERNEL)
    subprocess.run([sys.executable, str(file)], check=True, timeout=120)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("other=-float(\"inf\")).to", "other=-float(\"inf\")).to", None),
        ("tl.store(y + row * n_cols + cols, e / tl.sum(e, axis=0), mask=mask)",
         "tl.store(y + row * n_cols + cols - 1, e / tl.sum(e, axis=0), mask=mask)", "1 elements before the start"),
        ("x + row * stride_row + cols * stride_col, mask=mask", "x + row * stride_row + cols * stride_col, mask=cols < BLOCK",
         "elements past the end"),
    ],
)  # fmt: skip
def test_accesses_outside_of_a_tensor_are_named(
    interpreter: Judge, old: str, new: str, says: str | None
) -> None:
    assert old in GOOD
    verdict = interpreter.judge(GOOD.replace(old, new), task="softmax", dsl="triton")
    if says is None:
        assert verdict.outcome == "correct"
        return
    assert verdict.outcome == "crash"
    assert (
        says in verdict.diagnostics[0].message and "kernel softmax_kernel" in verdict.diagnostics[0].message
    )
    assert verdict.diagnostics[0].line is not None
