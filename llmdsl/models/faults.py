"""What the SDKs raise, in the words of llmdsl: which kind of fault, whether to try again, how long to wait."""

from __future__ import annotations

import email.utils
import re
import time
from typing import Any

from llmdsl.models.retry import Fault

_KINDS = {401: "auth", 402: "quota", 403: "auth", 404: "not_found", 408: "timeout", 409: "server_error",
          425: "server_error", 429: "rate_limited"}  # fmt: skip
_AGAIN = {408, 409, 425, 429}
# What a stream that began with HTTP 200 says when it breaks, as the status it would have had.
_STREAMED = {"invalid_request_error": 400, "authentication_error": 401, "billing_error": 402, "permission_error": 403,
             "not_found_error": 404, "request_too_large": 413, "rate_limit_error": 429}  # fmt: skip
# An account without money is answered 429 too; waiting does not help it.
_QUOTA = {"insufficient_quota", "billing_error", "billing_hard_limit_reached", "credit_balance_too_low"}


def explain(sdk: Any, error: BaseException) -> Fault:
    """A Fault from an exception of the OpenAI or the Anthropic SDK (`sdk` is the module: the two name theirs alike)."""
    if isinstance(error, sdk.APITimeoutError) or "Timeout" in type(error).__name__:
        return Fault("timeout", "the request timed out", again=True)
    if isinstance(error, sdk.APIStatusError):
        return _of_status(error)
    if isinstance(error, sdk.APIConnectionError):
        return Fault("connection", f"no connection: {error.__cause__ or error}", again=True)
    what = f"{type(error).__name__}: {error}"[:500]
    # What parsing a body raises, and (RuntimeError, AssertionError) what the SDKs raise on events out of order.
    if isinstance(error, sdk.APIResponseValidationError | ValueError | LookupError | TypeError | AttributeError
                  | RuntimeError | AssertionError):  # fmt: skip
        return Fault("malformed", f"the answer does not parse: {what}", again=True)
    return Fault("connection", what, again=True)


def retry_after(headers: Any) -> float | None:
    """Seconds that a server asks to wait: `retry-after-ms`, or `Retry-After` as seconds or as an HTTP date (RFC 9110)."""
    number = r"\d{1,9}(\.\d+)?"
    if re.fullmatch(number, ms := headers.get("retry-after-ms") or ""):
        return float(ms) / 1000
    value = headers.get("retry-after") or ""
    if re.fullmatch(number, value):
        return float(value)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None


def _of_status(error: Any) -> Fault:
    body = error.body if isinstance(error.body, dict) else {}
    detail = body.get("error", body)
    detail = detail if isinstance(detail, dict) else {"message": str(detail)}
    status = error.status_code
    if status < 400:
        status = _STREAMED.get(detail.get("type"), 500)
    if _QUOTA & {detail.get("type"), detail.get("code")}:
        status = 402
    kind = _KINDS.get(status, "server_error" if status >= 500 else "bad_request")
    again = status >= 500 or status in _AGAIN
    return Fault(
        kind, _message(error, detail, status), again=again, after=retry_after(error.response.headers)
    )


def _message(error: Any, detail: dict[str, Any], status: int) -> str:
    text = f"HTTP {error.status_code}: {detail.get('message') or error.message}"[:1000]
    if param := detail.get("param"):
        text += f" (the parameter {param!r} was refused: leave it out or change it)"
    if status in (401, 403):
        text += " (check the API key)"
    if status == 402:
        text += " (the account has no credit left)"
    return text
