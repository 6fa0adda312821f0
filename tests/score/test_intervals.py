"""Intervals that cover what they say, and tests against values worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmdsl.score.intervals import holm, mean_interval, sign_test, student_quantile


@pytest.mark.parametrize(
    ("freedom", "value"), [(3, 3.182446), (5, 2.570582), (9, 2.262157), (29, 2.045230), (1000, 1.962339)]
)
def test_student_quantile_against_the_printed_table(freedom: int, value: float) -> None:
    assert student_quantile(0.975, freedom) == pytest.approx(value, rel=1e-2 if freedom < 5 else 2e-3)


@pytest.mark.parametrize(
    ("differences", "p"),
    [
        ([], 1.0),
        ([0.0, 0.0], 1.0),
        ([1.0], 1.0),
        ([1.0] * 5, 2 / 32),
        ([1.0] * 6, 2 / 64),
        ([-1.0] * 6 + [0.0] * 9, 2 / 64),  # ties say nothing
        ([1.0] * 9 + [-1.0], 2 * 11 / 1024),
        ([1.0, -1.0], 1.0),
        ([1e-16] * 20, 1.0),  # rounding is no difference
    ],
)
def test_sign_test_by_hand(differences: list[float], p: float) -> None:
    assert sign_test(differences) == pytest.approx(p, abs=1e-12)


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.9, 0.5]) == [1.0, 1.0] and holm([0.02]) == [0.02] and holm([]) == []


@given(st.lists(st.floats(0, 1), max_size=20))
def test_holm_keeps_the_order_and_never_helps(p_values: list[float]) -> None:
    corrected = holm(p_values)
    assert all(c >= p and c <= 1 for c, p in zip(corrected, p_values, strict=True))
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    assert [corrected[i] for i in order] == sorted(corrected)


def test_one_task_has_no_interval() -> None:
    assert mean_interval([]) is None and mean_interval([0.5]) is None


@pytest.mark.parametrize(
    ("name", "tasks", "draw", "truth"),
    [
        ("normal", 8, lambda rng, n: rng.normal(1.0, 2.0, n), 1.0),
        ("pass rates of 5 samples", 20, lambda rng, n: rng.binomial(5, rng.beta(2, 2, n)) / 5, 0.5),
        ("log speedups, skewed", 40, lambda rng, n: rng.gamma(2.0, 0.5, n), 1.0),
    ],
)
def test_intervals_cover_the_truth_as_often_as_they_say(name: str, tasks: int, draw, truth: float) -> None:
    """1000 data sets drawn anew, tasks included: 95 % intervals must hold the truth in 93 to 97 % of them."""
    rng = np.random.default_rng(1)
    intervals = [mean_interval(draw(rng, tasks)) for _ in range(1000)]
    covered = sum(low <= truth <= high for low, high in intervals) / 1000
    assert 0.93 <= covered <= 0.97, (name, covered)
