"""Every address of the service with the scope it needs and requests that name things: a new route must be entered here.

Texts in braces are filled from a ``Book``: the ids of things that a project has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from starlette.routing import Route

Needs = Literal["read", "write", "review", "admin", "nothing"]
SEARCH = {"query": "pool", "tool_name": "shop", "query_id": "{search}"}
EXPERIMENT = {"id": "{experiment}", "date": "2026-01-31", "description": "ours", "results": {"mrr": 0.5}}


@dataclass(frozen=True)
class Book:
    """The ids of things that a project has."""

    run: str
    golden: str
    version: str
    question: str
    """A query of the golden set and of the run."""
    baseline: str
    job: str
    search: str
    session: str
    event: str
    annotator: str
    review: str
    feature: str
    experiment: str
    key: str
    reply: str

    def filled(self, value: Any) -> Any:
        """Return a value with every text in braces filled in."""
        if isinstance(value, str):
            found = value
            for one in fields(self):
                found = found.replace(f"{{{one.name}}}", getattr(self, one.name))
            return found
        if isinstance(value, Mapping):
            return {key: self.filled(item) for key, item in value.items()}
        return [self.filled(item) for item in value] if isinstance(value, list | tuple) else value


@dataclass(frozen=True)
class Ask:
    """One request to an address."""

    query: Mapping[str, str] | None = None
    json: Any = None
    form: Mapping[str, str] | None = None
    file: str | None = None
    """The content of an uploaded file, as JSON."""
    headers: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Entry:
    """What an address needs, how its path is filled, and what can be asked there."""

    needs: Needs
    path: str
    asks: tuple[Ask, ...] = (Ask(),)


def _read(path: str, *queries: Mapping[str, str]) -> Entry:
    return Entry("read", path, (Ask(), *(Ask(query=query) for query in queries)))


def _send(needs: Needs, path: str, *bodies: Any) -> Entry:
    return Entry(needs, path, tuple(Ask(json=body) for body in bodies) or (Ask(),))


def _form(needs: Needs, path: str, *forms: Mapping[str, str]) -> Entry:
    return Entry(needs, path, tuple(Ask(form=form) for form in forms) or (Ask(form={}),))


_SET = {
    "id": "{golden}",
    "version": "{version}",
    "queries": [{"query_id": "q1", "query_text": "ours", "relevant_docs": [{"doc_id": "d", "grade": 2}]}],
}
REST: dict[str, Entry] = {
    "POST /v1/evaluate": _send(
        "write", "/v1/evaluate", {"golden": "{golden}", "retriever": "bm25"}, {"golden": "{golden}@{version}"}
    ),
    "POST /v1/compare": _send("read", "/v1/compare", {"a": "{run}", "b": "{run}"}),
    "POST /v1/gate": _send("write", "/v1/gate", {"run": "{run}", "baseline": "{baseline}"}, {"run": "{run}", "baseline": None}),
    "GET /v1/runs": _read("/v1/runs", {"cursor": "{run}"}, {"golden": "{golden}"}),
    "POST /v1/runs": Entry("write", "/v1/runs", (Ask(query={"golden": "{golden}"}, json={"{question}": {"d": 1.0}}),)),
    "GET /v1/runs/{run_id}": _read("/v1/runs/{run}"),
    "GET /v1/runs/{run_id}/queries": _read("/v1/runs/{run}/queries", {"cursor": "{question}"}),
    "GET /v1/runs/{run_id}/queries/{query_id:path}": _read("/v1/runs/{run}/queries/{question}"),
    "GET /v1/runs/{run_id}/report": _read(
        "/v1/runs/{run}/report", {"against": "{run}"}, {"baseline": "{baseline}", "format": "json"}
    ),
    "GET /v1/golden": _read("/v1/golden", {"cursor": "{golden}"}),
    "POST /v1/golden": _send("write", "/v1/golden", _SET),
    "POST /v1/golden/shipped": _send("write", "/v1/golden/shipped", {"name": "{golden}"}),
    "GET /v1/golden/{name}": _read("/v1/golden/{golden}", {"content": "true"}),
    "GET /v1/golden/{name}/versions": _read("/v1/golden/{golden}/versions"),
    "GET /v1/golden/{name}/diff": Entry("read", "/v1/golden/{golden}/diff", (Ask(query={"from": "{version}"}),)),
    "GET /v1/golden/{name}/{version}": _read("/v1/golden/{golden}/{version}", {"content": "true"}),
    "GET /v1/baselines": _read("/v1/baselines", {"cursor": "{baseline}"}),
    "POST /v1/baselines": _send("write", "/v1/baselines", {"run": "{run}", "name": "{baseline}"}),
    "GET /v1/baselines/{name}": _read("/v1/baselines/{baseline}"),
    "GET /v1/jobs": _read("/v1/jobs", {"cursor": "{job}"}),
    "GET /v1/jobs/{job_id}": _read("/v1/jobs/{job}"),
    "POST /v1/jobs/{job_id}/cancel": _send("write", "/v1/jobs/{job}/cancel"),
    "GET /v1/jobs/{job_id}/events": _read("/v1/jobs/{job}/events"),
    "POST /v1/search": _send("read", "/v1/search", {"query": "pool", "k": 1, "session_id": "{session}", "log": False}),
    "POST /v1/queries": Entry(
        "write", "/v1/queries", (Ask(json=SEARCH), Ask(json=SEARCH, headers={"Idempotency-Key": "{reply}"}))
    ),
    "GET /v1/queries": _read("/v1/queries", {"cursor": "{search}"}, {"session_id": "{session}"}),
    "GET /v1/queries/stats": _read("/v1/queries/stats"),
    "GET /v1/queries/{query_id:path}": _read("/v1/queries/{search}"),
    "POST /v1/feedback": _send(
        "write",
        "/v1/feedback",
        {"event_type": "click", "session_id": "{session}", "item_id": "d", "event_id": "{event}"},
        {"event_type": "click", "session_id": "ours", "item_id": "d", "query_id": "{search}"},
    ),
    "GET /v1/feedback": _read("/v1/feedback", {"query_id": "{search}"}, {"session_id": "{session}"}),
    "GET /v1/judgments": _read("/v1/judgments", {"query_id": "{search}"}, {"annotator": "{annotator}"}),
    "POST /v1/judgments": _send(
        "write", "/v1/judgments", {"judgments": [{"query_id": "{search}", "item_id": "d", "relevance": 1}]}
    ),
    "DELETE /v1/judgments": Entry(
        "admin",
        "/v1/judgments",
        (Ask(query={"source": "manual", "query_id": "{search}"}), Ask(query={"source": "manual", "annotator": "{annotator}"})),
    ),
    "GET /v1/reviews": _read("/v1/reviews"),
    "GET /v1/reviews/backlog": _read("/v1/reviews/backlog"),
    "GET /v1/reviews/standing": _read("/v1/reviews/standing", {"adjudicator": "{annotator}"}),
    "POST /v1/reviews": _send(
        "write", "/v1/reviews", {"golden": "{golden}", "pairs": [{"query_id": "{search}", "query": "ours", "doc_id": "d"}]}
    ),
    "POST /v1/reviews/next": _send("review", "/v1/reviews/next", {"passing": ["{review}"]}),
    "POST /v1/reviews/undo": _send("review", "/v1/reviews/undo"),
    "POST /v1/reviews/publish": _send("write", "/v1/reviews/publish", {"golden": "{golden}"}),
    "POST /v1/reviews/{key}/judge": _send("review", "/v1/reviews/{review}/judge", {"grade": 0}),
    "POST /v1/reviews/{key}/skip": _send("review", "/v1/reviews/{review}/skip"),
    "POST /v1/reviews/{key}/reject": _send("review", "/v1/reviews/{review}/reject", {"why": "ours"}),
    "GET /v1/shadow": _read("/v1/shadow"),
    "GET /v1/shadow/{feature}": _read("/v1/shadow/{feature}"),
    "POST /v1/shadow/{feature}/runs": _send(
        "write", "/v1/shadow/{feature}/runs", {"runs": [{"query_id": "{search}", "control_result_ids": ["d"]}]}
    ),
    "GET /v1/tests": _read("/v1/tests"),
    "GET /v1/tests/{feature}": _read("/v1/tests/{feature}"),
    "POST /v1/tests/{feature}/record": _send(
        "write", "/v1/tests/{feature}/record", {"scores": [{"query_id": "{search}", "control": 0.1, "treatment": 1}]}
    ),
    "POST /v1/tests/{feature}/status": _send("write", "/v1/tests/{feature}/status", {"status": "paused"}),
    "POST /v1/tests": _send("write", "/v1/tests", {"feature": "{feature}"}),
    "GET /v1/flags": _read("/v1/flags"),
    "GET /v1/flags/{name}": _read("/v1/flags/{feature}"),
    "GET /v1/flags/{name}/variant": Entry("read", "/v1/flags/{feature}/variant", (Ask(query={"identity": "{session}"}),)),
    "POST /v1/flags/{name}/step": _send("write", "/v1/flags/{feature}/step", {}),
    "POST /v1/flags/{name}/rollback": _send("write", "/v1/flags/{feature}/rollback", {"why": "ours"}),
    "PUT /v1/flags/{name}": _send("write", "/v1/flags/{feature}", {"rollout": 5}),
    "GET /v1/experiments": _read("/v1/experiments", {"cursor": "{experiment}"}),
    "GET /v1/experiments/{experiment_id}": _read("/v1/experiments/{experiment}"),
    "POST /v1/experiments": _send("write", "/v1/experiments", {"experiments": [EXPERIMENT]}),
    "GET /v1/health": _read("/v1/health"),
    "GET /v1/diagnostics": Entry("admin", "/v1/diagnostics"),
    "GET /v1/keys": Entry("admin", "/v1/keys"),
    "POST /v1/keys": _send("admin", "/v1/keys", {"name": "{annotator}", "scopes": ["read"]}),
    "DELETE /v1/keys/{key_id}": Entry("admin", "/v1/keys/{key}"),
    "GET /v1/audit": Entry("admin", "/v1/audit", (Ask(), Ask(query={"subject": "{feature}"}))),
    "GET /v1/alerts": _read("/v1/alerts"),
    "GET /v1/alerts/rules": _read("/v1/alerts/rules"),
    "GET /v1/history": Entry(
        "read",
        "/v1/history",
        (
            Ask(query={"series": "ringtrue_retrieval_recall_at_k", "since": "2026-01-01T00:00:00Z"}),
            Ask(query={"series": "ringtrue_retrieval_recall_at_k", "label": "golden={golden}"}),
        ),
    ),
    "GET /metrics": _read("/metrics"),
}
PAGES: dict[str, Entry] = {
    "GET /": _read("/", {"series": "{golden}"}),
    "GET /tests": _read("/tests"),
    "GET /tests/{feature}": _read("/tests/{feature}"),
    "POST /tests/{feature}/status": _form("write", "/tests/{feature}/status", {"to": "paused", "why": "ours"}),
    "GET /flags": _read("/flags"),
    "GET /flags/{name}": _read("/flags/{feature}"),
    "POST /flags/{name}/step": _form("write", "/flags/{feature}/step"),
    "POST /flags/{name}/rollback": _form("write", "/flags/{feature}/rollback", {"why": "ours"}),
    "POST /flags/{name}/resume": _form("write", "/flags/{feature}/resume", {"why": "ours"}),
    "POST /flags/{name}/set": _form("write", "/flags/{feature}/set", {"rollout_percent": "5", "why": "ours"}),
    "POST /flags": _form("write", "/flags", {"name": "{feature}", "why": "ours"}),
    "GET /queries": _read("/queries", {"cursor": "{search}"}, {"session": "{session}"}, {"tool": "{session}"}),
    "GET /queries/{query_id:path}": _read("/queries/{search}"),
    "GET /settings": _read("/settings"),
    "GET /settings/keys": Entry("admin", "/settings/keys"),
    "POST /settings/keys": _form("admin", "/settings/keys", {"name": "{annotator}", "scopes": "read", "days": "1"}),
    "POST /settings/keys/{key_id}/revoke": _form("admin", "/settings/keys/{key}/revoke"),
    "GET /settings/audit": Entry("admin", "/settings/audit"),
    "GET /evaluate": _read("/evaluate", {"golden": "{golden}", "baseline": "{baseline}"}),
    "POST /evaluate": _form("write", "/evaluate", {"golden": "{golden}", "baseline": "{baseline}", "retriever": "bm25"}),
    "GET /jobs": _read("/jobs", {"cursor": "{job}"}),
    "GET /jobs/{job_id}": _read("/jobs/{job}"),
    "GET /jobs/{job_id}/result": _read("/jobs/{job}/result"),
    "POST /jobs/{job_id}/cancel": _form("write", "/jobs/{job}/cancel"),
    "GET /jobs/{job_id}/events": _read("/jobs/{job}/events"),
    "GET /runs": _read("/runs", {"cursor": "{run}"}, {"golden": "{golden}"}),
    "GET /runs/{run_id}": _read("/runs/{run}", {"baseline": "{baseline}"}),
    "POST /runs/{run_id}/baseline": _form("write", "/runs/{run}/baseline", {"name": "{baseline}"}),
    "GET /runs/{run_id}/report": _read("/runs/{run}/report", {"against": "{run}", "baseline": "{baseline}"}),
    "GET /runs/{run_id}/queries": _read("/runs/{run}/queries", {"cursor": "{question}"}),
    "GET /runs/{run_id}/queries/{query_id:path}": _read("/runs/{run}/queries/{question}"),
    "GET /compare": _read("/compare", {"a": "{run}", "b": "{run}"}),
    "GET /compare/query": Entry("read", "/compare/query", (Ask(query={"a": "{run}", "b": "{run}", "q": "{question}"}),)),
    "GET /golden": _read("/golden"),
    "POST /golden": Entry("write", "/golden", (Ask(file="set.json"),)),
    "POST /golden/shipped": _form("write", "/golden/shipped", {"name": "{golden}"}),
    "GET /golden/{name}": _read("/golden/{golden}"),
    "GET /golden/{name}/diff": _read("/golden/{golden}/diff", {"from": "{version}", "to": "{version}"}),
    "GET /golden/{name}/{version}": _read("/golden/{golden}/{version}", {"cursor": "{question}"}),
    "GET /golden/{name}/{version}/download": _read("/golden/{golden}/{version}/download"),
    "GET /golden/{name}/{version}/queries/{query_id:path}": _read("/golden/{golden}/{version}/queries/{question}"),
    "GET /review/agreement": _read("/review/agreement"),
    "GET /review/adjudicate": Entry("review", "/review/adjudicate"),
    "GET /review/adjudicate/{key}": Entry("review", "/review/adjudicate/{review}"),
    "POST /review/adjudicate/undo": _form("review", "/review/adjudicate/undo"),
    "POST /review/adjudicate/{key}": _form("review", "/review/adjudicate/{review}", {"grade": "0"}),
    "GET /review/publish": Entry(
        "write", "/review/publish", (Ask(), Ask(query={"golden": "{golden}", "adjudicator": "{annotator}"}))
    ),
    "POST /review/publish": _form("write", "/review/publish", {"golden": "{golden}", "version": "{version}"}),
    "GET /review": Entry("review", "/review", (Ask(), Ask(query={"pass": "{review}"}))),
    "POST /review/next": _form("review", "/review/next", {"pass": "{review}"}),
    "POST /review/undo": _form("review", "/review/undo"),
    "GET /review/{key}": Entry("review", "/review/{review}"),
    "POST /review/{key}/judge": _form("review", "/review/{review}/judge", {"grade": "0", "note": "ours"}),
    "POST /review/{key}/skip": _form("review", "/review/{review}/skip"),
    "POST /review/{key}/reject": _form("review", "/review/{review}/reject", {"why": "ours"}),
    "GET /backlog": _read("/backlog", {"golden": "{golden}"}),
    "POST /backlog/runs": _form("write", "/backlog/runs", {"run": "{run}"}, {"run": "{run}", "against": "{run}"}),
    "GET /experiments": _read("/experiments", {"cursor": "{experiment}"}),
    "GET /experiments/export.json": _read("/experiments/export.json"),
    "GET /experiments/sweeps/{first_id}": _read("/experiments/sweeps/{experiment}"),
    "GET /experiments/{experiment_id}": _read("/experiments/{experiment}"),
    "POST /session/name": _form("read", "/session/name", {"name": "{annotator}"}),
}
FILES: Mapping[str, Any] = {"set.json": _SET}
OPEN = frozenset(
    {
        "GET /v1/openapi.json",
        "HEAD /v1/openapi.json",
        "GET /login",
        "POST /login",
        "POST /logout",
        "GET /healthz",
        "GET /readyz",
    }
)
"""What needs no key: the document, the probes, and signing in and out, which look at the CSRF token themselves."""
STREAMS = frozenset(name for name in (*REST, *PAGES) if name.endswith("/events"))


def addresses(app: FastAPI) -> Iterator[str]:
    """Yield method and path of every route of an application, however it came there; files under /static are not routes."""
    for context in iter_route_contexts(app.routes):
        route = context.original_route
        if isinstance(route, Route):
            yield from (f"{method} {route.path}" for method in route.methods or ())
        else:
            assert route.path == "/static", f"a new kind of route: {route!r}"  # type: ignore[attr-defined]


def parameters(path: str) -> list[str]:
    """Return the names in braces of a path."""
    return re.findall(r"\{(\w+)", path)
