"""Warm parents and the candidates forked from them, seen from the judge: start, talk, time out, kill, clean up."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import llmdsl.runner
from llmdsl import resources
from llmdsl.errors import InfraError, MissingDependency, NoSandbox
from llmdsl.runner import wire
from llmdsl.runner.confine import Limits

_RUNNER = Path(llmdsl.runner.__file__).parent
_OUTPUT = 64_000  # bytes of a candidate's own output that are kept, half from the start, half from the end


@dataclass(frozen=True)
class Environment:
    """Which Python, backend and tier a warm parent serves."""

    backend: str
    tier: str
    packages: tuple[str, ...]
    install: str
    python: str = sys.executable


class Zygote:
    """One warm parent. Thread-safe; a dead one is noticed by `alive` and replaced by the pool."""

    def __init__(self, environment: Environment, sandbox: bool):
        self.sandbox = sandbox
        self._scratch = tempfile.mkdtemp(prefix="llmdsl-")
        os.chmod(self._scratch, 0o755)
        mine, theirs = socket.socketpair()
        self._control = mine
        self._process = subprocess.Popen(
            [environment.python, "-P", str(_RUNNER), str(theirs.fileno())],
            pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, env=_environment(),
        )  # fmt: skip
        theirs.close()
        self._lock = threading.Lock()
        self._condition = threading.Condition()
        self._forked: dict[int, int] = {}
        self._gone: dict[int, int] = {}
        self._next = 0
        try:
            wire.send(mine, {"kind": "hello", "wire": wire.WIRE_VERSION, "backend": environment.backend,
                             "tier": environment.tier, "packages": list(environment.packages)})  # fmt: skip
            hello, _ = wire.receive(mine, deadline=time.monotonic() + 300)
        except BaseException as error:
            self._process.kill()  # an interrupt too must not wait for its imports
            self.close()
            if isinstance(error, (wire.Closed, TimeoutError)):
                text = f"the runner for {environment.backend} did not start; try `llmdsl doctor`."
                raise InfraError(text) from error
            raise
        if hello["kind"] != "warm":
            self.close()
            if hello["missing"]:
                raise MissingDependency(f"{hello['error']}. Install it: {environment.install}")
            raise InfraError(f"the runner for {environment.backend} did not start: {hello['error']}")
        self.versions: dict[str, str] = hello["versions"]
        self.features: dict[str, bool] = hello["probe"]
        threading.Thread(target=self._listen, daemon=True).start()

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def fork(self, limits: Limits, tier: str, arch: str) -> Candidate:
        """A fresh confined process for one candidate."""
        mine, theirs = socket.socketpair()
        read_end, write_end = os.pipe()
        with self._lock:
            number, self._next = self._next, self._next + 1
            scratch = os.path.join(self._scratch, str(number))
            os.makedirs(scratch, mode=0o755)
            if not self.sandbox:
                os.chmod(scratch, 0o777)
            plan = {"scratch_root": scratch, "visible": _visible(), "hidden": _hidden(), "gpu": tier == "gpu"}
            message = {"kind": "fork", "id": number, "plan": plan, "limits": asdict(limits), "sandbox": self.sandbox,
                       "tier": tier, "arch": arch}  # fmt: skip
            try:
                wire.send(self._control, message, (theirs.fileno(), write_end))
            except wire.Closed as error:
                raise InfraError(
                    "the warm runner died; it is started again on the next candidate."
                ) from error
            finally:
                theirs.close()
                os.close(write_end)
        pid = self._await(self._forked, number, 30)
        return Candidate(self, number, pid, mine, read_end, scratch)

    def wait_gone(self, number: int, seconds: float) -> int | None:
        """Exit status of a candidate's tree: >= 0 its code, 128 + signal, negative where the warden was killed."""
        try:
            return self._await(self._gone, number, seconds)
        except InfraError:
            return None

    def close(self) -> None:
        # Closing alone ends nothing while `_listen` waits on the socket: the runner would see no end of it.
        with suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)
        self._control.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _await(self, table: dict[int, int], number: int, seconds: float) -> int:
        with self._condition:
            if (
                not self._condition.wait_for(lambda: number in table or not self.alive, seconds)
                or number not in table
            ):
                raise InfraError(
                    "the warm runner does not answer; it is started again on the next candidate."
                )
            return table.pop(number)

    def _listen(self) -> None:
        while True:
            try:
                message, _ = wire.receive(self._control)
            except (wire.Closed, wire.WireError, OSError):
                with self._condition:
                    self._condition.notify_all()
                return
            with self._condition:
                table = self._forked if message["kind"] == "forked" else self._gone
                table[message["id"]] = message.get("pid", message.get("status", 0))
                self._condition.notify_all()


class Candidate:
    """One candidate's process tree. Use as a context manager: leaving kills whatever is left of it."""

    def __init__(
        self, zygote: Zygote, number: int, pid: int, control: socket.socket, output: int, scratch: str
    ):
        self._zygote, self._number, self._control, self._scratch = zygote, number, control, scratch
        try:
            self._pidfd: int | None = os.pidfd_open(pid)
        except ProcessLookupError:
            self._pidfd = None
        self._status: int | None = None
        self._ended = False
        self.output = _Output(output)

    def ask(self, message: dict[str, Any], seconds: float, fds: tuple[int, ...] = ()) -> dict[str, Any]:
        """Sends one message and returns the answer. Raises TimeoutError, wire.Closed, wire.WireError."""
        wire.send(self._control, message, fds)
        return self.receive(seconds)

    def receive(self, seconds: float) -> dict[str, Any]:
        answer, _ = wire.receive(self._control, deadline=time.monotonic() + seconds)
        return answer

    def kill(self) -> None:
        """Kills the whole tree and waits until it is gone."""
        if self._pidfd is not None and not self._ended:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        self.exit_status(30)

    def exit_status(self, seconds: float = 5) -> int | None:
        """How the tree ended: >= 0 an exit code, 128 + a signal, negative where it was killed as a whole, None if it runs."""
        if not self._ended:
            self._status = self._zygote.wait_gone(self._number, seconds)
            self._ended = self._status is not None
        return self._status

    def __enter__(self) -> Candidate:
        return self

    def __exit__(self, *_: object) -> None:
        self._control.close()
        self.kill()
        if self._pidfd is not None:
            os.close(self._pidfd)
        self.output.close()
        shutil.rmtree(self._scratch, ignore_errors=True)


class _Output:
    """Drains a candidate's stdout and stderr so that it never blocks; keeps the head and the tail."""

    def __init__(self, fd: int):
        self._fd, self._head, self._tail = fd, b"", b""
        self._thread = threading.Thread(target=self._drain, daemon=True)
        self._thread.start()

    def _drain(self) -> None:
        while chunk := os.read(self._fd, 65536):
            room = _OUTPUT // 2 - len(self._head)
            self._head += chunk[:room] if room > 0 else b""
            self._tail = (self._tail + chunk[max(0, room):])[-_OUTPUT // 2 :]  # fmt: skip
        os.close(self._fd)

    def text(self) -> str:
        """What was printed, undecodable bytes replaced."""
        self._thread.join(2)
        return (self._head + self._tail).decode(errors="replace")

    def close(self) -> None:
        self._thread.join(5)


@dataclass
class Pool:
    """Warm parents by environment, made on first use and again after a death."""

    sandbox: bool = True
    _zygotes: dict[Environment, Zygote] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def zygote(self, environment: Environment) -> Zygote:
        with self._lock:
            zygote = self._zygotes.get(environment)
            if zygote is None or not zygote.alive:
                if zygote is not None:
                    zygote.close()
                zygote = self._zygotes[environment] = Zygote(environment, self.sandbox)
                if self.sandbox and not _enough(zygote.features):
                    missing = ", ".join(name for name, there in zygote.features.items() if not there)
                    raise NoSandbox(
                        f"this machine cannot confine candidates (missing: {missing}). `llmdsl doctor` shows what is "
                        "there; `--unsafe-no-sandbox` runs them unconfined, on a machine you can lose."
                    )
            return zygote

    def close(self) -> None:
        with self._lock:
            for zygote in self._zygotes.values():
                zygote.close()
            self._zygotes.clear()


def _enough(features: dict[str, bool]) -> bool:
    files = features["mount_namespace"] or features["landlock"]
    return features["net_namespace"] and features["pid_namespace"] and files


def _environment() -> dict[str, str]:
    """What a runner may know of the judge's environment: where compilers and libraries are; no keys, no tokens."""
    keep = ("PATH", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "CC", "CXX", "CUDAHOSTCXX", "PYTHONPATH", "LANG", "LC_ALL", "THUNDERKITTENS_ROOT",
            "CUDA_VISIBLE_DEVICES", "XLA_PYTHON_CLIENT_PREALLOCATE", "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")  # fmt: skip
    kept = {name: os.environ[name] for name in keep if name in os.environ}
    # The host's thread counts say nothing about a candidate's share of the machine.
    return {**kept, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
            "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"}  # fmt: skip


def _visible() -> list[str]:
    return [
        os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH", "THUNDERKITTENS_ROOT") if name in os.environ
    ]


def _hidden() -> list[str]:
    """What must not be seen from inside: this package, and the tasks, prompts and reference kernels."""
    package = Path(resources.__file__).parent
    data = (resources.tasks_dir(), resources.prompts_dir(), resources.reference_kernels_dir())
    return [str(package), *(str(path) for path in data)]
