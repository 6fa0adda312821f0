"""Bounded retries for every provider: exponential with jitter, Retry-After honoured, the SDKs' own retries off."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    RetryError,
    retry_if_exception,
    stop_after_attempt,
    stop_any,
)
from tenacity.stop import stop_base
from tenacity.wait import wait_base, wait_random_exponential

from llmdsl.models.base import ModelError


@dataclass(frozen=True)
class Policy:
    """Bounds of one request: tries, seconds for each, seconds for all and the waits between, longest wait of ours.

    A server's Retry-After may be longer than `longest_wait_s`; one that would pass `total_s` ends the request.
    """

    attempts: int = 6
    timeout_s: float = 600.0
    total_s: float = 1800.0
    longest_wait_s: float = 60.0


class Fault(Exception):
    """What went wrong in one try, in the retry loop's words; `after` are the seconds the server asks to wait."""

    def __init__(self, kind: str, message: str, *, again: bool, after: float | None = None):
        super().__init__(message)
        self.kind, self.again, self.after = kind, again, after


async def with_retries(call: Callable[[], Awaitable[Any]], explain: Callable[[BaseException], Fault], policy: Policy,
                       sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> tuple[Any, int]:  # fmt: skip
    """(result of `call`, retries needed). `explain` turns what it raises into a Fault. Raises ModelError."""
    deadline = time.monotonic() + policy.total_s
    attempts = AsyncRetrying(
        retry=retry_if_exception(lambda error: isinstance(error, Fault) and error.again),
        stop=stop_any(stop_after_attempt(policy.attempts), _OutOfTime(deadline)),
        wait=_Wait(policy), sleep=sleep, reraise=False,
    )  # fmt: skip
    number = 0
    try:
        async for attempt in attempts:
            with attempt:
                number = attempt.retry_state.attempt_number
                limit = min(policy.timeout_s, max(deadline - time.monotonic(), 1e-3))
                return await _once(call, explain, limit), number - 1
    except RetryError as error:
        fault = error.last_attempt.exception()
        assert isinstance(fault, Fault)
        asked = f", and it asks to wait {fault.after:g} s" if fault.after else ""
        tries = "1 try" if number == 1 else f"{number} tries"
        raise ModelError(fault.kind, f"{fault} (after {tries}{asked})", retries=number - 1) from fault
    except Fault as fault:
        raise ModelError(fault.kind, str(fault), retries=number - 1) from fault
    raise AssertionError("the loop ends by returning or raising")


async def _once(
    call: Callable[[], Awaitable[Any]], explain: Callable[[BaseException], Fault], limit: float
) -> Any:
    try:
        return await asyncio.wait_for(call(), limit)
    except TimeoutError as error:
        raise Fault("timeout", f"no answer within {limit:.3g} s", again=True) from error
    except Fault:
        raise
    except Exception as error:
        raise explain(error) from error


class _OutOfTime(stop_base):
    """Stops where waiting as long as is due would pass the deadline."""

    def __init__(self, deadline: float):
        self.deadline = deadline

    def __call__(self, state: RetryCallState) -> bool:
        return time.monotonic() + state.upcoming_sleep >= self.deadline


class _Wait(wait_base):
    """The server's Retry-After where it gave one, else exponential with jitter."""

    def __init__(self, policy: Policy):
        self.exponential = wait_random_exponential(multiplier=1, max=policy.longest_wait_s)

    def __call__(self, state: RetryCallState) -> float:
        fault = state.outcome.exception() if state.outcome else None
        after = getattr(fault, "after", None)
        return after if after is not None else self.exponential(state)
