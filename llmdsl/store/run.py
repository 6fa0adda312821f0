"""A run folder: `run.json` (what was asked, where) and `records.jsonl` (what came back, one record a line).

What is on disk after `kill -9` at any moment: a whole `run.json` or none, and whole records followed by at most one
torn line. A torn line has no newline at its end, because a record and its newline are written together; resuming
cuts it off. The lock dies with its process, so a killed run can be resumed at once.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from pydantic import ValidationError

from llmdsl.errors import ConfigChanged, DamagedRun, NewerRecords, RunExists, RunLocked, RunNotFound
from llmdsl.store.records import (
    RECORD,
    RECORD_VERSION,
    CompletionRecord,
    FailureRecord,
    RunConfig,
    VerdictRecord,
    now,
)

StoredRecord = CompletionRecord | FailureRecord | VerdictRecord


class RunFolder:
    """An open run. `open` reads; `create` and `resume` also hold the lock and may `append` until `close`."""

    def __init__(self, path: Path, config: RunConfig, environment: dict[str, Any], created: str):
        self.path, self.config, self.environment, self.created = path, config, environment, created
        self._fd: int | None = None

    @classmethod
    def create(cls, path: Path | str, config: RunConfig, environment: dict[str, Any]) -> Self:
        """A new run, locked for appending. Raises RunExists."""
        path = Path(path)
        path.mkdir(parents=True, exist_ok=True)
        run = cls(path, config, environment, now())
        run._lock()
        if (path / "run.json").exists():
            run.close()
            raise RunExists(
                f"{path} holds a run already. Continue it with `llmdsl eval --resume {path}`, "
                "or name another folder with --out."
            )
        content = {"version": RECORD_VERSION, "created": run.created, "config": config.model_dump(mode="json"),
                   "environment": environment}  # fmt: skip
        _write_durably(path / "run.json", json.dumps(content, indent=2) + "\n")
        return run

    @classmethod
    def open(cls, path: Path | str) -> Self:
        """A run to read; it may be running elsewhere. Raises RunNotFound, DamagedRun, NewerRecords."""
        path = Path(path)
        try:
            content = json.loads((path / "run.json").read_text())
            _refuse_newer(content, path / "run.json")
            config = RunConfig.model_validate(content["config"])
            return cls(path, config, content["environment"], content["created"])
        except (FileNotFoundError, NotADirectoryError):
            raise RunNotFound(
                f"no run at {path}: it holds no run.json. `llmdsl eval` prints the folder it writes to."
            ) from None
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedRun(
                f"{path / 'run.json'} cannot be read: {error}\nStart anew: `llmdsl eval --out FOLDER`."
            ) from error

    @classmethod
    def resume(cls, path: Path | str) -> Self:
        """A run to continue, locked for appending; a torn last line is cut off. Raises RunLocked and as `open`."""
        run = cls.open(path)
        run._lock()
        try:
            run._mend()
        except BaseException:
            run.close()
            raise
        return run

    def check(self, asked: RunConfig) -> None:
        """Raises ConfigChanged, with every field that differs, unless `asked` is what this run was started with."""
        if changes := differences(self.config, asked):
            raise ConfigChanged(
                f"{self.path} was started with other settings:\n"
                + "\n".join(f"  {change}" for change in changes)
                + f"\nResume it with its own settings: `llmdsl eval --resume {self.path}`; "
                "or start a new run: leave --resume out."
            )

    def append(self, record: StoredRecord) -> None:
        """Writes one record; it is on disk when this returns."""
        if self._fd is None:
            raise RuntimeError(f"{self.path} is open for reading only")
        # Not model_dump_json: it fails on lone surrogates and turns infinities into nulls, and both occur in the wild.
        data = json.dumps(record.model_dump(), separators=(",", ":")).encode() + b"\n"
        size = os.fstat(self._fd).st_size
        try:
            while data:
                data = data[os.write(self._fd, data) :]
            os.fsync(self._fd)
        except OSError:  # a full disk: what was written of the line must not be met by the next one
            os.ftruncate(self._fd, size)
            raise

    def records(self) -> Iterator[StoredRecord]:
        """All whole records in the order they were written. Raises DamagedRun, NewerRecords."""
        try:
            with open(self._records_path, "rb") as file:
                yield from (record for record, _ in _read(file.read(), self._records_path))
        except FileNotFoundError:
            return

    def completions(self) -> Iterator[CompletionRecord]:
        """The answers among them, the first of each attempt first."""
        return (record for record in self.records() if isinstance(record, CompletionRecord))

    def close(self) -> None:
        """Gives the lock back."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _records_path(self) -> Path:
        return self.path / "records.jsonl"

    def _lock(self) -> None:
        fd = os.open(self._records_path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            raise RunLocked(
                f"{self.path} is being written by another `llmdsl eval`. Wait for it or stop it; "
                f"`llmdsl report {self.path}` shows what it has so far."
            ) from None
        self._fd = fd
        _sync_folder(self.path)

    def _mend(self) -> None:
        assert self._fd is not None
        data = self._records_path.read_bytes()
        end = max((end for _, end in _read(data, self._records_path)), default=0)
        if end == len(data) + 1:  # a whole record whose newline alone was not written
            os.write(self._fd, b"\n")
        elif end < len(data):
            os.ftruncate(self._fd, end)
        os.fsync(self._fd)


def differences(old: RunConfig, new: RunConfig) -> list[str]:
    """One line for every field in which two configurations differ, nested ones by their dotted name."""
    before, after = _flat(old.model_dump(mode="json")), _flat(new.model_dump(mode="json"))
    return [
        f"{name}: the run has {json.dumps(before.get(name))}, now it would be {json.dumps(after.get(name))}"
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    ]


def _flat(value: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, inner in value.items():
        flat |= _flat(inner, f"{prefix}{name}.") if isinstance(inner, dict) else {prefix + name: inner}
    return flat


def _read(data: bytes, path: Path) -> Iterator[tuple[StoredRecord, int]]:
    """Whole records, each with the offset behind its newline. A torn last line yields nothing."""
    start, number = 0, 0
    while start < len(data):
        number += 1
        newline = data.find(b"\n", start)
        line = data[start:] if newline < 0 else data[start:newline]
        start += len(line) + 1
        try:
            content = json.loads(line)
            _refuse_newer(content, path)
            yield RECORD.validate_python(content), start
        except (ValueError, ValidationError) as error:
            if newline < 0:
                return
            raise DamagedRun(
                f"{path}, line {number} is not a record: {str(error)[:300]}\nA killed run tears the last line only, "
                f"so something else changed this file. Restore it, or delete the line: `sed -i {number}d {path}`."
            ) from error


def _refuse_newer(content: Any, path: Path) -> None:
    version = content.get("version") if isinstance(content, dict) else None
    if isinstance(version, int) and version > RECORD_VERSION:
        raise NewerRecords(
            f"{path} was written by a newer llmdsl (record version {version}; this one reads up to "
            f"{RECORD_VERSION}). Upgrade: `pip install --upgrade llmdsl`."
        )


def _write_durably(path: Path, text: str) -> None:
    """The whole file or none of it, also after a power cut."""
    temporary = path.with_suffix(".tmp")
    with open(temporary, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    _sync_folder(path.parent)


def _sync_folder(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
