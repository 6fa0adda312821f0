"""A kernel under `@triton.autotune` is right in every tier that has no clock to tune it with."""

from __future__ import annotations

from llmdsl.judge.api import Judge
from tests.judge.test_tiers import GOOD

CONFIGS = "[triton.Config({}, num_warps=4), triton.Config({}, num_warps=8, pre_hook=lambda names: None)]"
TUNED = GOOD.replace(
    "@triton.jit\n",
    f'@triton.autotune(configs={CONFIGS}, key=["n_cols"])\n@triton.heuristics({{}})\n@triton.jit\n',
)


def test_autotuned(interpreter: Judge, compiler: Judge) -> None:
    assert "autotune" in TUNED
    assert interpreter.judge(TUNED, task="softmax", dsl="triton").outcome == "correct"
    assert compiler.judge(TUNED, task="softmax", dsl="triton").outcome == "compiled"
