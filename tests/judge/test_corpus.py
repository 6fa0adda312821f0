"""Every known cheat gets the outcome it must get, every honest style is correct, and neighbours are unaffected."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from llmdsl.judge.api import Judge
from tests.corpus import Entry, entries

GOOD = next(e for e in entries("cheats", "interpret") if e.path.stem == "daemon").source


@pytest.mark.parametrize("entry", entries("cheats", "interpret"), ids=lambda e: e.id)
def test_cheat_gets_its_outcome(interpreter: Judge, entry: Entry) -> None:
    verdict = interpreter.judge(entry.source, task=entry.task, dsl=entry.dsl)
    assert verdict.outcome == entry.expect, [d.message for d in verdict.diagnostics]


@pytest.mark.parametrize("entry", entries("honest", "interpret"), ids=lambda e: e.id)
def test_honest_candidate_is_correct(interpreter: Judge, entry: Entry) -> None:
    verdict = interpreter.judge(entry.source, task=entry.task, dsl=entry.dsl)
    assert verdict.outcome == "correct", [d.message for d in verdict.diagnostics]


@pytest.mark.parametrize("name", ["fork_bomb", "huge_allocation", "segfault", "kills_init", "endless_loop"])
def test_a_good_candidate_beside_a_hostile_one_stays_correct(interpreter: Judge, name: str) -> None:
    hostile = next(e for e in entries("cheats", "interpret") if e.path.stem == name)
    with ThreadPoolExecutor(2) as threads:
        bad = threads.submit(interpreter.judge, hostile.source, task=hostile.task, dsl="triton")
        good = threads.submit(interpreter.judge, GOOD, task="softmax", dsl="triton")
        assert good.result().outcome == "correct"
        assert bad.result().outcome == hostile.expect


def test_nothing_is_left_behind(interpreter: Judge) -> None:
    """A daemon dies with its sandbox; scratch folders and descriptors are given back."""
    daemon = next(e for e in entries("cheats", "interpret") if e.path.stem == "daemon")
    interpreter.judge(daemon.source, task="softmax", dsl="triton")  # warm
    descriptors, processes = _descriptors(), _processes()
    for _ in range(3):
        interpreter.judge(daemon.source, task="softmax", dsl="triton")
    assert _descriptors() <= descriptors
    assert _processes() <= processes
    assert not Path("/tmp/llmdsl-pwned").exists()


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def _processes() -> set[str]:
    """Pids below this process, through all generations."""
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                parents[entry] = Path(f"/proc/{entry}/stat").read_text().rsplit(")", 1)[1].split()[1]
            except OSError:
                continue
    below, grew = {str(os.getpid())}, True
    while grew:
        new = {pid for pid, parent in parents.items() if parent in below} - below
        below |= new
        grew = bool(new)
    return below
