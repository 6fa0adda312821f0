"""What the judge says of a candidate. Light to import: the store, the scores and the site read verdicts without torch."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

JUDGE_VERSION = 1
Tier = Literal["compile", "interpret", "gpu"]


class Outcome(StrEnum):
    """In the order of the funnel; the first stage that fails names the outcome.

    `compiled` is the best that the compile tier can say. `infra_error` (retried) and `unsupported` (the machine
    lacks what the DSL needs) stand beside the funnel and are never held against a model.
    """

    no_code = "no_code"
    syntax_error = "syntax_error"
    import_error = "import_error"
    compile_error = "compile_error"
    launch_error = "launch_error"
    crash = "crash"
    timeout = "timeout"
    out_of_memory = "out_of_memory"
    wrong_result = "wrong_result"
    nondeterministic = "nondeterministic"
    mutated_inputs = "mutated_inputs"
    foreign_kernel = "foreign_kernel"
    tampered = "tampered"
    correct = "correct"
    compiled = "compiled"
    infra_error = "infra_error"
    unsupported = "unsupported"

    @property
    def passed(self) -> bool:
        """The best its tier can say."""
        return self in (Outcome.correct, Outcome.compiled)

    @property
    def counts(self) -> bool:
        """Whether the outcome is the model's doing and so belongs in the denominator of every mean."""
        return self not in (Outcome.infra_error, Outcome.unsupported)


FUNNEL: tuple[Outcome, ...] = tuple(outcome for outcome in Outcome if outcome.counts)


class Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Diagnostic(Record):
    """One thing a person would want to know to repair the candidate."""

    kind: str  # e.g. "syntax", "made_up_name", "compiler", "wrong_elements", "out_of_bounds", "foreign_op"
    message: str
    line: int | None = None  # in the candidate's source, from 1
    case: str | None = None


class Timing(Record):
    """Times of one bench case, microseconds; medians, with the 95 % interval of the median."""

    candidate_us: float
    candidate_interval_us: tuple[float, float]
    baselines_us: dict[str, float] = {}  # "eager", "compile", "reference"
    end_to_end_us: float | None = None
    witness_us: float | None = None  # the judge's own clock, an upper bound on the claim
    floor_us: float | None = None  # the roofline's: no kernel can be faster
    calls: int = 0
    method: str = ""  # "cuda_graph" or "events"
    kernels: dict[str, float] = {}  # what ran on the GPU → its share of the call's device time
    voided: tuple[str, ...] = ()  # slowdowns of the chip, one for each pair of rounds thrown away for it


class CaseResult(Record):
    """One case: `failed` has a reason; `skipped` names why this tier cannot judge it."""

    case: str
    status: Literal["passed", "failed", "skipped"]
    reason: str = ""
    error: float | None = None  # largest error in units of the bound; right: <= 1
    seconds: float | None = None
    timing: Timing | None = None


class Verdict(Record):
    """The judge's word on one candidate in one tier."""

    outcome: Outcome
    task: str
    task_version: int
    dsl: str
    tier: Tier
    archs: tuple[str, ...] = ()
    stage: str = ""  # how far it came: "extract", "load", "compile", "run", "check", "time", "done"
    diagnostics: tuple[Diagnostic, ...] = ()
    cases: tuple[CaseResult, ...] = ()
    kernels: tuple[str, ...] = ()  # the candidate's own kernels that ran or compiled
    sandbox: dict[str, Any] = {}  # what was in force
    versions: dict[str, str] = {}
    hardware: dict[str, Any] = {}
    seed: int | None = None  # secret until the verdict exists
    seconds: dict[str, float] = {}  # wall time by stage
    judge_version: int = JUDGE_VERSION

    @property
    def correct(self) -> bool:
        return self.outcome is Outcome.correct

    def speedup(self, baseline: str = "eager") -> float | None:
        """Geometric mean over bench cases of baseline time / candidate time; None unless correct and all were timed."""
        import math

        timings = [case.timing for case in self.cases if case.timing]
        if not self.correct or not timings or any(baseline not in t.baselines_us for t in timings):
            return None
        return math.exp(
            sum(math.log(t.baselines_us[baseline] / t.candidate_us) for t in timings) / len(timings)
        )
