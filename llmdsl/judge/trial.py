"""One candidate before the judge: load it, call it, compare its outputs, name the outcome."""

from __future__ import annotations

import random
import re
import signal
import time
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from llmdsl.dsls.base import Dsl
from llmdsl.errors import InfraError
from llmdsl.judge import answers
from llmdsl.judge.answers import Done, Failed, OutputFrame, Skipped
from llmdsl.judge.correctness import Expected, compare, expect
from llmdsl.judge.lane import Lane
from llmdsl.judge.pool import Candidate
from llmdsl.judge.provenance import foreign_kernels, foreign_ops, own_kernels
from llmdsl.judge.regions import CaseRegion, DeviceRegion, HostRegion, describe
from llmdsl.judge.verdict import CaseResult, Diagnostic, Outcome
from llmdsl.runner import wire
from llmdsl.tasks.meaning import Args, Meaning
from llmdsl.tasks.signature import signature
from llmdsl.tasks.task import Case, Task

_STAGE_OUTCOME = {"syntax": Outcome.syntax_error, "import": Outcome.import_error, "compile": Outcome.compile_error,
                  "launch": Outcome.launch_error, "crash": Outcome.crash, "memory": Outcome.out_of_memory,
                  "run": Outcome.launch_error}  # fmt: skip
# How MLIR prints an error: loc("name"("…/candidate.py":3:5)): error: …, or …/candidate.py:3:5: error: …
_MLIR_ERROR = re.compile(r"^.*candidate\.py\"?:(\d+):\d+\)*: error: .*$", re.MULTILINE)
_ORDER = {outcome: position for position, outcome in enumerate(Outcome)}


class Stop(Exception):
    """The candidate cannot go on; the outcome is final."""

    def __init__(self, outcome: Outcome, diagnostic: Diagnostic):
        super().__init__(outcome)
        self.outcome, self.diagnostic = outcome, diagnostic


@dataclass
class Trial:
    """What has been found so far. `outcome()` is the first stage of the funnel that failed."""

    task: Task
    dsl: Dsl
    tier: str
    candidate: Candidate
    seconds: float
    seed: int
    lane: Lane = field(default_factory=Lane)  # whose turn it is on the GPU
    faults: list[tuple[Outcome, Diagnostic]] = field(default_factory=list)
    cases: list[CaseResult] = field(default_factory=list)
    kernels: set[str] = field(default_factory=set)
    stage: str = "load"
    sandbox: dict[str, Any] = field(default_factory=dict)
    oom_kills: int = field(default_factory=lambda: _kernel_oom_kills())

    may_skip: bool = False
    times_itself: bool = False

    def run(self, source: str, cases: list[Case]) -> None:
        """Loads the candidate and judges it on `cases`. Raises InfraError for what is not its fault."""
        self._ready()
        self.may_skip = self.tier == "interpret" and any(
            name in source for name in self.dsl.beyond_interpreter
        )
        self.times_itself = self.tier == "gpu" and "autotune" in source
        try:
            self._load(source)
            self.stage = "run"
            if self.tier == "compile":
                self._compile(cases)
            else:
                self._judge_cases(cases)
                if self.tier == "gpu" and not self.faults:
                    self.stage = "time"
                    self._time(cases)
            self.stage = "done"
        except Stop as stop:
            self.faults.append((stop.outcome, stop.diagnostic))

    @property
    def device(self) -> str:
        return "cuda" if self.tier == "gpu" else "cpu"

    def outcome(self) -> Outcome:
        if self.faults:
            return min((outcome for outcome, _ in self.faults), key=_ORDER.__getitem__)
        if self.cases and all(case.status == "skipped" for case in self.cases):
            return Outcome.unsupported
        return Outcome.compiled if self.tier == "compile" else Outcome.correct

    # Talking to the candidate

    def _ready(self) -> None:
        try:
            ready = self.candidate.receive(60)
        except (TimeoutError, wire.Closed, wire.WireError) as error:
            output = self.candidate.output.text()[-2000:]
            raise InfraError(
                f"the runner failed before the candidate was loaded: {error}\n{output}"
            ) from error
        self.sandbox = ready["sandbox"]

    def _load(self, source: str) -> None:
        suffix = self.dsl.suffix
        answer = self.ask({"kind": "load", "source": source, "entry": self.task.entry, "suffix": suffix,
                           "signature": signature(self.task, suffix)})  # fmt: skip
        if isinstance(answer, Failed):
            raise self.stop(answer, None)

    def ask(
        self, message: dict[str, Any], fds: tuple[int, ...] = (), case: str | None = None
    ) -> dict[str, Any]:
        """Asks and returns a well-formed answer; anything else ends the trial with its outcome."""
        try:
            frame = self.candidate.ask(message, self.seconds, fds)
        except TimeoutError:
            self.candidate.kill()
            text = f"no answer within {self.seconds:g} s; everything it had started was killed"
            raise Stop(Outcome.timeout, Diagnostic(kind="timeout", message=text, case=case)) from None
        except wire.WireError as error:
            raise Stop(Outcome.tampered, Diagnostic(kind="protocol", message=str(error), case=case)) from None
        except wire.Closed:
            raise self._died(case) from None
        try:
            answer = answers.parse(message["kind"], frame)
        except answers.Misshapen as error:
            raise Stop(Outcome.tampered, Diagnostic(kind="protocol", message=str(error), case=case)) from None
        if isinstance(answer, Skipped) and not self.may_skip:
            # Skipped cases are held against nobody, so a candidate must not be able to claim them.
            text = (
                f"nothing in the source is beyond this tier, but the case was skipped: {answer.reason[:200]}"
            )
            raise Stop(Outcome.tampered, Diagnostic(kind="protocol", message=text, case=case))
        return answer

    def _died(self, case: str | None) -> Stop:
        status = self.candidate.exit_status()
        if status is None:  # it closed the socket and lives on
            self.candidate.kill()
            status = 0
        output = self.candidate.output.text()[-4000:]
        signal_number = status - 128 if status > 128 else 0
        errors, line = _compiler_errors(output)
        if signal_number == signal.SIGABRT and "LLVM ERROR" in output:
            # LLVM ends the process on code that it cannot compile. A candidate that only claims so gains nothing.
            text = "\n".join([*errors, output[output.index("LLVM ERROR") :][:1000]])
            diagnostic = Diagnostic(kind="compile", message=text, line=line, case=case)
            return Stop(Outcome.compile_error, diagnostic)
        starved = signal_number == 9 and _kernel_oom_kills() > self.oom_kills
        if starved or "std::bad_alloc" in output:
            text = "the kernel killed it for its memory use" if starved else "an allocation failed"
            diagnostic = Diagnostic(kind="memory", message=f"{text}\n{output}".strip(), case=case)
            return Stop(Outcome.out_of_memory, diagnostic)
        if signal_number:
            text = f"the process died of {signal.Signals(signal_number).name}"
        else:
            text = f"the process exited with code {status} without giving a result"
        return Stop(Outcome.crash, Diagnostic(kind="crash", message=f"{text}\n{output}".strip(), case=case))

    def stop(self, answer: Failed, case: str | None) -> Stop:
        outcome = _STAGE_OUTCOME[answer.stage]
        message = answer.message
        if not message.startswith(answer.error):
            message = f"{answer.error}: {message}"
        line = answer.line
        if answer.stage == "compile":
            errors, at = _compiler_errors(self.candidate.output.text())
            message, line = "\n".join([message, *errors]), at or line
        return Stop(outcome, Diagnostic(kind=answer.stage, message=message, line=line, case=case))

    # The tiers

    def _compile(self, cases: Iterable[Case]) -> None:
        meaning = self.task.meaning()
        for case in cases:
            started = time.monotonic()
            args = meaning.make_inputs(case, self.seed, "meta")
            message = {"kind": "case", "name": case.id, "args": describe(args), "nbytes": 0, "output_at": 0,
                       "outputs": []}  # fmt: skip
            answer = self.ask(message, case=case.id)
            if isinstance(answer, Failed):
                raise self.stop(answer, case.id)
            self.provenance(answer, case)
            self.cases.append(CaseResult(case=case.id, status="passed", seconds=time.monotonic() - started))

    def _judge_cases(self, cases: list[Case]) -> None:
        meaning = self.task.meaning()
        rng = random.Random(self.seed)
        for case in cases:
            if reason := self.dsl.skips(self.tier, case.dtype):
                self.cases.append(CaseResult(case=case.id, status="skipped", reason=reason))
                continue
            with self._turn():
                self._judge_case(meaning, case, rng.getrandbits(62))
        judged = [case for case, result in zip(cases, self.cases, strict=True) if result.status == "passed"]
        if judged and not self.faults:
            # The same shapes with other values: an answer kept from the first call shows. The largest case has
            # the most values to differ in (one column of a softmax has none); the second one cannot be foreseen.
            largest = max(judged, key=lambda case: self.task.bytes(case))
            with self._turn():
                for case in (largest, judged[rng.randrange(len(judged))]):
                    self._judge_case(meaning, case, rng.getrandbits(62), again=True)
                self._rerun(meaning, largest, rng.getrandbits(62))
                self._ghost(meaning, largest, rng.getrandbits(62))

    def _turn(self) -> AbstractContextManager[None]:
        """On the GPU beside other candidates, but alone where the candidate may time itself to choose its fastest form."""
        return self.lane.alone() if self.times_itself else self.lane.shared()

    def _judge_case(self, meaning: Meaning, case: Case, seed: int, again: bool = False) -> None:
        started = time.monotonic()
        args = meaning.make_inputs(case, seed, self.device)
        expected = expect(meaning, case, args)
        region = self.region(args, expected)
        try:
            answer = self.call(case, region, ghost=False)
            if isinstance(answer, Skipped):
                self.cases.append(CaseResult(case=case.id, status="skipped", reason=answer.reason[:500]))
                return
            reason, error = self.compare(expected, answer, region)
            if reason:
                self.fault(Outcome.wrong_result, "wrong_elements", reason, case)
            if touched := region.touched():
                mutated = touched.startswith("input")
                outcome = Outcome.mutated_inputs if mutated else Outcome.wrong_result
                self.fault(outcome, "mutated_inputs" if mutated else "out_of_bounds", touched, case)
            self.provenance(answer, case)
        finally:
            region.close()
        if not again:
            result = CaseResult(case=case.id, status="failed" if reason or touched else "passed",
                                reason=reason or touched, error=error, seconds=time.monotonic() - started)  # fmt: skip
            self.cases.append(result)

    def _rerun(self, meaning: Meaning, case: Case, seed: int) -> None:
        """The same call three times: an answer must not come and go, nor its bits where the task says so."""
        args = meaning.make_inputs(case, seed, self.device)
        expected = expect(meaning, case, args)
        region = self.region(args, expected)
        seen: list[tuple[str, list[bytes]]] = []
        try:
            for _ in range(3):
                region.reveal(args)
                answer = self.call(case, region, ghost=False)
                if isinstance(answer, Skipped):
                    return
                outputs = [region.output(frame) for frame in answer.outputs if frame.dtype is not None]
                bits = [
                    o.cpu().contiguous().view(torch.uint8).numpy().tobytes() for o in outputs if o is not None
                ]
                seen.append((self.compare(expected, answer, region)[0], bits))
        finally:
            region.close()
        wrong = [reason for reason, _ in seen if reason]
        if wrong:
            text = f"the same call on the same inputs is right at times and wrong at others: {wrong[0]}"
            self.fault(Outcome.nondeterministic, "rerun", text, case)
        elif self.task.deterministic and any(bits != seen[0][1] for _, bits in seen):
            text = "the same call on the same inputs gives other bits each time"
            self.fault(Outcome.nondeterministic, "rerun", text, case)

    def _ghost(self, meaning: Meaning, case: Case, seed: int) -> None:
        """The call again with every kernel's writes suppressed: an answer that is still right was made elsewhere."""
        args = meaning.make_inputs(case, seed, self.device)
        expected = expect(meaning, case, args)
        region = self.region(args, expected)
        try:
            answer = self.call(case, region, ghost=True)
            if isinstance(answer, Done) and not self.compare(expected, answer, region)[0]:
                text = "the answer is right with the kernels' writes taken away: they do not do the work"
                self.fault(Outcome.foreign_kernel, "dead_kernel", text, case)
        finally:
            region.close()

    def region(self, args: Args, expected: tuple[Expected, ...]) -> CaseRegion:
        return (DeviceRegion if self.tier == "gpu" else HostRegion)(args, expected)

    def _time(self, cases: list[Case]) -> None:
        from llmdsl.judge.bench import Bench

        timed = []
        for result in self.cases:
            case = next(case for case in cases if case.id == result.case)
            if case.kind == "bench":
                with self.lane.alone():
                    timing = Bench(self, case).run()
                result = result.model_copy(update={"timing": timing})
            timed.append(result)
        self.cases = timed

    def call(self, case: Case, region: CaseRegion, *, ghost: bool) -> dict[str, Any]:
        message = {"kind": "case", "name": case.id, "args": region.specs, "nbytes": region.nbytes,
                   "output_at": region.output_at, "outputs": region.outputs, "ghost": ghost}  # fmt: skip
        answer = self.ask(message, (region.fd,), case.id)
        if isinstance(answer, Failed) and not ghost:
            raise self.stop(answer, case.id)
        return answer

    def compare(
        self, expected: tuple[Expected, ...], answer: Done, region: CaseRegion
    ) -> tuple[str, float | None]:
        """(why it is wrong or "", largest error in units of the bound)."""
        outputs = answer.outputs
        if len(outputs) != len(expected):
            names = ", ".join(e.spec.name for e in expected)
            return f"{len(outputs)} outputs were returned, {len(expected)} are due ({names})", None
        worst, reasons = 0.0, []
        for one, described in zip(expected, outputs, strict=True):
            comparison_reason, error = _compare_one(one, described, region)
            worst = max(worst, error)
            if comparison_reason:
                reasons.append(comparison_reason)
        return "; ".join(reasons), worst if worst != float("inf") else None

    def provenance(self, answer: Done, case: Case) -> None:
        """Whether the candidate's own kernels did the work of this call."""
        own = own_kernels(answer.kernels) if self.tier == "gpu" else answer.launches
        self.kernels.update(own)
        if foreign := [*foreign_ops(answer.ops), *foreign_kernels(answer.kernels)]:
            what = ", ".join(foreign[:8])
            text = f"torch, a library or the host did work that a {self.dsl.title} kernel should do: {what}"
            self.fault(Outcome.foreign_kernel, "foreign_op", text, case)
        elif not own:
            text = f"no {self.dsl.title} kernel was launched"
            self.fault(Outcome.foreign_kernel, "no_kernel", text, case)

    def fault(self, outcome: Outcome, kind: str, message: str, case: Case) -> None:
        if sum(o is outcome for o, _ in self.faults) < 4:  # more of the same teaches nobody
            self.faults.append((outcome, Diagnostic(kind=kind, message=message, case=case.id)))


def _compare_one(expected: Expected, described: OutputFrame, region: CaseRegion) -> tuple[str, float]:
    name = expected.spec.name
    if described.dtype is None:
        return f"{name} is a {described.type}, expected a tensor", float("inf")
    shape = tuple(described.shape)
    if shape != tuple(expected.shape) or described.dtype != str(expected.dtype).removeprefix("torch."):
        want = f"{tuple(expected.shape)} {str(expected.dtype).removeprefix('torch.')}"
        return f"{name} is {shape} {described.dtype}, expected {want}", float("inf")
    tensor = region.output(described)
    if tensor is None:
        return f"{name} was not delivered", float("inf")
    comparison = compare(expected, tensor)
    return ("" if comparison.passed else comparison.reason), comparison.error


def _compiler_errors(output: str) -> tuple[list[str], int | None]:
    """The last errors that an MLIR compiler printed of the candidate, and the line of the first of them."""
    found = list(_MLIR_ERROR.finditer(output))[-4:]
    return [match[0][:500] for match in found], int(found[0][1]) if found else None


def _times(values: Any) -> bool:
    return isinstance(values, list) and all(type(v) is float and 0 < v < 1e9 for v in values)


def _kernel_oom_kills() -> int:
    """How many processes the kernel has killed for want of memory since it started."""
    lines = Path("/proc/vmstat").read_text().splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), 0)
