"""Gluon: Triton's lower level. The same front end and back end, but layouts, shared memory, barriers and pipelines are yours."""

from __future__ import annotations

from llmdsl.dsls.base import Dsl

DSL = Dsl(
    name="gluon",
    title="Gluon",
    suffix=".py",
    fences=("python", "py", "gluon"),
    packages=("triton", "torch"),
    tiers=("gpu", "compile"),
    backend="gluon",
    install="pip install 'llmdsl[gluon]'",
)
