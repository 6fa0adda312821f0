"""Which tier a machine offers. Light to import: the command line asks before it loads a judge."""

from __future__ import annotations

from pathlib import Path

from llmdsl.judge.verdict import Tier


def best_tier() -> Tier:
    """`gpu` where an NVIDIA driver answers, else `interpret`."""
    return "gpu" if Path("/dev/nvidiactl").exists() else "interpret"
