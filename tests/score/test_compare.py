"""Comparisons against values worked out by hand, and against simulated runs whose truth is known."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from llmdsl.errors import Incomparable
from llmdsl.models.base import Completion, Sampling, Usage
from llmdsl.score import compare as module
from llmdsl.score.compare import Cell, Comparison, Difference, Metric, compare
from llmdsl.score.samples import Sample, Tried
from llmdsl.store.records import CompletionRecord, Slot, VerdictRecord
from llmdsl.store.run import RunFolder
from tests.generate.made import config, verdict
from tests.score.made import Word
from tests.score.made import sample as made_sample

Said = dict[tuple[str, str, str], list[list[Word]]]  # (model, DSL, task) → samples → attempts


def make_run(path: Path, said: Said, hardware: dict[str, str] | None = None, **changes: object) -> RunFolder:
    """A run that asked for everything its keys name; `infra_error` and None as in `tests.score.made`."""
    models, dsls, tasks = (tuple(dict.fromkeys(key[i] for key in said)) for i in range(3))
    fields = dict(models=models, dsls=dsls, tasks=tasks, samples=max(map(len, said.values())), tier="gpu",
                  task_versions=dict.fromkeys(tasks, 1))  # fmt: skip
    with RunFolder.create(path, config(**(fields | changes)), {}) as folder:
        for (model, dsl, task), samples in said.items():
            for number, words in enumerate(samples):
                for attempt, word in enumerate(words, start=1):
                    key = Slot(model, dsl, task, number).key(attempt)
                    answer = Completion(text="", served_model="s", usage=Usage(input=1, output=1))
                    folder.append(CompletionRecord(time="", key=key, messages=(), completion=answer))
                    if word is not None:
                        name, speedup = word if isinstance(word, tuple) else (word, None)
                        judged = verdict(
                            name, speedup, tier="gpu", task=task, dsl=dsl, hardware=hardware or {}
                        )
                        folder.append(VerdictRecord(time="", key=key, source="", verdict=judged))
    return RunFolder.open(path)


def metric(made: Comparison, name: str) -> Metric:
    return next(metric for metric in made.metrics if metric.name == name)


def only(made: Comparison, name: str) -> Difference:
    (difference,) = metric(made, name).differences
    return difference


def test_dsls_are_paired_by_task_and_model(tmp_path: Path) -> None:
    """mock/b never tried t2 in cute: its good triton answer there must not lift triton."""
    run = make_run(
        tmp_path / "run",
        {
            ("mock/a", "triton", "t1"): [["correct"], ["crash"]],
            ("mock/a", "cute", "t1"): [["crash"], ["crash"]],
            ("mock/b", "triton", "t1"): [["correct"], ["correct"]],
            ("mock/b", "cute", "t1"): [["correct"], ["correct"]],
            ("mock/a", "triton", "t2"): [["crash"], ["crash"]],
            ("mock/a", "cute", "t2"): [["correct"], ["crash"]],
            ("mock/b", "triton", "t2"): [["correct"], ["correct"]],
            ("mock/b", "cute", "t2"): [["infra_error"], ["unsupported"]],
        },
    )
    made = compare([run])
    assert made.axis == "dsl" and [side.name for side in made.sides] == ["triton", "cute"]
    found = only(made, "pass@1")
    assert found.difference.value == pytest.approx((0.25 - 0.5) / 2), "t1: mean of 0.5 and 0; t2: -0.5"
    assert (found.better, found.worse, found.left_out) == (("t1",), ("t2",), ())
    assert found.winner is None and found.reason == "interval holds 0"
    values = metric(made, "pass@1").values
    assert values["triton"].value == pytest.approx((0.75 + 0) / 2)
    assert values["cute"].value == pytest.approx((0.5 + 0.5) / 2)
    (missing,) = made.missing
    assert (missing.side, missing.task, missing.unit) == ("cute", "t2", "mock/b · signature")
    assert missing.reason == "infra_error, unsupported"


def test_a_speedup_is_compared_where_both_are_right(tmp_path: Path) -> None:
    run = make_run(
        tmp_path / "run",
        {
            ("m", "triton", "t1"): [[("correct", 2.0)]],
            ("m", "cute", "t1"): [[("correct", 4.0)]],
            ("m", "triton", "t2"): [[("correct", 3.0)]],
            ("m", "cute", "t2"): [[("correct", 1.5)]],
            ("m", "triton", "t3"): [[("correct", 100.0)]],
            ("m", "cute", "t3"): [["crash"]],
        },
    )
    made = compare([run])
    found = only(made, "speedup over eager")
    assert found.difference.value == pytest.approx(1.0) and found.difference.tasks == 2
    assert found.left_out == ("t3",) and found.reason == "interval holds 1"
    assert metric(made, "speedup over eager").values["triton"].value == pytest.approx(6**0.5)
    fast = only(made, "fast_1 over eager")
    assert fast.difference.value == pytest.approx(1 / 3) and fast.better == ("t3",), "a failure is 0"
    assert made.missing == (), "a failure is an attempt"


def test_effects_count_first_answers_that_count(tmp_path: Path) -> None:
    said: Said = {("m", "triton", f"t{n}"): [["correct"], ["correct"]] for n in range(6)}
    said |= {("m", "cute", f"t{n}"): [["crash", "correct"], ["infra_error"]] for n in range(6)}
    effects = compare([make_run(tmp_path / "run", said, attempts=2)]).effects
    assert effects["triton"].low > 0 > effects["cute"].high
    assert effects["triton"].effect == pytest.approx(-effects["cute"].effect)
    few = {key: samples for key, samples in said.items() if key[2] in ("t0", "t1")}
    assert compare([make_run(tmp_path / "few", few, attempts=2)]).effects == {}


def test_the_same_answers_cannot_be_told_apart(tmp_path: Path) -> None:
    words: list[list[Word]] = [["correct"], ["crash"], ["no_code"]]
    said = {("m", dsl, f"t{n}"): words for dsl in ("triton", "cute") for n in range(30)}
    found = only(compare([make_run(tmp_path / "run", said)]), "pass@1")
    assert (found.difference.value, found.difference.low, found.difference.high) == (0, 0, 0)
    assert found.winner is None and found.p == 1.0


def right_everywhere(dsls: Iterable[str], tasks: int) -> Said:
    return {("m", dsl, f"t{n}"): [["correct" if dsl == "triton" else "crash"]] for dsl in dsls for n in range(tasks)}  # fmt: skip


@pytest.mark.parametrize(
    ("tasks", "winner", "reason"),
    [
        (1, None, "one task only"),
        (5, None, "sign test p = 0.062"),
        (6, "triton", "p = 0.031"),
    ],
)
def test_an_interval_without_width_is_not_certainty(
    tmp_path: Path, tasks: int, winner: str | None, reason: str
) -> None:
    """All tasks say the same, so the bootstrap is sure from two tasks on; the sign test is not."""
    found = only(compare([make_run(tmp_path / "run", right_everywhere(["triton", "cute"], tasks))]), "pass@1")
    assert (found.winner, found.reason) == (winner, reason)


def test_more_pairs_need_more_evidence(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", right_everywhere(["triton", "cute", "cuda"], 6))
    differences = metric(compare([run]), "pass@1").differences
    assert [(d.first, d.second) for d in differences] == [
        ("triton", "cute"),
        ("triton", "cuda"),
        ("cute", "cuda"),
    ]
    assert [d.winner for d in differences] == [None, None, None]
    assert differences[0].holm_p == pytest.approx(3 * 2 / 64)
    assert differences[0].reason == "p = 0.094 over all pairs"


def test_run_against_run_says_what_was_fixed_and_what_broke(tmp_path: Path) -> None:
    old = make_run(tmp_path / "old", {("m", "d", "t1"): [["crash"]], ("m", "d", "t2"): [["correct"]]})
    new = make_run(tmp_path / "new", {("m", "d", "t1"): [["correct"]], ("m", "d", "t2"): [["crash"]]},
                   sampling=Sampling(temperature=0.5))  # fmt: skip
    made = compare([new, old])
    assert made.axis == "run" and [side.name for side in made.sides] == [str(new.path), str(old.path)]
    found = only(made, "pass@1")
    assert (found.better, found.worse) == (("t1",), ("t2",))
    assert made.notes == ("The runs also differ in sampling: a difference may be theirs, not the run's.",)


def test_models_and_contexts_of_several_runs(tmp_path: Path) -> None:
    said = {("m", "d", "t"): [["crash"]], ("n", "d", "t"): [["correct"]]}
    runs = [make_run(tmp_path / c, said, context=c, prompts_hash=c * 16) for c in "ab"]
    assert compare(runs).axis == "model" and compare(runs).notes == ()
    made = compare(runs, "context")
    assert [side.name for side in made.sides] == ["a", "b"] and only(made, "pass@1").difference.value == 0


def test_what_was_not_run_is_named(tmp_path: Path) -> None:
    one = make_run(tmp_path / "one", {("m", "d", "t1"): [["correct"]], ("m", "d", "t2"): [["correct"]], ("m", "d", "t3"): [[]]})  # fmt: skip
    two = make_run(tmp_path / "two", {("m", "e", "t1"): [["correct"]], ("m", "e", "t3"): [["correct"]]})
    made = compare([one, two])
    assert [(m.side, m.task, m.reason) for m in made.missing] == [
        ("e", "t2", "not asked for"),
        ("d", "t3", "not run"),
    ]
    assert only(made, "pass@1").left_out == ("t2", "t3")


def test_more_attempts_than_the_other_had_do_not_count(tmp_path: Path) -> None:
    one = make_run(tmp_path / "one", {("m", "d", "t"): [["crash", ("correct", 2.0)]]}, attempts=2)
    two = make_run(tmp_path / "two", {("m", "e", "t"): [["crash"]]})
    made = compare([one, two])
    assert made.sides[0].final == {"crash": 1} and "Only the first 1 attempts" in made.notes[0]


def test_runs_that_do_not_compare_are_refused(tmp_path: Path) -> None:
    said: Said = {("m", "d", "t"): [["correct"]]}
    base = make_run(tmp_path / "base", said, {"gpu": "H100"})
    with pytest.raises(Incomparable, match="different tiers"):
        compare([base, make_run(tmp_path / "tier", said, tier="interpret")])
    with pytest.raises(Incomparable, match=r"different versions of the judge.*replay"):
        compare([base, make_run(tmp_path / "judge", said, judge_version=99)])
    with pytest.raises(Incomparable, match=r"different GPUs \(H100, H200\)"):
        compare([base, make_run(tmp_path / "gpu", said, {"gpu": "H200"})])
    with pytest.raises(Incomparable, match=r"only one run.*--by"):
        compare([base, RunFolder.open(tmp_path / "base")])
    changed = compare([base, make_run(tmp_path / "task", said | {("m", "e", "u"): [["correct"]], ("m", "d", "u"): [["crash"]]},
                                      {"gpu": "H100"}, task_versions={"t": 2, "u": 1})])  # fmt: skip
    assert "different versions of the task: t." in changed.notes[0]


def test_it_survives_json_and_does_not_depend_on_chance(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", right_everywhere(["triton", "cute"], 6))
    made = compare([run])
    assert Comparison.model_validate(json.loads(made.model_dump_json())) == made == compare([run])


CORRECT, CRASH = made_sample(["correct"]).attempts, made_sample(["crash"]).attempts


def cells_of(passed: np.ndarray, sides: tuple[str, ...]) -> module.Cells:
    """passed: booleans, (sides, tasks, samples)."""

    def drawn(side: str, task: int, row: np.ndarray) -> list[Sample]:
        slot = Slot("m", side, str(task), 0)
        attempts: tuple[tuple[Tried, ...], ...] = tuple(CORRECT if right else CRASH for right in row)
        return [Sample(slot, 1, each) for each in attempts]

    return {Cell(side, ("m",), str(task)): drawn(side, task, row)
            for side, rows in zip(sides, passed, strict=True) for task, row in enumerate(rows)}  # fmt: skip


def simulate(seed: int, gap: float, sides: tuple[str, ...], tasks: int = 30) -> Metric:
    """Pass rates with a task's difficulty that all sides share, a part of their own, and the first side's `gap`."""
    rng = np.random.default_rng(seed)
    shared = rng.normal(0, 1.5, (1, tasks))
    own = rng.normal(0, 0.7, (len(sides), tasks))
    rates = 1 / (1 + np.exp(-(shared + own + gap * (np.arange(len(sides)) == 0)[:, None])))
    cells = cells_of(rng.random((len(sides), tasks, 5)) < rates[:, :, None], sides)
    values = module._values(cells, lambda samples: module.metrics.task_pass_at(samples, 1))
    return module._metric("pass@1", "share", values, list(sides), cells)


def true_difference(gap: float) -> float:
    rng = np.random.default_rng(0)
    z = rng.normal(0, (1.5**2 + 0.7**2) ** 0.5, 2_000_000)
    return float(np.mean(1 / (1 + np.exp(-z - gap)) - 1 / (1 + np.exp(-z))))


@pytest.mark.parametrize("gap", [0.0, 0.8])
def test_intervals_of_differences_cover_the_truth(gap: float) -> None:
    """Runs drawn anew, tasks included, from pass rates that are known: 93 to 97 % of the intervals hold the truth."""
    truth = true_difference(gap)
    found = [simulate(seed, gap, ("d", "e")).differences[0].difference for seed in range(500)]
    covered = sum(each.low <= truth <= each.high for each in found) / len(found)
    assert 0.93 <= covered <= 0.97, covered


def test_of_equal_dsls_one_is_rarely_called_better() -> None:
    """Four equal DSLs, six pairs: in at most 5 % of the runs is any pair told apart. A real gap is found."""
    sides = ("a", "b", "c", "d")
    false = [any(d.winner for d in simulate(seed, 0.0, sides).differences) for seed in range(150)]
    assert sum(false) / len(false) <= 0.05
    found = [simulate(seed, 3.0, ("a", "b")).differences[0].winner for seed in range(50)]
    assert found.count("a") >= 45 and "b" not in found
