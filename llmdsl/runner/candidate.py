"""The candidate's process: loads one source file, runs its cases, reports what happened. Decides nothing."""

from __future__ import annotations

import contextlib
import linecache
import os
import socket
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch

from . import wire
from .dsls import LaunchLog, Unjudgeable
from .graph import NotRecorded, Recording, profiled
from .memory import CANARY, DeviceRegion, HostRegion, shapes_only
from .stopwatch import Stopwatch
from .watch import TorchWatch, pretend_cuda

_MESSAGE = 20_000  # characters of an error message that travel; the judge cuts again for the model


class Session:
    """One candidate in one tier on one arch."""

    def __init__(self, backend: Any, tier: str, arch: str, work: str):
        torch.set_num_threads(1)
        self.backend, self.tier, self.work = backend, tier, Path(work)
        self.watch, self.log = TorchWatch(), LaunchLog()
        if self.on_cpu:
            pretend_cuda(arch)
        else:
            torch.cuda.init()
            torch.zeros(1, device="cuda")  # the context's cost is not the candidate's
        backend.start(tier, arch, self.log, self.watch)
        self.path = self.work / "candidate"
        self.entry: Any = None
        self._region: Any = None  # of the case in hand: one at a time is mapped
        self._kernels: list[dict[str, Any]] = []  # of the last call on a GPU
        self._stopwatch: Stopwatch | None = None

    def serve(self, control: socket.socket) -> None:
        """Answers the judge's messages until it closes the socket."""
        while True:
            message, fds = wire.receive(control, max_fds=1)
            try:
                match message["kind"]:
                    case "load":
                        answer = self.load(message)
                    case "case":
                        answer = self.case(message, fds[0] if fds else None)
                    case _:
                        answer = self.time(message)
            finally:
                for fd in fds:
                    os.close(fd)
            wire.send(control, answer)

    @property
    def on_cpu(self) -> bool:
        return self.tier != "gpu"

    def load(self, message: dict[str, Any]) -> dict[str, Any]:
        """Imports the candidate: {"kind": "loaded"} or {"kind": "failed"}."""
        self.path = self.work / f"candidate{message['suffix']}"
        self.path.write_text(message["source"])
        try:
            if self.path.suffix == ".py":
                compile(self.path.read_text(), str(self.path), "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            return self._failed("syntax", error)
        try:
            with self._running():
                self.entry = self.backend.load(str(self.path), message["entry"], message["signature"])
        except BaseException as error:
            return self._failed(self.backend.classify_load(error), error)
        return {"kind": "loaded"}

    def case(self, message: dict[str, Any], fd: int | None) -> dict[str, Any]:
        """Calls the entry once: {"kind": "done"}, {"kind": "skipped"} or {"kind": "failed"}."""
        self._stopwatch = None
        if fd is not None:
            if self._region is not None:
                self._region.close()
            self._region = (HostRegion if self.on_cpu else DeviceRegion)(fd, message["nbytes"])
        made = self._arguments(message)
        call = partial(self.backend.call, self.entry, made, message["outputs"])
        run = self._call if self.on_cpu else self._recorded_call
        return self._reported(lambda: self._done(run(call, message.get("ghost", False)), message))

    def time(self, message: dict[str, Any]) -> dict[str, Any]:
        """Times calls on the region of the last case: {"kind": "timed"} with its claims, or {"kind": "failed"}."""

        def measure() -> dict[str, Any]:
            if self._stopwatch is None:
                made = self._arguments(message)
                self.log.reset()
                call = partial(self.backend.call, self.entry, made, message["outputs"])
                with self.watch.watching(facade=False, canary=False):
                    self._stopwatch = Stopwatch(call, message["flush_bytes"])
                self._kernels = self._listed(self._stopwatch.kernels, self._stopwatch.shares)
            watch = self._stopwatch
            device = watch.device_us(message["calls"])
            end_to_end = watch.end_to_end_us(message.get("end_to_end", 0))
            done = self._done(watch.outputs, message)
            return {**done, "kind": "timed", "device_us": device, "end_to_end_us": end_to_end,
                    "method": watch.method, "why": watch.why}  # fmt: skip

        return self._reported(measure)

    def _call(self, call: Callable[[], Any], ghost: bool) -> Any:
        """In a CPU tier: one call, in which the language's interpreter leaves out writes where it is a ghost."""
        self.log.reset(ghost)
        with self._running():
            return call()

    def _recorded_call(self, call: Callable[[], Any], ghost: bool) -> Any:
        """On a GPU: the call's outputs from the replay of a recording that shows which kernels ran."""
        self.log.reset()
        with self._running():
            outputs = call()  # compiles; shows what torch does
        torch.cuda.synchronize()
        ops = dict(self.watch.ops)
        try:
            with self.watch.watching(facade=False, canary=False):
                recording = Recording(call)
        except NotRecorded:
            if self.backend.must_record:
                raise
            self.log.reset(ghost)
            with self._running():
                outputs, names = profiled(call)
            self._kernels = self._listed(names, {})
        else:
            outputs = recording.outputs
            self._kernels = self._listed(recording.kernels, {})
            own = {kernel["name"] for kernel in self._kernels if kernel["own"]}
            self._unwritten(outputs)
            with recording.without(own if ghost else set()):
                recording.replay()
                torch.cuda.synchronize()
        self.watch.ops = {
            name: max(ops.get(name, 0), self.watch.ops.get(name, 0)) for name in {*ops, *self.watch.ops}
        }
        return outputs

    def _listed(self, names: list[str], shares: dict[str, float]) -> list[dict[str, Any]]:
        own = self.backend.own_kernels(self.log)
        return [{"name": name, "own": name in own, "share": shares.get(name)} for name in names[:200]]

    def _unwritten(self, outputs: Any) -> None:
        """Canary into the outputs of a recorded call, so that an answer which no kernel writes shows."""
        for output in outputs if isinstance(outputs, (tuple, list)) else (outputs,):
            if type(output) is torch.Tensor and output.is_cuda and not self._region.holds(output):
                output.untyped_storage().fill_(CANARY)

    def _reported(self, action: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What the action answers, or what it raised."""
        try:
            return action()
        except BaseException as error:
            if reason := _unjudgeable(error):
                return {"kind": "skipped", "reason": reason}
            return self._failed(self.backend.classify(error), error)

    def _done(self, outputs: Any, message: dict[str, Any]) -> dict[str, Any]:
        region = self._region if message["nbytes"] else None
        done: dict[str, Any] = {"kind": "done", "launches": self.log.launches, "ops": dict(self.watch.ops),
                                "kernels": self._kernels}  # fmt: skip
        outputs = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
        described, offset = [], message["output_at"]
        for output in outputs[:16]:
            # A subclass may compute when it is looked at: only plain tensors are results.
            if type(output) not in (torch.Tensor, torch.nn.Parameter):
                described.append({"type": type(output).__name__[:80]})
                continue
            size = output.numel() * output.element_size()
            fits = region is not None and offset + size <= message["nbytes"]
            described.append({"dtype": str(output.dtype).removeprefix("torch."), "shape": list(output.shape),
                              "offset": offset if fits else None})  # fmt: skip
            if region is not None and fits:
                region.write(offset, output.detach())
                offset += -(-size // 64) * 64
        if not self.on_cpu:
            torch.cuda.synchronize()
        return {**done, "outputs": described}

    def _arguments(self, message: dict[str, Any]) -> list[Any]:
        tensor = self._region.tensor if message["nbytes"] else shapes_only
        return [spec["value"] if "value" in spec else tensor(spec) for spec in message["args"]]

    @contextlib.contextmanager
    def _running(self) -> Iterator[None]:
        with self.watch.watching(facade=self.on_cpu, canary=self.tier != "compile"):
            yield

    def _failed(self, stage: str, error: BaseException) -> dict[str, Any]:
        chain = _chain(error)
        root = chain[-1]
        message = getattr(root, "llmdsl_message", None) or str(root) or repr(root)
        trace = "".join(traceback.format_exception(error, limit=-8))
        return {"kind": "failed", "stage": stage, "error": type(root).__name__, "message": _cut(message),
                "line": self._line(chain), "trace": _cut(trace)}  # fmt: skip

    def _line(self, chain: list[BaseException]) -> int | None:
        """Line of the candidate that the innermost error points to."""
        for error in reversed(chain):
            if isinstance(error, SyntaxError) and error.filename == str(self.path):
                return error.lineno
            if (line := self.backend.line_of(error, self.path)) is not None:
                return line
            lines = [
                f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == str(self.path)
            ]
            if lines:
                return lines[-1]
        return None


def _chain(error: BaseException) -> list[BaseException]:
    """The error and its causes, innermost last."""
    chain = [error]
    while (cause := chain[-1].__cause__) is not None and cause not in chain:
        chain.append(cause)
    return chain


def _unjudgeable(error: BaseException) -> str | None:
    return next((str(e) for e in _chain(error) if isinstance(e, Unjudgeable)), None)


def _cut(text: str) -> str:
    if len(text) <= _MESSAGE:
        return text
    return text[: _MESSAGE // 2] + "\n[…]\n" + text[-_MESSAGE // 2 :]


def import_file(path: str, entry: str) -> Any:
    """Imports a Python candidate from its file and returns its entry. Raises what the import raises, or ImportError."""
    import importlib.util
    import sys

    linecache.clearcache()
    spec = importlib.util.spec_from_file_location("candidate", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["candidate"] = module
    spec.loader.exec_module(module)
    found = getattr(module, entry, None)
    if found is None or not callable(found):
        raise ImportError(f"the file defines no function named {entry!r}")
    return found
