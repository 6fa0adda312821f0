"""The logistic model finds effects that were planted, and says how sure it is."""

from __future__ import annotations

import numpy as np
import pytest

from llmdsl.score.effects import Count, side_effects

PLANTED = {"triton": 1.2, "cuda": 0.2, "cute": -0.4, "pallas": -1.0}


def drawn(seed: int, tasks: int, samples: int, own: float = 0.0) -> list[Count]:
    """Counts of two models in four DSLs; `own` is the deviation of how a task suits a DSL."""
    rng = np.random.default_rng(seed)
    found = []
    for task in range(tasks):
        difficulty = rng.normal(0.3, 1.5)
        for dsl, effect in PLANTED.items():
            suits = rng.normal(0, own) if own else 0.0
            for model, skill in (("a", 0.8), ("b", -0.8)):
                p = 1 / (1 + np.exp(-(difficulty + effect + suits + skill)))
                found.append(Count(dsl, (model,), str(task), samples, int(rng.binomial(samples, p))))
    return found


def test_planted_effects_are_recovered() -> None:
    found = side_effects(drawn(0, tasks=200, samples=5))
    assert list(found) == list(PLANTED)
    for dsl, effect in PLANTED.items():
        assert found[dsl].effect == pytest.approx(effect, abs=0.2)
        assert found[dsl].high - found[dsl].low < 0.6
    assert sum(each.effect for each in found.values()) == pytest.approx(0, abs=1e-9)


def test_intervals_cover_the_planted_effects() -> None:
    found = [side_effects(drawn(seed, tasks=25, samples=3)) for seed in range(60)]
    covered = [each[dsl].low <= PLANTED[dsl] <= each[dsl].high for each in found for dsl in PLANTED]
    assert 0.93 <= np.mean(covered) <= 0.99


def test_an_unbalanced_run_does_not_favour_the_dsl_of_the_better_model() -> None:
    """Model b is much weaker and answered most of cute's tasks: cute's rate is lower, its effect is not."""
    rng = np.random.default_rng(0)
    counts = []
    for task in range(150):
        difficulty = rng.normal(0, 1)
        for dsl, model, skill, trials in (("triton", "a", 1.5, 8), ("triton", "b", -1.5, 2), ("cute", "a", 1.5, 2), ("cute", "b", -1.5, 8)):  # fmt: skip
            p = 1 / (1 + np.exp(-(difficulty + skill)))
            counts.append(Count(dsl, (model,), str(task), trials, int(rng.binomial(trials, p))))
    rates = {dsl: sum(c.passed for c in counts if c.side == dsl) for dsl in ("triton", "cute")}
    assert rates["triton"] > 1.5 * rates["cute"]
    found = side_effects(counts)["triton"]
    assert found.low < 0 < found.high and abs(found.effect) < 0.2


def test_a_dsl_in_which_nothing_is_right_is_finite_and_unsure() -> None:
    counts = drawn(0, tasks=20, samples=3) + [Count("none", ("a",), str(t), 3, 0) for t in range(20)]
    found = side_effects(counts)
    assert found["none"].effect < min(found[dsl].effect for dsl in PLANTED)
    assert found["none"].low > -12 and found["none"].high - found["none"].low > 1.5
    assert found["none"].high < found["triton"].low


def test_too_little_gives_nothing() -> None:
    assert side_effects([]) == {} and side_effects(drawn(0, tasks=4, samples=3)) == {}
    assert side_effects([Count("d", ("m",), str(t), 1, 1) for t in range(9)]) == {}
    alone = [Count(d, (d,), str(t), 1, 1) for t in range(9) for d in ("d", "e")]
    assert side_effects(alone) == {}, "each DSL has a model of its own: nothing tells the one from the other"
