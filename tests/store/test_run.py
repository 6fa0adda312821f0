"""What a run folder holds after every kind of interruption."""

from __future__ import annotations

import json
import math
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from llmdsl.errors import ConfigChanged, DamagedRun, NewerRecords, RunExists, RunLocked, RunNotFound
from llmdsl.judge.verdict import CaseResult, Outcome, Timing, Verdict
from llmdsl.models.base import Sampling
from llmdsl.store.records import VerdictRecord, storable
from llmdsl.store.run import RunFolder, differences
from tests.store.made import completion, config

TEXTS = [
    "lone \ud800 surrogate",
    "plain",
    "two\nlines and \u2028 a separator",
    "ünïcode 🧮",
    '{"looks": "like json"}',
    "",
]


def make_run(path: Path, texts: list[str] = TEXTS) -> Path:
    with RunFolder.create(path, config(), {"python": "3"}) as run:
        for sample, text in enumerate(texts):
            run.append(completion(sample, text=text))
    return path / "records.jsonl"


def texts_of(path: Path) -> list[str]:
    return [record.completion.text for record in RunFolder.open(path).records()]


def test_what_was_written_is_read(tmp_path: Path) -> None:
    make_run(tmp_path / "run")
    run = RunFolder.open(tmp_path / "run")
    assert run.config == config() and run.environment == {"python": "3"}
    assert list(run.records()) == [completion(sample, text=text) for sample, text in enumerate(TEXTS)]


def test_cut_at_every_byte_loses_only_the_record_that_was_being_written(tmp_path: Path) -> None:
    records = make_run(tmp_path / "run")
    whole = records.read_bytes()
    ends = [i + 1 for i, byte in enumerate(whole) if byte == ord("\n")]
    for cut in range(len(whole) + 1):
        records.write_bytes(whole[:cut])
        # A record is whole once its last brace is there, with or without the newline.
        expected = TEXTS[: sum(end - 1 <= cut for end in ends)]
        assert texts_of(tmp_path / "run") == expected
        with RunFolder.resume(tmp_path / "run") as run:
            run.append(completion(99, text="after"))
        assert texts_of(tmp_path / "run") == [*expected, "after"]


def test_a_torn_line_in_the_middle_is_an_error_that_names_it(tmp_path: Path) -> None:
    records = make_run(tmp_path / "run")
    lines = records.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1][:40] + b"\n"
    records.write_bytes(b"".join(lines))
    with pytest.raises(DamagedRun, match=r"(?s)records\.jsonl, line 2 is not a record.*sed -i 2d"):
        texts_of(tmp_path / "run")
    with pytest.raises(DamagedRun, match="line 2"):
        RunFolder.resume(tmp_path / "run")
    assert records.read_bytes() == b"".join(lines), "a damaged file is left as it is"


def test_two_processes_cannot_append_to_one_run(tmp_path: Path) -> None:
    make_run(tmp_path / "run")
    program = f"from llmdsl.store.run import RunFolder; RunFolder.resume({str(tmp_path / 'run')!r})"
    with RunFolder.resume(tmp_path / "run"):
        other = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
        assert "RunLocked" in other.stderr and "llmdsl report" in other.stderr
        assert len(texts_of(tmp_path / "run")) == len(TEXTS), "a locked run can be read"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def test_a_killed_process_leaves_no_lock(tmp_path: Path) -> None:
    make_run(tmp_path / "run")
    program = (
        "import time; from llmdsl.store.run import RunFolder\n"
        f"run = RunFolder.resume({str(tmp_path / 'run')!r}); print('locked', flush=True); time.sleep(60)"
    )
    other = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert other.stdout and other.stdout.readline() == "locked\n"
    with pytest.raises(RunLocked):
        RunFolder.resume(tmp_path / "run")
    other.send_signal(signal.SIGKILL)
    other.wait()
    other.stdout.close()
    RunFolder.resume(tmp_path / "run").close()


def test_a_full_disk_tears_no_line_in_the_middle(tmp_path: Path) -> None:
    records = make_run(tmp_path / "run")
    size = records.stat().st_size
    program = f"""
import resource, signal
from llmdsl.store.run import RunFolder
from tests.store.made import completion
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with RunFolder.resume({str(tmp_path / "run")!r}) as run:
    resource.setrlimit(resource.RLIMIT_FSIZE, ({size + 700}, {resource.RLIM_INFINITY}))
    try:
        run.append(completion(8, text="long" * 1000))
    except OSError:
        run.append(completion(9, text="short"))
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parents[2])
    assert texts_of(tmp_path / "run") == [*TEXTS, "short"]


def test_a_run_is_not_written_over(tmp_path: Path) -> None:
    make_run(tmp_path / "run")
    with pytest.raises(RunExists, match="--resume"):
        RunFolder.create(tmp_path / "run", config(), {})
    assert len(texts_of(tmp_path / "run")) == len(TEXTS)


@pytest.mark.parametrize(
    "content", [None, "", "{}", '{"version": 1, "config": {}, "environment": {}, "created": ""}']
)
def test_no_run_or_a_broken_one(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "run.json").write_text(content)
    with pytest.raises(RunNotFound if content is None else DamagedRun):
        RunFolder.open(tmp_path)


def test_records_of_a_newer_version_are_refused(tmp_path: Path) -> None:
    records = make_run(tmp_path / "run")
    content = json.loads(records.read_text().splitlines()[-1]) | {"version": 2, "unheard_of": True}
    with open(records, "a") as file:
        file.write(json.dumps(content))
    with pytest.raises(NewerRecords, match=r"record version 2.*pip install --upgrade llmdsl"):
        texts_of(tmp_path / "run")
    before = records.read_bytes()
    with pytest.raises(NewerRecords):
        RunFolder.resume(tmp_path / "run")
    assert records.read_bytes() == before, "a newer record without its newline is not taken for a torn one"
    run_json = tmp_path / "run" / "run.json"
    run_json.write_text(json.dumps(json.loads(run_json.read_text()) | {"version": 2}))
    with pytest.raises(NewerRecords):
        RunFolder.open(tmp_path / "run")


def test_changed_config_is_refused_field_by_field(tmp_path: Path) -> None:
    make_run(tmp_path / "run")
    run = RunFolder.open(tmp_path / "run")
    run.check(config())
    changed = config(samples=3, sampling=Sampling(temperature=0.5), task_versions={"softmax": 2})
    with pytest.raises(ConfigChanged) as error:
        run.check(changed)
    assert "samples: the run has 2, now it would be 3" in str(error.value)
    assert "sampling.temperature: the run has null, now it would be 0.5" in str(error.value)
    assert "task_versions.softmax: the run has 1, now it would be 2" in str(error.value)
    assert str(tmp_path / "run") in str(error.value)
    assert len(differences(config(), changed)) == 3


def test_a_record_is_on_disk_when_append_returns(tmp_path: Path) -> None:
    """The process kills itself right after `append`: nothing may sit in a buffer of its own."""
    program = f"""
import os, signal
from llmdsl.store.run import RunFolder
from tests.store.made import completion, config
run = RunFolder.create({str(tmp_path / "run")!r}, config(), {{}})
run.append(completion(text="x" * 100_000))
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=Path(__file__).parents[2], env=os.environ)
    assert done.returncode == -signal.SIGKILL
    assert texts_of(tmp_path / "run") == ["x" * 100_000]


def test_infinite_numbers_come_back(tmp_path: Path) -> None:
    timing = Timing(candidate_us=math.inf, candidate_interval_us=(0.0, math.inf))
    cases = (CaseResult(case="a", status="failed", error=math.inf, timing=timing),)
    verdict = Verdict(
        outcome=Outcome.wrong_result, task="softmax", task_version=1, dsl="triton", tier="gpu", cases=cases
    )
    record = VerdictRecord(time="", key=completion().key, source="x", verdict=verdict)
    with RunFolder.create(tmp_path / "run", config(), {}) as run:
        run.append(record)
    assert list(RunFolder.open(tmp_path / "run").records()) == [record]


def test_storable_replaces_what_utf8_cannot_hold() -> None:
    record = completion(text="a\ud800b\U0001f9ee")
    assert storable(record).completion.text == "a\ufffdb\U0001f9ee"
    assert storable(completion()) == completion()
