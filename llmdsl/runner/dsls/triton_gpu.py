"""Triton and Gluon on the GPU: launches are noted by kernel name, and left out in a ghost run."""

from __future__ import annotations

from typing import Any

from . import LaunchLog


def install(log: LaunchLog, language: str) -> None:
    """Wraps every launch of this process. Only kernels of `language` ("triton", "gluon") are the candidate's own."""
    from triton.runtime.jit import JITFunction

    shipped = JITFunction.run

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        kernel = shipped(self, *args, grid=grid, warmup=warmup or log.ghost, **kwargs)
        if not warmup:
            name = getattr(kernel, "name", self.fn.__name__)
            if language_of(self) == language:
                log.launched(name)
            else:
                log.others.add(name)
        return kernel

    JITFunction.run = run


def language_of(function: Any) -> str:
    """The language of a function under either's `jit`."""
    return "gluon" if function.is_gluon() else "triton"
