"""Bounded retries for every provider: exponential with jitter, Retry-After honoured, the SDKs' own retries off."""

from __future__ import annotations

import asyncio
import email.utils
import re
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

_AGAIN = {408, 409, 425, 429, 500, 502, 503, 504, 529}
_KINDS = {400: "bad_request", 401: "auth", 403: "auth", 404: "not_found", 408: "timeout", 422: "bad_request",
          429: "rate_limited"}  # fmt: skip


@dataclass(frozen=True)
class Policy:
    """Bounds of one request: attempts, seconds for each, seconds for all of them together, longest wait."""

    attempts: int = 6
    timeout_s: float = 600.0
    total_s: float = 1800.0
    longest_wait_s: float = 60.0


class Fault(Exception):
    """What went wrong in one attempt, in the retry loop's words."""

    def __init__(self, kind: str, message: str, *, again: bool, after: float | None = None):
        super().__init__(message)
        self.kind, self.again, self.after = kind, again, after


async def with_retries(call: Callable[[], Awaitable[Any]], explain: Callable[[BaseException], Fault], policy: Policy,
                       sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> tuple[Any, int]:  # fmt: skip
    """(result of `call`, retries needed). `explain` turns what it raises into a Fault. Raises ModelError."""
    started = time.monotonic()

    async def once() -> Any:
        try:
            return await asyncio.wait_for(call(), policy.timeout_s)
        except TimeoutError as error:
            raise Fault("timeout", f"no answer within {policy.timeout_s:g} s", again=True) from error
        except Fault:
            raise
        except Exception as error:
            raise explain(error) from error

    attempts = AsyncRetrying(
        retry=retry_if_exception(lambda error: isinstance(error, Fault) and error.again),
        stop=stop_any(stop_after_attempt(policy.attempts), _OutOfTime(started + policy.total_s)),
        wait=_Wait(policy), sleep=sleep, reraise=False,
    )  # fmt: skip
    number = 0
    try:
        async for attempt in attempts:
            with attempt:
                number = attempt.retry_state.attempt_number
                return await once(), number - 1
    except RetryError as error:
        fault = error.last_attempt.exception()
        assert isinstance(fault, Fault)
        raise ModelError(fault.kind, f"{fault} (after {number} attempts)", retries=number - 1) from fault
    except Fault as fault:
        raise ModelError(fault.kind, str(fault), retries=number - 1) from fault
    raise AssertionError("the loop ends by returning or raising")


class _OutOfTime(stop_base):
    """Stops where waiting as long as is due would pass the deadline."""

    def __init__(self, deadline: float):
        self.deadline = deadline

    def __call__(self, state: RetryCallState) -> bool:
        return time.monotonic() + state.upcoming_sleep >= self.deadline


class _Wait(wait_base):
    """The server's Retry-After where it gave one, else exponential with jitter; never longer than the policy allows."""

    def __init__(self, policy: Policy):
        self.longest = policy.longest_wait_s
        self.exponential = wait_random_exponential(multiplier=1, max=policy.longest_wait_s)

    def __call__(self, state: RetryCallState) -> float:
        fault = state.outcome.exception() if state.outcome else None
        after = getattr(fault, "after", None)
        return min(after, self.longest) if after is not None else self.exponential(state)


def retry_after(headers: Any) -> float | None:
    """Seconds that a server asks to wait: `retry-after-ms`, or `Retry-After` as seconds or as an HTTP date (RFC 9110)."""
    if (ms := headers.get("retry-after-ms")) is not None and re.fullmatch(r"\d+(\.\d+)?", ms):
        return float(ms) / 1000
    value = headers.get("retry-after")
    if value is None:
        return None
    if re.fullmatch(r"\d+(\.\d+)?", value):
        return float(value)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError):
        return None


def explain(sdk: Any, error: BaseException) -> Fault:
    """A Fault from an exception of the OpenAI or the Anthropic SDK (`sdk` is the module: the two name theirs alike)."""
    if isinstance(error, sdk.APITimeoutError):
        return Fault("timeout", "the request timed out", again=True)
    if isinstance(error, sdk.APIStatusError):
        status = error.status_code
        kind = _KINDS.get(status, "server_error" if status >= 500 else "bad_request")
        return Fault(
            kind,
            _status_message(error, status),
            again=status in _AGAIN,
            after=retry_after(error.response.headers),
        )
    if isinstance(error, sdk.APIConnectionError):
        return Fault("connection", f"no connection: {error.__cause__ or error}", again=True)
    if isinstance(
        error, (sdk.APIResponseValidationError, ValueError, KeyError, TypeError, AttributeError, IndexError)
    ):
        return Fault(
            "malformed", f"the answer does not parse: {type(error).__name__}: {error}"[:500], again=True
        )
    return Fault("connection", f"{type(error).__name__}: {error}"[:500], again=True)


def _status_message(error: Any, status: int) -> str:
    body = error.body if isinstance(error.body, dict) else {}
    detail = body.get("error", body)
    detail = detail if isinstance(detail, dict) else {"message": str(detail)}
    message = f"HTTP {status}: {detail.get('message') or error.message}"[:1000]
    if param := detail.get("param"):
        message += f" (the parameter {param!r} was refused: leave it out or change it)"
    if status in (401, 403):
        message += " (check the API key)"
    return message
