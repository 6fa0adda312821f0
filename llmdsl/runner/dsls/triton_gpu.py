"""Triton on the GPU: launches are noted by kernel name, and left out in a ghost run."""

from __future__ import annotations

from typing import Any

from . import LaunchLog


def install(arch: str, log: LaunchLog, watch: Any) -> None:
    """Wraps every launch of this process."""
    from triton.runtime.jit import JITFunction

    shipped = JITFunction.run

    def run(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
        kernel = shipped(self, *args, grid=grid, warmup=warmup or log.ghost, **kwargs)
        if not warmup:
            log.launched(getattr(kernel, "name", self.fn.__name__))
        return kernel

    JITFunction.run = run
