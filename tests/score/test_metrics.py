"""Scores against values worked out by hand, and properties they must have."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmdsl.score.metrics import (
    estimate,
    fast_p,
    geometric_mean_speedup,
    mean_per_sample,
    pass_at_k,
    passes_after,
    passes_at,
)
from tests.score.made import sample, tasks


@pytest.mark.parametrize(
    ("n", "c", "k", "value"),
    [
        (1, 0, 1, 0.0),
        (1, 1, 1, 1.0),
        (10, 3, 1, 0.3),
        (4, 1, 2, 0.5),  # 1 - C(3,2)/C(4,2) = 1 - 3/6
        (5, 2, 2, 0.7),  # 1 - C(3,2)/C(5,2) = 1 - 3/10
        (5, 2, 4, 1.0),  # any 4 of 5 hold a right one
        (100, 1, 10, 0.1),
    ],
)
def test_pass_at_k_by_hand(n: int, c: int, k: int, value: float) -> None:
    assert pass_at_k(n, c, k) == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize(("n", "c", "k"), [(0, 0, 1), (3, 4, 1), (3, 1, 4), (3, 1, 0), (3, -1, 1)])
def test_pass_at_k_of_nonsense_is_an_error(n: int, c: int, k: int) -> None:
    with pytest.raises(ValueError, match="pass@k"):
        pass_at_k(n, c, k)


NCK = st.integers(1, 300).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n)))


@given(NCK)
def test_pass_at_k_properties(nck: tuple[int, int, int]) -> None:
    n, c, k = nck
    value = pass_at_k(n, c, k)
    assert 0 <= value <= 1
    assert value >= pass_at_k(n, c, 1) - 1e-12 and pass_at_k(n, c, 1) == pytest.approx(c / n)
    assert k == 1 or value >= pass_at_k(n, c, k - 1) - 1e-12
    assert c == 0 or value >= pass_at_k(n, c - 1, k) - 1e-12
    assert (value == 0) == (c == 0) and (value == 1 or n - c >= k)


@given(
    st.integers(1, 8).flatmap(
        lambda n: st.tuples(st.lists(st.booleans(), min_size=n, max_size=n), st.integers(1, n))
    )
)
def test_pass_at_k_is_the_share_of_subsets_with_a_right_one(drawn: tuple[list[bool], int]) -> None:
    from itertools import combinations

    passed, k = drawn
    subsets = list(combinations(passed, k))
    assert pass_at_k(len(passed), sum(passed), k) == pytest.approx(sum(map(any, subsets)) / len(subsets))


def test_passes_at_weighs_tasks_alike_and_failures_are_zero() -> None:
    by_task = tasks(
        a=[["correct"], ["crash"]], b=[["no_code"], ["timeout"], ["wrong_result"], ["foreign_kernel"]]
    )
    assert passes_at(by_task, 1).value == pytest.approx((0.5 + 0) / 2)
    assert passes_at(by_task, 1).tasks == 2, "a task whose attempts all failed stays in"


def test_what_is_not_the_models_doing_leaves_the_denominator() -> None:
    by_task = tasks(
        a=[["correct"], ["infra_error"], ["crash"]], b=[["unsupported"], ["infra_error"]], c=[[], ["correct"]]
    )
    result = passes_at(by_task, 1)
    assert result.value == pytest.approx((0.5 + 1.0) / 2) and result.tasks == 2
    assert passes_at(by_task, 2).value == pytest.approx(1.0), "only task a has two samples that count"
    assert passes_at(by_task, 3) is None


def test_an_answer_without_a_verdict_counts_for_nothing() -> None:
    assert passes_at(tasks(a=[[None]]), 1) is None


def test_compiled_is_what_the_compile_tier_calls_passed() -> None:
    assert passes_at(tasks(a=[["compiled"]]), 1).value == 1.0


def test_passes_after_attempts() -> None:
    by_task = tasks(
        allowed=3, a=[["crash", "wrong_result", "correct"], ["correct"]], b=[["crash", "crash", "crash"]]
    )
    assert [passes_after(by_task, n).value for n in (1, 2, 3)] == [0.25, 0.25, 0.5]


def test_a_repair_that_was_not_made_counts_from_where_it_was_due() -> None:
    one = sample(["crash", "infra_error"], allowed=3)
    assert [one.passed_after(n) for n in (1, 2, 3)] == [False, None, None]
    cut = sample(["crash"], allowed=2)  # the budget ended
    assert [cut.passed_after(n) for n in (1, 2)] == [False, None]
    assert sample([], allowed=2).passed_after(1) is None
    passed = sample(["crash", "correct"], allowed=5)
    assert [passed.passed_after(n) for n in (1, 2, 5)] == [False, True, True]


def test_fast_p_by_hand() -> None:
    by_task = tasks(a=[[("correct", 2.0)], [("correct", 0.9)]], b=[["wrong_result"]], c=[["infra_error"]])
    values = {p: fast_p(by_task, p, "eager") for p in (0.5, 0.9, 1.0, 2.0)}
    assert values[0.5].value == 0.5 and values[0.5].tasks == 2
    assert values[1.0].value == 0.25
    assert values[2.0].value == 0.0, "as fast is not faster"
    assert fast_p(by_task, 0.5, "compile").value == 0.0, "not timed against it"


def test_fast_p_takes_the_attempt_that_is_right() -> None:
    by_task = tasks(allowed=2, a=[["crash", ("correct", 3.0)]])
    assert fast_p(by_task, 2.0, "eager").value == 1.0


def test_a_wrong_answer_has_no_speedup() -> None:
    assert sample([("wrong_result", 50.0)]).speedup("eager") is None
    assert geometric_mean_speedup(tasks(a=[[("wrong_result", 50.0)]]), "eager") is None
    assert fast_p(tasks(a=[[("wrong_result", 50.0)]]), 1.0, "eager").value == 0.0


def test_geometric_mean_by_hand() -> None:
    by_task = tasks(
        a=[[("correct", 2.0)], [("correct", 8.0)]], b=[[("correct", 0.25)], ["crash"]], c=[["crash"]]
    )
    result = geometric_mean_speedup(by_task, "eager")
    assert result.value == pytest.approx(math.sqrt(4.0 * 0.25)) and result.tasks == 2


def test_mean_per_sample_by_hand() -> None:
    by_task = tasks(
        allowed=2, a=[["crash", "correct"], ["correct"]], b=[["infra_error"]], c=[["crash", "crash"]]
    )
    tokens = mean_per_sample(
        by_task, lambda s: float(sum(t.usage.input + t.usage.output for t in s.attempts))
    )
    assert tokens.value == pytest.approx(((230 + 110) / 2 + 230) / 2) and tokens.tasks == 2


def test_the_interval_is_the_bootstrap_over_tasks() -> None:
    # Half of ten tasks right: a resampled mean is Binomial(10, 1/2) / 10; t(9) = 2.262 widens the tails from 2.5 % to
    # 0.86 %, and that quantile is 0.1 (P(X <= 0) = 0.1 %, P(X <= 1) = 1.07 %).
    result = estimate([0.0, 1.0] * 5)
    assert (result.value, result.low, result.high, result.tasks) == (0.5, 0.1, 0.9, 10)
    assert estimate([0.0, 1.0] * 5) == result, "seeded"
    assert estimate([]) is None
    one = estimate([1.0])
    assert one.low is None and one.high is None, "one task tells nothing of others"


@given(st.lists(st.floats(0, 1), min_size=2, max_size=30))
def test_the_interval_lies_within_the_values(values: list[float]) -> None:
    result = estimate(values)
    assert min(values) - 1e-9 <= result.low <= result.high <= max(values) + 1e-9
    assert result.value == pytest.approx(sum(values) / len(values))


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=20), st.floats(0.1, 10))
def test_the_geometric_mean_scales(speedups: list[float], factor: float) -> None:
    plain = geometric_mean_speedup(
        tasks(**{f"t{n}": [[("correct", s)]] for n, s in enumerate(speedups)}), "eager"
    )
    scaled = geometric_mean_speedup(
        tasks(**{f"t{n}": [[("correct", s * factor)]] for n, s in enumerate(speedups)}), "eager"
    )
    assert scaled.value == pytest.approx(plain.value * factor)
    assert min(speedups) * 0.999 <= plain.value <= max(speedups) * 1.001


OUTCOMES = st.sampled_from(["crash", "wrong_result", "correct", "infra_error", "unsupported"])
BY_TASK = st.dictionaries(
    st.sampled_from("abcdef"), st.lists(st.lists(OUTCOMES, max_size=3), min_size=1, max_size=4), min_size=1
)


@given(BY_TASK)
def test_pass_after_grows_with_attempts_where_the_same_samples_count(
    words: dict[str, list[list[str]]],
) -> None:
    by_task = tasks(allowed=3, **words)
    for samples in by_task.values():
        for one in samples:
            passed = [one.passed_after(n) for n in (1, 2, 3)]
            known = [p for p in passed if p is not None]
            assert known == sorted(known)
    result = passes_after(by_task, 3)
    assert result is None or 0 <= result.value <= 1
