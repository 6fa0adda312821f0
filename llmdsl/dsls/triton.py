"""Triton: tile programs in Python, compiled by MLIR; the compiler decides layouts, shared memory and pipelining."""

from __future__ import annotations

from llmdsl.dsls.base import Dsl

DSL = Dsl(
    name="triton",
    title="Triton",
    suffix=".py",
    fences=("python", "py", "triton"),
    packages=("triton", "torch", "numpy"),
    tiers=("gpu", "interpret", "compile"),
    backend="triton",
    beyond_interpreter=("inline_asm", "libdevice", "extern_elementwise", "atomic_"),
    install="pip install 'llmdsl[triton]'",
)
