"""CuTe DSL: CUDA's threads and CUTLASS' layout algebra in Python, traced into MLIR; the author decides everything."""

from __future__ import annotations

from llmdsl.dsls.base import Dsl

DSL = Dsl(
    name="cute",
    title="CuTe DSL",
    suffix=".py",
    fences=("python", "py", "cute"),
    packages=("nvidia-cutlass-dsl", "cuda-bindings", "torch"),
    modules=("cutlass", "cuda.bindings"),
    tiers=("gpu", "compile"),
    backend="cute",
    install="pip install 'llmdsl[cute]'",
)
