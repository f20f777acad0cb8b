"""Every route of the service has a method of ``ringtrue.Client``; each is called against a running server."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ringtrue import CannotDecide, Client, MissingInput, load
from ringtrue.client import Job
from ringtrue.client.resources import Resource
from ringtrue.service.routes.evaluate import TEST_SET, TEST_SET_YAML
from running_service import Served
from running_service import served as served

FAST = ["R@10", "nDCG@10", "RR"]
GROUPS = (Client, *Resource.__subclasses__())
WITHOUT: dict[tuple[str, str], str] = {("get", "/v1/jobs/{job_id}/events"): "the client asks for the job itself"}
"""Operations without a method, each with the reason."""


@dataclass
class Drive:
    """What was seen when every method was called once."""

    requests: set[tuple[str, str]] = field(default_factory=set)
    called: set[str] = field(default_factory=set)
    document: dict[str, Any] = field(default_factory=dict)
    found: dict[str, Any] = field(default_factory=dict)


def methods() -> Iterator[tuple[type, str]]:
    for kind in GROUPS:
        for name, value in vars(kind).items():
            if callable(value) and not name.startswith("_"):
                yield kind, name


@pytest.fixture(scope="module")
def driven(served: Served) -> Drive:
    """Call every method of the client once, in an order in which each has something to answer."""
    drive = Drive()
    with pytest.MonkeyPatch.context() as patched, Client(served.url) as service:
        for kind, name in methods():
            patched.setattr(kind, name, _noted(drive, f"{kind.__name__}.{name}", getattr(kind, name)))
        http = service._wire._http._pool
        http.event_hooks = {"request": [lambda request: drive.requests.add((request.method.lower(), request.url.path))]}
        for part in (_sets, _runs, _log, _reviews, _rollout, _monitoring, _keys):
            part(service, drive.found)
        drive.document = dict(service.openapi())
    return drive


def _noted(drive: Drive, name: str, method: Any) -> Any:
    @functools.wraps(method)
    def called(*given: Any, **options: Any) -> Any:
        drive.called.add(name)
        return method(*given, **options)

    return called


def _sets(service: Client, found: dict[str, Any]) -> None:
    found["kept"] = service.golden.keep_shipped("hotel")
    found["uploaded"] = service.golden.upload(TEST_SET)
    changed = {**TEST_SET, "version": "1.1.0", "queries": TEST_SET["queries"][:1]}
    service.golden.upload(changed)
    service.golden.upload(TEST_SET_YAML.encode(), kind="yaml")
    found["sets"] = list(service.golden.list())
    found["versions"] = list(service.golden.versions("front-desk"))
    found["whole"] = service.golden.get("front-desk", "1.0.0", content=True)
    found["last"] = service.golden.get("front-desk")
    found["diff"] = service.golden.diff("front-desk", "1.0.0")


def _runs(service: Client, found: dict[str, Any]) -> None:
    told: list[Job] = []
    found["at once"] = service.evaluate(TEST_SET, retriever="bm25")
    found["as a job"] = service.evaluate(
        golden="hotel", retriever="bm25", components=["bm25"], measures=FAST, on_progress=told.append
    )
    found["progress"] = told
    job = service.evaluate(golden="hotel", retriever="bm25", measures=FAST, wait=False)
    found["job"] = job
    service.jobs.cancel(job.job_id)
    found["watched"] = list(service.jobs.watch(job.job_id))
    found["ended"] = service.jobs.get(job.job_id)
    try:
        service.jobs.wait(job.job_id)
    except CannotDecide as problem:
        found["cancelled"] = problem
    found["jobs"] = list(service.jobs.list())
    run_id = found["as a job"].run_id
    best = {query: {doc: float(grade) for doc, grade in row.items()} for query, row in load("hotel").qrels.to_dict().items()}
    found["other"] = service.upload_run(best, golden="hotel", name="elsewhere", measures=FAST, allow=["depth"])
    found["runs"] = list(service.runs(golden="hotel"))
    found["run"] = service.run(run_id)
    found["queries"] = list(service.run_queries(run_id, sort="worst"))
    found["query"] = service.query(run_id, found["queries"][0].query_id)
    found["report"] = service.report(run_id, format="md")
    found["compared"] = service.compare(run_id, run_id, by=["query_type"])
    found["updated"] = service.baselines.update("search", run_id)
    found["baselines"] = list(service.baselines.list())
    found["baseline"] = service.baselines.get("search")
    found["gated"] = service.gate(run_id, baseline="search", policy={"floors": {"R@10": 0.1}, "latency": {}})
    low = {"floors": {"R@10": 0.1}, "latency": {}}
    found["gated as a job"] = service.gate(
        baseline=None, evaluate={"golden": "hotel", "retriever": "bm25"}, policy=low | {"require_baseline": False}
    )


def _log(service: Client, found: dict[str, Any]) -> None:
    found["search"] = service.search("late checkout", k=3, explain=True, session_id="s-0")
    found["logged"] = service.log(
        "pool opening hours", tool_name="app", session_id="s-1", result_ids=["d1", "d2"], scores=[2.0, 1.0],
        total_latency_ms=12.5, stages=[{"name": "bm25", "input": 10, "output": 2, "ms": 3.5}],
    )  # fmt: skip
    found["many"] = service.log_many({"query": f"question {number}", "tool_name": "app"} for number in range(1_205))
    with service.queries.background() as log:
        log.log("in the background", tool_name="behind", query_id="eq_behind")
    found["behind"] = service.queries.get("eq_behind")
    found["listed"] = [search.query_id for search in service.queries.list(tool="app")]
    found["one"] = service.queries.get(found["logged"])
    found["stats"] = service.queries.stats()
    found["click"] = service.feedback.send("click", session_id="s-1", item_id="d2", query_id=found["logged"], actor="person")
    found["clicks"] = service.feedback.send_many(
        [{"event_type": "dwell", "session_id": "s-1", "item_id": "d1", "metadata": {"seconds": 40}}]
    )
    found["events"] = list(service.feedback.list(session_id="s-1"))
    found["judged"] = service.judgments.add(found["logged"], "d2", 3, note="says it", annotator="ada")
    service.judgments.add_many([{"query_id": found["logged"], "item_id": "d1", "relevance": 0, "annotator": "bo"}])
    found["judgments"] = list(service.judgments.list(query_id=found["logged"]))
    found["deleted"] = service.judgments.delete("manual", annotator="bo")


def _reviews(service: Client, found: dict[str, Any]) -> None:
    pairs = [
        {"query_id": "q1", "query": "when can I swim", "doc_id": name, "title": name, "text": "words", "priority": number}
        for number, name in enumerate(["pool", "parking", "bar"])
    ]
    found["pairs"] = service.reviews.add(pairs, golden="front-desk")
    found["next"] = first = service.reviews.next()
    service.reviews.judge(first.pair.key, 1)
    found["undone"] = service.reviews.undo()
    service.reviews.skip(first.pair.key)
    found["passed"] = second = service.reviews.next(passing=[first.pair.key], minutes=5)
    found["graded"] = service.reviews.judge(second.pair.key, 2, note="in part")
    service.reviews.reject(first.pair.key, why="no document")
    found["rejected"] = list(service.reviews.list(state="rejected"))
    found["backlog"] = service.reviews.backlog()
    found["standing"] = service.reviews.standing()
    found["published"] = service.reviews.publish("front-desk")


def _rollout(service: Client, found: dict[str, Any]) -> None:
    found["set"] = service.flags.set("rerank", shadow=True, min_samples=5, why="a first look")
    found["shadowed"] = service.shadow.record(
        "rerank",
        [
            {"query_id": found["logged"], "control_result_ids": ["d1", "d2"], "treatment_result_ids": ["d2", "d1"]},
            {"query_id": "eq_gone", "control_result_ids": ["d1"], "error": "timed out"},
        ],
    )
    found["shadows"] = service.shadow.list()
    found["shadow"] = service.shadow.get("rerank", limit=5)
    found["started"] = service.tests.start("rerank", method="confidence-sequence", min_samples=5)
    found["recorded"] = service.tests.record(
        "rerank", [{"query_id": f"q{number}", "control": 0.5, "treatment": 1.0} for number in range(3)]
    )
    found["test"] = service.tests.get("rerank")
    found["tests"] = service.tests.list()
    found["paused"] = service.tests.set_status("rerank", "paused", why="the index is being rebuilt")
    found["flags"] = service.flags.list()
    found["flag"] = service.flags.get("rerank")
    found["step"] = service.flags.step("rerank")
    found["variant"] = service.flags.variant("rerank", "guest-1")
    found["back"] = service.flags.roll_back("rerank", why="a try")
    row = {"date": "2026-01-31", "description": "smaller chunks", "results": {"mrr": 0.71}, "author": "ada"}
    found["experiments"] = service.experiments.add([row])
    found["tried"] = list(service.experiments.list())
    found["experiment"] = service.experiments.get(found["experiments"][0].id)


def _monitoring(service: Client, found: dict[str, Any]) -> None:
    found["health"] = service.health()
    found["diagnostics"] = service.diagnostics()
    found["metrics"] = service.metrics_text()
    found["alerts"] = service.alerts()
    found["rules"] = service.alert_rules()
    found["history"] = service.history("ringtrue_retrieval_recall_at_k", labels={"k": "10"})


def _keys(service: Client, found: dict[str, Any]) -> None:
    found["key"] = made = service.keys.create("ci", ["read"])
    found["keys"] = service.keys.list()
    found["revoked"] = service.keys.revoke(made.key_id)
    found["audit"] = list(service.keys.audit(subject=made.key_id))


def operations(document: dict[str, Any]) -> dict[tuple[str, str], re.Pattern[str]]:
    """Return every operation of an OpenAPI document with what its addresses look like, fixed parts before open ones."""
    paths = sorted(document["paths"], key=lambda path: (path.count("{"), path))
    return {
        (method, path): re.compile(re.sub(r"\\\{[^}]*\\\}", "[^/]+", re.escape(path)))
        for path in paths
        for method in document["paths"][path]
        if method in ("get", "put", "post", "delete", "patch")
    }


def test_no_route_is_without_a_method(driven: Drive) -> None:
    known = operations(driven.document)
    reached = set()
    for method, path in driven.requests - {("get", "/v1/openapi.json")}:
        fitting = [name for name, shape in known.items() if name[0] == method and shape.fullmatch(path)]
        assert fitting, f"the client asks {method} {path}, which is not a route"
        reached.add(fitting[0])
    assert known.keys() - reached == set(WITHOUT)


def test_every_method_was_driven(driven: Drive) -> None:
    assert {f"{kind.__name__}.{name}" for kind, name in methods()} - driven.called == set()


def test_the_page_of_the_client_names_every_method() -> None:
    page = (Path(__file__).parents[3] / "docs" / "client.md").read_text(encoding="utf-8")
    named = set(re.findall(r"\b([a-z_]+)\(", page))
    assert {name for kind, name in methods() if kind is not Client or name != "close"} - named == set()


def test_evaluations_come_back_whole_however_they_were_made(driven: Drive) -> None:
    found = driven.found
    assert found["at once"].golden == "front-desk-v1.0.0"
    assert found["at once"].per_query_type["exact_term"]["recall_at_10"] == 1.0
    job = found["as a job"]
    assert (job.golden, set(job.metrics)) == ("hotel-v1.0.0", {"recall_at_10", "ndcg_at_10", "mrr"})
    assert found["run"].evaluation == job
    assert [told.state for told in found["progress"]][-1] == "done"
    assert max(told.done for told in found["progress"]) > 0
    assert {run.run_id for run in found["runs"]} >= {job.run_id, found["other"].run_id}
    assert found["query"].query_id == found["queries"][0].query_id
    assert found["report"].startswith("#")


def test_a_cancelled_job_has_no_result(driven: Drive) -> None:
    found = driven.found
    assert found["ended"].state in ("cancelled", "done")
    assert found["watched"][-1] == found["ended"]
    assert ("cancelled" in found) == (found["ended"].state == "cancelled")
    assert found["job"].job_id in {job.job_id for job in found["jobs"]}


def test_verdicts(driven: Drive) -> None:
    found = driven.found
    assert found["compared"].verdict == "not enough evidence"
    assert found["compared"].measures["ndcg_at_10"].diff == 0
    assert set(found["compared"].slices) == {"query_type"}
    assert (found["gated"].verdict, found["gated"].baseline) == ("pass", found["baseline"].version)
    assert found["gated as a job"].verdict == "pass"
    assert [one.name for one in found["baselines"]] == ["search"]


def test_golden_sets(driven: Drive) -> None:
    found = driven.found
    assert {one.name for one in found["sets"]} >= {"hotel", "front-desk", "swimming"}
    assert [one.version for one in found["versions"]] == ["1.1.0", "1.0.0"]
    assert (found["whole"].content or {})["queries"]
    assert (found["last"].version, found["last"].content) == ("1.1.0", None)
    assert found["diff"].queries.removed == ("q2",)


def test_lists_go_on_over_pages(driven: Drive) -> None:
    found = driven.found
    assert (found["many"].accepted, found["many"].stored, len(found["many"].query_ids)) == (1_205, 1_205, 1_205)
    assert sorted(found["listed"]) == sorted({*found["many"].query_ids, found["logged"]})


def test_log_and_feedback(driven: Drive) -> None:
    found = driven.found
    assert (found["one"].query, found["one"].stages[0].output) == ("pool opening hours", 2)
    assert (found["click"].query_id, found["click"].rank_in_results) == (found["logged"], 2)
    assert {event.event_type for event in found["events"]} == {"click", "dwell"}
    assert (found["judged"].relevance, found["deleted"]) == (3, 1)
    assert len(found["search"].hits) == 3
    assert found["search"].hits[0].stages
    assert found["stats"].searches >= 1_206


def test_reviews(driven: Drive) -> None:
    found = driven.found
    assert found["next"].pair.doc_id == "bar"
    assert found["undone"].key == found["next"].pair.key
    assert found["passed"].pair.doc_id == "parking"
    assert [pair.doc_id for pair in found["rejected"]] == ["bar"]
    assert (found["backlog"].approved, found["backlog"].pending_review) == (1, 1)
    assert found["published"].golden == "front-desk"


def test_rollout(driven: Drive) -> None:
    found = driven.found
    assert (found["set"].shadow, found["shadowed"].stored) == (True, 2)
    assert found["shadow"].runs[0].query_id in {"eq_gone", found["logged"]}
    assert (found["recorded"].counted, found["test"].samples) == (3, 3)
    assert found["test"].points
    assert found["paused"].status == "paused"
    assert found["step"].action in ("wait", "done", "reject")
    assert (found["variant"].on, found["back"].rollout) == (False, 0.0)
    assert found["experiment"].other == {"author": "ada"}
    assert found["tried"] == list(found["experiments"])


def test_monitoring(driven: Drive) -> None:
    found = driven.found
    assert found["health"].project == "default"
    assert found["diagnostics"].database == "sqlite"
    assert 'ringtrue_store_up{project="default"} 1.0' in found["metrics"]
    assert "groups:" in found["rules"]
    assert found["alerts"].rules
    assert found["history"].series == "ringtrue_retrieval_recall_at_k"


def test_a_token_does_not_show_where_the_key_is_printed(driven: Drive) -> None:
    made = driven.found["key"]
    assert made.token.startswith("rt_")
    assert made.token not in repr(made)
    assert driven.found["revoked"].revoked_at is not None
    assert driven.found["audit"]


def test_what_is_not_there_is_missing_input_with_the_request_id(served: Served) -> None:
    with Client(served.url) as service, pytest.raises(MissingInput, match=r"no run 'none'.*\(request [0-9a-f]{8}-[0-9a-f]+\)"):
        service.run("none")
