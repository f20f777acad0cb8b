"""What a service refuses, as the exception that the same refusal is anywhere else in Ringtrue."""

from __future__ import annotations

import json
from typing import Any

from ringtrue.errors import (
    AccessDenied,
    BadAnswer,
    CannotDecide,
    InputError,
    MissingInput,
    RingtrueError,
    SearchFailed,
    SpecError,
    TimedOut,
    Unreachable,
    ValidationFailed,
)

OF_CODE: dict[str, type[RingtrueError]] = {
    "not_found": MissingInput,
    "invalid_expression": SpecError,
    "invalid_input": InputError,
    "invalid_golden_set": ValidationFailed,
    "cannot_decide": CannotDecide,
    "no_key": AccessDenied,
    "forbidden": AccessDenied,
    "timed_out": TimedOut,
    "in_progress": TimedOut,
    "search_timed_out": TimedOut,
    "search_unreachable": Unreachable,
    "search_denied": AccessDenied,
    "search_answered_wrongly": BadAnswer,
    "search_failed": SearchFailed,
}
"""Codes that say more than the status of the answer does."""
OF_STATUS: dict[int, type[RingtrueError]] = {
    401: AccessDenied, 403: AccessDenied, 404: MissingInput, 408: TimedOut, 429: Unreachable, 504: TimedOut,
}  # fmt: skip
MOST_LETTERS = 2_000


def code_of(body: bytes) -> str | None:
    """Return the code of a refusal; None where the body is not in the service's words."""
    said = _said(body)
    return None if said is None else str(said["code"])


def refusal(status: int, body: bytes, *, who: str, request_id: str | None, key: str | None) -> RingtrueError:
    """Return the exception for an answer that is no success.

    The service's own message is kept and the request id named, under which its log has more; ``key`` is never in it.
    """
    if 300 <= status < 400:
        return InputError(
            f"{who} sends callers elsewhere (HTTP {status}), where a key does not follow; write the final address"
        )
    said = _said(body)
    if said is None:
        kind = OF_STATUS.get(status, Unreachable if status >= 500 else InputError)
        return kind(f"{who} answered HTTP {status}, not in Ringtrue's words; check the address and what stands in front of it")
    kind = OF_CODE.get(str(said["code"])) or OF_STATUS.get(status) or (Unreachable if status >= 500 else InputError)
    return kind(_shown(str(said["message"]), str(said.get("request_id") or request_id or ""), key))


def failure(error: Any, *, what: str) -> RingtrueError:
    """Return the exception for a job that failed, from the error that it ended with."""
    known = error if isinstance(error, dict) else {}
    kind = OF_CODE.get(str(known.get("code")), SearchFailed)
    return kind(_shown(f"{what} failed: {known.get('message', 'without saying why')}", "", None))


def _said(body: bytes) -> dict[str, Any] | None:
    try:
        said = json.loads(body)["error"]
        return said if isinstance(said, dict) and {"code", "message"} <= said.keys() else None
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _shown(message: str, request_id: str, key: str | None) -> str:
    plain = "".join(letter if letter.isprintable() else " " for letter in message[:MOST_LETTERS])
    text = plain.replace(key, "…") if key else plain
    return f"{text} (request {request_id:.64})" if request_id else text
