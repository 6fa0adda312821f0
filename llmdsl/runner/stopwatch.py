"""Times a candidate's call on the GPU. What it returns is a claim: the judge holds it against its own clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from .graph import NotRecorded, Recording, profiled


class Stopwatch:
    """One call with fixed arguments, captured into a CUDA graph where the candidate can be captured.

    `method` is "cuda_graph" or, where capture failed, "events" with the reason in `why`. `kernels` names what ran on the
    GPU; `shares` holds each one's share of the time where the call was recorded.
    """

    def __init__(self, call: Callable[[], Any], flush_bytes: int):
        self._call = call
        self._flush = torch.empty(flush_bytes, dtype=torch.uint8, device="cuda")
        self.outputs: Any = None
        self.method, self.why = "cuda_graph", ""
        self.shares: dict[str, float] = {}
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):  # capture needs every lazy compilation and allocation behind it
                call()
        torch.cuda.synchronize()
        try:
            recording = Recording(call)
        except NotRecorded as reason:
            self.method, self.why = "events", str(reason)
            self.outputs, self.kernels = profiled(call)
            self._run = self._eager
        else:
            self.outputs, self.kernels = recording.outputs, recording.kernels
            self._run = recording.replay
            recording.replay()  # the first one uploads the graph
            self.shares = recording.shares()
        torch.cuda.synchronize()

    def _eager(self) -> None:
        self.outputs = self._call()

    def device_us(self, calls: int) -> list[float]:
        """Device time of each of `calls` calls, microseconds, L2 flushed before each."""
        events = [
            (torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(calls)
        ]
        for start, end in events:
            self._flush.zero_()
            start.record()
            self._run()
            end.record()
        torch.cuda.synchronize()
        return [start.elapsed_time(end) * 1e3 for start, end in events]

    def end_to_end_us(self, calls: int) -> list[float]:
        """Wall time of whole uncaptured calls up to synchronisation, microseconds: launch overhead included."""
        times = []
        for _ in range(calls):
            torch.cuda.synchronize()
            started = time.perf_counter()
            self._call()
            torch.cuda.synchronize()
            times.append((time.perf_counter() - started) * 1e6)
        return times
