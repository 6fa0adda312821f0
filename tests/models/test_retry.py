"""The retry loop by itself: how long it waits and when it stops."""

from __future__ import annotations

import asyncio
import time
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmdsl.models.base import ModelError
from llmdsl.models.faults import retry_after
from llmdsl.models.retry import Fault, Policy, with_retries


def run(faults: list[Fault], policy: Policy) -> tuple[object, list[float]]:
    """(result or ModelError, waits) of a call that raises `faults` one after the other, then answers "ok"."""
    waits: list[float] = []
    left = list(faults)

    async def call() -> str:
        if left:
            raise left.pop(0)
        return "ok"

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    def never(error: BaseException) -> Fault:
        raise AssertionError(error)

    try:
        return asyncio.run(with_retries(call, never, policy, sleep)), waits
    except ModelError as error:
        return error, waits


afters = st.none() | st.floats(min_value=0, max_value=1e6)
some_faults = st.lists(
    st.builds(
        lambda again, after: Fault("server_error", "no", again=again, after=after), st.booleans(), afters
    ),
    max_size=12,
)


@given(faults=some_faults, attempts=st.integers(min_value=1, max_value=8))
def test_every_series_of_faults_ends_within_the_bounds(faults: list[Fault], attempts: int) -> None:
    policy = Policy(attempts=attempts, total_s=900, longest_wait_s=60)
    result, waits = run(faults, policy)
    assert len(waits) < attempts and all(wait < 900 for wait in waits)
    for fault, wait in zip(faults, waits, strict=False):
        assert wait == fault.after if fault.after is not None else 0 <= wait <= 60
    if isinstance(result, ModelError):
        assert result.retries == len(waits)
    else:
        assert result == ("ok", len(faults)) and all(fault.again for fault in faults)


def test_waits_grow_and_differ() -> None:
    series = [run([Fault("timeout", "no", again=True)] * 7, Policy(attempts=8))[1] for _ in range(60)]
    means = [sum(wait[n] for wait in series) / len(series) for n in range(7)]
    assert means[0] < means[3] < means[6] and len({wait[0] for wait in series}) == 60


def test_the_last_try_gets_what_is_left_of_the_time() -> None:
    async def hang() -> None:
        await asyncio.sleep(60)

    started = time.monotonic()
    with pytest.raises(ModelError) as error:
        asyncio.run(
            with_retries(hang, lambda error: Fault("x", "x", again=False), Policy(timeout_s=60, total_s=0.2))
        )
    assert error.value.kind == "timeout" and time.monotonic() - started < 5


def test_it_waits_for_real() -> None:
    calls: list[float] = []

    async def call() -> str:
        calls.append(time.monotonic())
        if len(calls) == 1:
            raise Fault("rate_limited", "no", again=True, after=0.2)
        return "ok"

    assert asyncio.run(with_retries(call, lambda error: Fault("x", "x", again=False), Policy())) == ("ok", 1)
    assert calls[1] - calls[0] >= 0.2


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [({}, None), ({"retry-after": "3"}, 3), ({"retry-after": "0"}, 0), ({"retry-after": "1.5"}, 1.5),
     ({"retry-after-ms": "250", "retry-after": "9"}, 0.25), ({"retry-after-ms": "x", "retry-after": "9"}, 9),
     ({"retry-after": "-3"}, None), ({"retry-after": "nan"}, None), ({"retry-after": "9" * 400}, None),
     ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0), ({"retry-after": "Wed, 99 Foo 2015"}, None)],
)  # fmt: skip
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


def test_retry_after_as_a_date() -> None:
    after = retry_after({"retry-after": formatdate(time.time() + 100, usegmt=True)})
    assert after is not None and 95 < after <= 100


@given(st.text())
def test_no_header_breaks_it(value: str) -> None:
    after = retry_after({"retry-after": value, "retry-after-ms": value})
    assert after is None or after >= 0
