"""Which tier a machine offers. Light to import: the command line asks before it loads a judge."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from llmdsl.judge.verdict import Tier


def best_tier(*offered: Sequence[Tier]) -> Tier:
    """The best tier that this machine has and every DSL offers: `gpu` where an NVIDIA driver answers, else `interpret`,
    else `compile`. Where they share none, the machine's best."""
    here: list[Tier] = ["interpret", "compile"]
    if Path("/dev/nvidiactl").exists():
        here.insert(0, "gpu")
    return next((tier for tier in here if all(tier in tiers for tiers in offered)), here[0])
