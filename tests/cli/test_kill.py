"""`kill -9` at any moment loses no answer that was received, and resume asks for none twice."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from pathlib import Path
from typing import Any

from llmdsl.store.history import history
from llmdsl.store.records import CompletionRecord
from llmdsl.store.run import RunFolder
from tests.cli.running import llmdsl, start
from tests.cli.server import serving

SAMPLES, CONCURRENCY, SEED0 = 48, 4, 1000


def sample_of(body: dict[str, Any]) -> int:
    return body["seed"] - SEED0


def answered(path: Path) -> dict[int, str]:
    """Sample → the answer on disk."""
    if not (path / "run.json").exists():
        return {}
    attempts = history(RunFolder.open(path).records())
    return {
        key.sample: attempt.completion.completion.text
        for key, attempt in attempts.items()
        if attempt.completion
    }


def test_kill_and_resume(tmp_path: Path) -> None:
    path = tmp_path / "run"
    rng = random.Random(7)

    def reply(body: dict[str, Any]) -> str:
        """Tells its sample; long, so that a kill can meet a half-written line."""
        return f"answer {sample_of(body)} " + "words " * rng.randrange(20_000)

    with serving(reply, seconds=0.02) as server:
        command = ["eval", "--model", "openai-compat/tiny", "--base-url", server.url, "--tasks", "softmax", "--tier", "interpret",
                   "--context", "none", "--samples", SAMPLES, "--concurrency", CONCURRENCY, "--seed", SEED0, "--out", path]  # fmt: skip
        kills = 0
        while len(answered(path)) < SAMPLES - 2 * CONCURRENCY:
            process = start(*command)
            command = ["eval", "--resume", path, "--concurrency", CONCURRENCY]
            heard, kept_before = len(server.bodies), set(answered(path))
            while len(server.bodies) <= heard and process.poll() is None:
                time.sleep(0.005)
            time.sleep(rng.uniform(0, 0.2))
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            kills += 1
            kept = answered(path)
            asked = {sample_of(body) for body in server.bodies}
            assert all(text.startswith(f"answer {sample} ") for sample, text in kept.items())
            # Answers are on disk before the next question goes out: only what was in flight can be missing.
            assert set(kept) <= asked and len(asked - set(kept)) <= CONCURRENCY
            assert not kept_before & {sample_of(body) for body in server.bodies[heard:]}, "asked twice"
        kept_before, heard = set(kept), len(server.bodies)
        done = llmdsl("eval", "--resume", path, "--json")
        assert done.returncode == 0, done.stderr
        assert {sample_of(body) for body in server.bodies[heard:]} == set(range(SAMPLES)) - kept_before
    assert kills >= 2
    assert len(json.loads(done.stdout)["attempts"]) == SAMPLES
    records = [record for record in RunFolder.open(path).records() if isinstance(record, CompletionRecord)]
    assert sorted(record.key.sample for record in records) == list(range(SAMPLES)), (
        "each answer is there once"
    )
