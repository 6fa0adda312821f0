"""Loads the corpora of cheats and of honest candidates."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Entry:
    path: Path
    kind: str  # "cheats" or "honest"
    dsl: str
    task: str
    expect: str
    tiers: tuple[str, ...]

    @property
    def id(self) -> str:
        return f"{self.kind}-{self.dsl}-{self.path.stem}"

    @property
    def source(self) -> str:
        return self.path.read_text()


def entries(kind: str, tier: str) -> list[Entry]:
    """All entries of a corpus that can be judged in `tier`."""
    found = []
    for path in sorted((FOLDER / kind).glob("*/*")):
        if path.suffix not in (".py", ".cu"):
            continue
        tags = dict(re.findall(r"^(?:#|//) (task|expect|tiers): (.+)$", path.read_text(), re.MULTILINE))
        tiers = tuple(tags.get("tiers", "interpret").split())
        entry = Entry(path, kind, path.parent.name, tags["task"], tags.get("expect", "correct"), tiers)
        if tier in entry.tiers:
            found.append(entry)
    return found
