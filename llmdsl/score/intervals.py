"""Intervals and tests over tasks. One number per task goes in: tasks are the clusters that are resampled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

RESAMPLES = 2_000
SEED = 0
CONFIDENCE = 0.95
METHOD = f"{CONFIDENCE:.0%} bootstrap over tasks (percentile, widened for few tasks), {RESAMPLES} resamples, seed {SEED}"
TIE = 1e-12  # differences of means of ratios: smaller ones are rounding


def mean_interval(per_task: Sequence[float]) -> tuple[float, float] | None:
    """Interval of the mean of one number per task; None from fewer than two tasks.

    The expanded percentile bootstrap of Hesterberg 2015, "What Teachers Should Know About the Bootstrap":
    quantiles of the resampled means at Phi(-sqrt(n / (n - 1)) t) and its complement, t being Student's quantile
    with n - 1 degrees of freedom, so that 10 tasks do not look like a thousand. Where all tasks say the same the
    interval has no width: it shows the data, not certainty, which is why `compare` also asks `sign_test`.
    """
    import numpy as np

    n = len(per_task)
    if n < 2:
        return None
    values = np.asarray(per_task, dtype=np.float64)
    picks = np.random.default_rng(SEED).integers(0, n, size=(RESAMPLES, n))
    t = student_quantile((1 + CONFIDENCE) / 2, n - 1)
    tail = NormalDist().cdf(-math.sqrt(n / (n - 1)) * t)
    low, high = np.quantile(values[picks].mean(axis=1), [tail, 1 - tail])
    return float(low), float(high)


def student_quantile(p: float, freedom: int) -> float:
    """Quantile of Student's t; Abramowitz & Stegun 1964, 26.7.5: within 1 % from 3 degrees of freedom, too small below."""
    x = NormalDist().inv_cdf(p)
    terms = (
        x,
        (x**3 + x) / 4,
        (5 * x**5 + 16 * x**3 + 3 * x) / 96,
        (3 * x**7 + 19 * x**5 + 17 * x**3 - 15 * x) / 384,
        (79 * x**9 + 776 * x**7 + 1482 * x**5 - 1920 * x**3 - 945 * x) / 92160,
    )
    return sum(term / freedom**power for power, term in enumerate(terms))


def sign_test(differences: Sequence[float]) -> float:
    """Two-sided exact p-value that differences are as often above zero as below; ties are left out.

    With w differences above zero and l below: min(1, 2 P(X <= min(w, l))), X ~ Binomial(w + l, 1/2) (Dixon & Mood
    1946, "The Statistical Sign Test").
    """
    above = sum(d > TIE for d in differences)
    below = sum(d < -TIE for d in differences)
    n = above + below
    return min(1.0, 2 * sum(math.comb(n, i) for i in range(min(above, below) + 1)) / 2**n)


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values corrected for their number, in the order given; Holm 1979, "A Simple Sequentially Rejective Multiple
    Test Procedure": the i-th smallest of m times m - i + 1, never below the one before it, at most 1."""
    corrected = [1.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        corrected[index] = largest
    return corrected
