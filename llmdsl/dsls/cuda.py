"""CUDA C++: threads and blocks; everything above registers is in the programmer's hands."""

from __future__ import annotations

from llmdsl.dsls.base import Dsl

DSL = Dsl(
    name="cuda",
    title="CUDA C++",
    suffix=".cu",
    fences=("cuda", "cu", "cpp", "c++", "c"),
    packages=("torch",),
    tools=("nvcc",),
    tiers=("gpu", "compile"),
    backend="cuda",
    install="pip install 'llmdsl[cuda]', or CUDA's toolkit with `nvcc` on PATH",
)
