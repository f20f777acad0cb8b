"""What schemathesis is told about this service: which refusals of a request that fits its schema are right.

A JSON schema says what a field may look like. It cannot say which names exist, that an expression must be readable, that a key
must end later than now, or that one of two fields is needed; who breaks such a rule is told so with 422, and that is right.
What the schema could have said must be accepted: a refusal that blames a field's form is a failure.
"""

from __future__ import annotations

import re
from typing import Any

import schemathesis
from schemathesis.specs.openapi.checks import positive_data_acceptance

FORM = re.compile(r"(body|query|path|header)\b")
WHOLE_FLOAT = re.compile(r"valid integer, not -?\d+(\.0|e\+?\d+)\b", re.IGNORECASE)
"""For a JSON schema 3.0 is an integer; the strict models of this service want 3."""
BY_RULE = (
    "since must be before until",
    "steps of a",
    "cannot read the time",
    "letters of JSON",
    "outside the years",
    "is in the future",
    "invisible characters",
    "differs from the number of result_ids",
    "lasts longer than",
    "needs control and treatment, or a difference",
)
"""Rules about fields that name the field, although no schema can state them."""


def beyond_schema(error: dict[str, Any]) -> bool:
    """True for a refusal by a rule that no schema can state."""
    if error["code"] != "invalid_input" or error["field"] is None or not FORM.match(error["field"]):
        return True
    said = error["message"]
    return WHOLE_FLOAT.search(said) is not None or any(part in said for part in BY_RULE)


@schemathesis.check
def schema_valid_data_acceptance(ctx: Any, response: Any, case: Any) -> bool | None:
    """Like ``positive_data_acceptance``, but for refusals by rules that no schema can state."""
    if response.status_code == 422 and beyond_schema(response.json()["error"]):
        return None
    found: bool | None = positive_data_acceptance(ctx, response, case)
    return found
