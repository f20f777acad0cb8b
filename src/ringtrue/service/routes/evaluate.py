"""``/v1/evaluate``: how good is a search on a golden set .

The body is a test set itself, as JSON or YAML, or a JSON object that says what is evaluated. Which of the two it is shows by
its keys: an object without ``queries`` that names only fields of ``EvaluateRequest`` is a request, anything else is a set.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from threading import BoundedSemaphore
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import Field, ValidationError
from pydantic_core import from_json

from ringtrue.answers import Evaluated
from ringtrue.errors import InputError, MissingInput
from ringtrue.golden import UploadLimits, read_upload
from ringtrue.records import GoldenSet
from ringtrue.run import Evaluation
from ringtrue.service import evaluating
from ringtrue.service.auth import Access, Writer
from ringtrue.service.errors import ERRORS, ErrorAnswer, Refused
from ringtrue.service.evaluating import EvaluationPlan, planned
from ringtrue.service.jobs import JobProgress
from ringtrue.service.library import golden_named
from ringtrue.service.middleware import MOST_VALUES
from ringtrue.service.models import Line, Name, Strict
from ringtrue.service.routes.server import STARTED, started
from ringtrue.store import StoredJob

router = APIRouter(prefix="/v1/evaluate", tags=["evaluate"])
Kind = Literal["json", "yaml", "jsonl"]
TYPES: Mapping[str, Kind] = {
    "application/json": "json",
    "application/yaml": "yaml",
    "application/x-yaml": "yaml",
    "text/yaml": "yaml",
    "application/x-ndjson": "jsonl",
    "application/jsonl": "jsonl",
}
"""Content types of uploads → what they hold."""


SEARCH_ERRORS: dict[int | str, dict[str, Any]] = {
    **ERRORS,
    502: {"model": ErrorAnswer, "description": "A connected search system did not answer as it should"},
    504: {"model": ErrorAnswer, "description": "It took too long"},
}
"""For ``responses=`` of routes that ask a search."""


@dataclass(frozen=True)
class Upload:
    """A body as it came, and what it says it is."""

    content: bytes
    kind: str

    def value(self) -> Any:
        """Return what a JSON body holds; raises Refused (400) where it is none."""
        try:
            return from_json(self.content, allow_inf_nan=False)
        except ValueError as problem:
            said = f"the body is not JSON: {problem}; send one JSON value in UTF-8"
            raise Refused(400, "invalid_json", said[:500], field="body") from None


async def upload(request: Request) -> Upload:
    """Return the body of a request by its content type; raises Refused (415) for a type that nothing here reads."""
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return Upload(await request.body(), given)


Body = Annotated[Upload, Depends(upload)]


def kind_of(body: Upload, allowed: tuple[str, ...]) -> Kind:
    """Return what an upload holds; raises Refused (415) for a content type that is not allowed here."""
    kind = TYPES.get(body.kind)
    if kind is None or kind not in allowed:
        types = ", ".join(name for name, one in TYPES.items() if one in allowed)
        raise Refused(415, "unsupported_type", f"content-type '{body.kind:.80}' is not supported; send one of {types}")
    return kind


_READING = BoundedSemaphore(2)
"""The largest that is read takes hundreds of megabytes for a moment; many at once would take all there are."""


_ALIKE = UploadLimits(values=MOST_VALUES)
"""JSON may hold as many values as any request; YAML has bounds of its own."""


def read_set(content: bytes, kind: Kind, *, name: str = "") -> GoldenSet:
    """Return the golden set in an upload; without an id it is named after its file, without a file after its content.

    Raises InputError with place and cure.
    """
    try:
        with _READING:
            return read_upload(content, kind=kind, name=name, limits=_ALIKE if kind in ("json", "jsonl") else None)
    except MissingInput as problem:  # what an upload lacks is wrong with it; nothing that was asked for is missing here
        raise InputError(str(problem)) from None


class EvaluateRequest(Strict):
    """What is evaluated: a golden set, by name or in the request, and a retriever."""

    golden: Name | None = Field(
        None, description="A stored or shipped golden set: `name`, or `name@version`. The server's own unless given."
    )
    test_set: dict[str, Any] | None = Field(None, description="A golden set in the request, in place of `golden`.")
    retriever: Line | None = Field(
        None,
        description="A retriever expression like `rrf(bm25, dense)`; the server's own unless given. Models and connections "
        "only as the server's settings name them.",
    )
    measures: list[Line] = Field(
        [], max_length=evaluating.MOST_MEASURES, description="Like nDCG@10; the usual eight unless given."
    )
    k: int | None = Field(None, ge=1, le=evaluating.MOST_HITS, description="Hits to ask for.")
    split: Literal["all", "tuning", "held_out"] = "all"
    sample: float = Field(1.0, gt=0, le=1, description="Share of the queries.")
    scope: Name | None = Field(None, description="Search only documents with the query's value of this field.")
    failed: Literal["list", "exclude", "zero"] = Field("list", description="Queries without an answer.")
    allow: list[Literal["index", "documents", "cut-off", "ids", "depth"]] = Field(
        [], max_length=5, description="Preconditions that need not hold."
    )
    documents: Literal["own", "served"] | None = Field(
        None, description="Whose documents are searched; the set's own where it brings any, else those that the server serves."
    )
    feature_id: Name | None = Field(
        None, description="The feature that this is a candidate of; its figures are then not production's."
    )
    wait: bool | None = Field(None, description="false answers with a job at once; so does `Prefer: respond-async`.")


FIELDS = frozenset(EvaluateRequest.model_fields)
TEST_SET: dict[str, Any] = {
    "id": "front-desk",
    "version": "1.0.0",
    "entities": [
        {"entity_id": "pool", "title": "Pool", "content": "The indoor pool is open from seven in the morning to ten at night."},
        {
            "entity_id": "parking",
            "title": "Parking",
            "content": "Guests park in the garage below the house for 12 euros a day.",
        },
    ],
    "queries": [
        {
            "query_id": "q1",
            "query_text": "when can I swim",
            "query_type": "paraphrase",
            "expected_results": {"relevant_entities": ["pool"], "relevance_labels": {"pool": 3}},
        },
        {
            "query_id": "q2",
            "query_text": "price of the garage",
            "query_type": "exact_term",
            "expected_results": {"relevant_entities": ["parking"], "relevance_labels": {"parking": 3}},
        },
    ],
}
TEST_SET_YAML = """\
id: swimming
version: 1.0.0
queries:
  - query_id: q1
    query_text: how warm is the water in the pool
    query_type: paraphrase
    relevant_docs:
      - {doc_id: entity-pool-page, grade: 3}
"""
EXAMPLES: dict[str, Any] = {
    "stored": {
        "summary": "A stored or shipped set",
        "value": {"golden": "hotel", "retriever": "bm25", "measures": ["R@10", "nDCG@10", "RR"]},
    },
    "uploaded": {"summary": "A test set with its documents", "value": TEST_SET},
    "wrapped": {"summary": "A test set and how it is asked", "value": {"test_set": TEST_SET, "retriever": "bm25", "k": 20}},
    "job": {"summary": "As a job", "value": {"golden": "hotel", "retriever": "bm25", "sample": 0.5, "wait": False}},
}


def request_body(*, examples: Mapping[str, Any], model: type[Strict] | None, types: tuple[str, ...]) -> dict[str, Any]:
    """Return the part of the OpenAPI document that tells what a route with a free body reads."""
    anything: dict[str, Any] = {"type": "object", "title": "Golden set", "additionalProperties": True}
    schema = anything if model is None else {"anyOf": [model.model_json_schema(), {**anything, "required": ["queries"]}]}
    content: dict[str, Any] = {"application/json": {"schema": schema, "examples": dict(examples)}}
    for name in types:
        content[name] = {"schema": {"type": "string", "format": "binary"}}
    return {"requestBody": {"required": True, "content": content}}


BODY = request_body(examples=EXAMPLES, model=EvaluateRequest, types=("application/yaml",))
BODY["requestBody"]["content"]["application/yaml"] = {"schema": {"type": "string"}, "example": TEST_SET_YAML}


@router.post("", response_model=Evaluated, responses={**STARTED, **SEARCH_ERRORS}, openapi_extra=BODY)
def evaluate(
    access: Writer,
    body: Body,
    components: Annotated[
        str | None, Query(max_length=500, description="Only these channels of the retriever, such as `bm25` or `bm25,dense`.")
    ] = None,
    prefer: Annotated[str | None, Header(max_length=200, description="`respond-async` answers with a job at once.")] = None,
) -> Evaluated | JSONResponse:
    """Evaluate a retriever on a golden set that is stored, shipped or sent along.

    Small sets are answered at once; larger ones, and those asked for so, become a job with progress and cancel. Every
    evaluation is kept and listed by `/v1/runs`.
    """
    wanted, asked = read_request(access, body)
    if components is not None:
        names = tuple(name.strip() for name in components.split(",") if name.strip())
        if not names:
            raise Refused(
                422, "unknown_channel", "components names no channel; write ?components=bm25", field="query.components"
            )
        wanted = replace(wanted, components=names)
    plan = planned(access.service, wanted)
    later = asked is False or (prefer is not None and "respond-async" in prefer.lower())
    if not later and plan.at_once(access.service.settings.at_once):
        return _answered(access, plan, evaluating.evaluated(access.service, plan))
    return started(start_evaluation(access, plan))


def start_evaluation(access: Access, plan: EvaluationPlan) -> StoredJob:
    """Carry a plan out as a job, whose result names the run."""

    def work(progress: JobProgress) -> dict[str, Any]:
        found = evaluating.evaluated(access.service, plan, watcher=progress.watcher())
        progress.check()
        said = _answered(access, plan, found)
        return {"run_id": said.run_id, "location": f"/v1/runs/{said.run_id}", "metrics": said.metrics}

    return access.service.jobs.start("evaluate", access.caller, plan.record(), work)


def _answered(access: Writer, plan: EvaluationPlan, found: Evaluation) -> Evaluated:
    return evaluating.answered(access, found, feature_id=plan.feature_id, uploaded=plan.uploaded)


def read_request(access: Writer, body: Upload) -> tuple[EvaluationPlan, bool | None]:
    """Return what a body asks to be evaluated, and whether its sender wants to wait."""
    kind = kind_of(body, ("json", "yaml"))
    if kind == "yaml":
        return EvaluationPlan(read_set(body.content, "yaml"), uploaded=True), None
    value = body.value()
    if (
        isinstance(value, dict)
        and "queries" not in value
        and (not value.keys() - FIELDS or value.keys() & {"golden", "test_set"})
    ):
        request = _checked(value)
        return wanted_of(access, request), request.wait
    return EvaluationPlan(read_set(body.content, "json"), uploaded=True), None


def _checked(value: dict[str, Any]) -> EvaluateRequest:
    try:
        return EvaluateRequest.model_validate(value)
    except ValidationError as problem:
        raise RequestValidationError([{**one, "loc": ("body", *one["loc"])} for one in problem.errors()]) from None


def wanted_of(access: Writer, request: EvaluateRequest) -> EvaluationPlan:
    """Return what a request asks to be evaluated; raises MissingInput, InputError and Refused."""
    if request.golden is not None and request.test_set is not None:
        raise InputError("golden and test_set both name the golden set; give one of them")
    if request.test_set is not None:
        golden = read_set(json.dumps(request.test_set).encode(), "json")
    else:
        golden = golden_named(access, request.golden)
    options = request.model_dump(include={"k", "split", "sample", "scope", "failed", "allow"})
    own: dict[str, Any] = request.model_dump(include={"retriever", "documents", "feature_id"})
    uploaded = request.test_set is not None
    return EvaluationPlan(golden, measures=tuple(request.measures), options=options, uploaded=uploaded, **own)
