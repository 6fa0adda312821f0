"""Timing of one bench case: the runner's claims, held between the roofline's floor and the judge's own clock.

Rounds of candidate and baseline alternate as A B B A. Before each of the candidate's rounds the judge reveals fresh
values, and the output of the round's last call must be right. A pair of rounds in which the chip throttles is void.
"""

from __future__ import annotations

import math
import random
import statistics
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch

from llmdsl.errors import InfraError
from llmdsl.judge.answers import Failed, Skipped, Timed
from llmdsl.judge.correctness import expect
from llmdsl.judge.hardware import floor_us, l2_bytes, throttled
from llmdsl.judge.verdict import Diagnostic, Outcome, Timing
from llmdsl.runner.stopwatch import Stopwatch
from llmdsl.tasks.meaning import Args
from llmdsl.tasks.task import Case

if TYPE_CHECKING:
    from llmdsl.judge.regions import CaseRegion
    from llmdsl.judge.trial import Trial

_PAIRS = 8  # of rounds, a multiple of 4: A B B A, short and long
# Calls of a short round, and how many more a long one has: the difference is free of what a round costs once. Two
# processes on one GPU make that cost vary by some 0.4 ms, so the difference must hold many calls.
_SHORT, _MORE = 8, 128
_LONG_ROUND_US = 60_000  # but not much longer than this, for slow candidates
_END_TO_END = 7
_VOIDED = 16  # pairs of rounds that may be lost to a throttling chip before it is given up
# How far the judge's clock resolves one call. Below it a claim can be flattered by this much and no more.
_SLACK_US, _SLACK = 4.0, 0.15


@dataclass(frozen=True)
class Round:
    """Some calls in a row: what each took on the device by the runner's claim, what all took by the judge's clock."""

    device_us: list[float]
    wall_us: float


class Bench:
    """One bench case of a trial. Nothing else may use the GPU meanwhile."""

    def __init__(self, trial: Trial, case: Case):
        self.trial, self.case = trial, case
        self.meaning = trial.task.meaning()
        self.flush = torch.empty(4 * l2_bytes(), dtype=torch.uint8, device="cuda")
        self.candidate: list[Round] = []
        self.eager: list[Round] = []
        self.voided: list[str] = []  # why a pair of rounds was thrown away
        self.end_to_end: list[float] = []
        self.method = ""
        self.kernels: dict[str, float] = {}

    def run(self) -> Timing:
        """Times the candidate and the eager baseline. Raises Stop where a claim or an output does not hold."""
        rng = random.Random(self.trial.seed ^ 0x5EED)
        args = self.meaning.make_inputs(self.case, rng.getrandbits(62), "cuda")
        region = self.trial.region(args, expect(self.meaning, self.case, args))
        baseline = Stopwatch(lambda: self.meaning.eager(args), self.flush.numel())
        try:
            self.trial.call(self.case, region, ghost=False)  # maps the region in the runner
            warm = self._ask(region, calls=2, end_to_end=0)  # compiles, captures, warms up
            self.trial.provenance(warm, self.case)
            long = _SHORT + min(_MORE, max(8, int(_LONG_ROUND_US / min(warm.device_us))))
            while len(self.candidate) < _PAIRS:
                number = len(self.candidate)
                calls = long if number // 2 % 2 else _SHORT
                candidate = partial(self._round, args, region, rng.getrandbits(62), calls)
                eager = partial(self._baseline_round, baseline, calls)
                first, second = (candidate, eager) if number % 2 == 0 else (eager, candidate)
                done = {first: first(), second: second()}
                if reasons := throttled():
                    self._void(reasons)
                    continue
                self.candidate.append(done[candidate])
                self.eager.append(done[eager])
            self.end_to_end = self._ask(region, calls=1, end_to_end=_END_TO_END).end_to_end_us
        finally:
            region.close()
        return self._timing()

    def _void(self, reasons: list[str]) -> None:
        """A pair of rounds is lost. Raises InfraError where the chip does not recover."""
        self.voided.append(", ".join(reasons))
        if len(self.voided) > _VOIDED:
            raise InfraError(
                f"the GPU throttles ({self.voided[-1]}): no time taken on it counts. Cool it down."
            )
        time.sleep(min(2.0, 0.1 * len(self.voided)))

    def _baseline_round(self, baseline: Stopwatch, calls: int) -> Round:
        torch.cuda.synchronize()
        started = time.perf_counter()
        device_us = baseline.device_us(calls)
        return Round(device_us, (time.perf_counter() - started) * 1e6)

    def _round(self, first: Args, region: CaseRegion, seed: int, calls: int) -> Round:
        """Fresh values, `calls` timed calls, and the last one's output checked."""
        fresh = self.meaning.make_inputs(self.case, seed, "cuda")
        # Scalars stay: they are captured with the call.
        args = {
            name: value if isinstance(value, torch.Tensor) else first[name] for name, value in fresh.items()
        }
        expected = expect(self.meaning, self.case, args)
        region.reveal(args)
        torch.cuda.synchronize()
        started = time.perf_counter()
        answer = self._ask(region, calls, 0)
        wall_us = (time.perf_counter() - started) * 1e6
        self.method = answer.method
        self.kernels = {kernel.name: kernel.share for kernel in answer.kernels if kernel.share is not None}
        reason, _ = self.trial.compare(expected, answer, region)
        if reason:
            self._stop(
                Outcome.wrong_result,
                "timed_output",
                f"right when it is not timed, wrong when it is: {reason}",
            )
        if touched := region.touched():
            self._stop(Outcome.mutated_inputs, "mutated_inputs", f"while it was timed: {touched}")
        return Round(answer.device_us, wall_us)

    def _ask(self, region: CaseRegion, calls: int, end_to_end: int) -> Timed:
        message = {"kind": "time", "args": region.specs, "nbytes": region.nbytes, "output_at": region.output_at,
                   "outputs": region.outputs, "flush_bytes": self.flush.numel(), "calls": calls, "end_to_end": end_to_end}  # fmt: skip
        answer = self.trial.ask(message, case=self.case.id)
        if isinstance(answer, Skipped):
            self._stop(
                Outcome.launch_error,
                "launch",
                f"judged when it is not timed, but not when it is: {answer.reason}",
            )
        if isinstance(answer, Failed):
            raise self.trial.stop(answer, self.case.id)
        if len(answer.device_us) != calls or len(answer.end_to_end_us) != end_to_end:
            self._stop(Outcome.tampered, "protocol", "another number of times came back than was asked for")
        return answer

    def _timing(self) -> Timing:
        from llmdsl.judge.trial import Stop

        claims = [us for one in self.candidate for us in one.device_us]
        eager = [us for one in self.eager for us in one.device_us]
        claim = statistics.median(claims)
        # Between two calls lie a flush and the launch of a graph. What they cost shows on the baseline, which the
        # judge runs the same way itself: its wall time a call, less its device time.
        between = wall_per_call(self.eager) - statistics.median(eager)
        witness = wall_per_call(self.candidate) - between
        floor = floor_us(self.trial.task, self.case, torch.cuda.get_device_name(0), l2_bytes())
        text = ""
        if floor is not None and claim < floor:
            text = (
                f"claims {claim:.2f} us a call, but no kernel can be faster than {floor:.2f} us on this chip"
            )
        elif claim < witness * (1 - _SLACK) - _SLACK_US:
            text = f"claims {claim:.2f} us a call, but the judge's clock saw at least {witness:.2f} us"
        if text:
            raise Stop(Outcome.tampered, Diagnostic(kind="clock", message=text, case=self.case.id))
        return Timing(
            candidate_us=claim, candidate_interval_us=median_interval(claims),
            baselines_us={"eager": statistics.median(eager)}, end_to_end_us=statistics.median(self.end_to_end),
            witness_us=witness, floor_us=floor, calls=len(claims), method=self.method, kernels=self.kernels,
            voided=tuple(self.voided),
        )  # fmt: skip

    def _stop(self, outcome: Outcome, kind: str, message: str) -> None:
        from llmdsl.judge.trial import Stop

        raise Stop(outcome, Diagnostic(kind=kind, message=message, case=self.case.id))


def wall_per_call(rounds: list[Round]) -> float:
    """Wall time of one call, microseconds: the difference of long and short rounds, free of a round's own cost."""
    shortest: dict[int, float] = {}
    for one in rounds:
        calls = len(one.device_us)
        shortest[calls] = min(one.wall_us, shortest.get(calls, one.wall_us))
    short, long = sorted(shortest)
    return (shortest[long] - shortest[short]) / (long - short)


def median_interval(values: list[float]) -> tuple[float, float]:
    """Distribution-free 95 % interval of the median from order statistics (Conover 1999, section 3.2)."""
    ordered = sorted(values)
    n = len(ordered)
    reach = 0.98 * math.sqrt(n)  # 1.96 * sqrt(n) / 2
    low = max(0, math.floor(n / 2 - reach))
    high = min(n - 1, math.ceil(n / 2 + reach))
    return ordered[low], ordered[high]
