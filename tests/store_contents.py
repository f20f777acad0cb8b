"""One of everything that a store keeps, with every field set, and all that a store answers about it."""

from __future__ import annotations

from typing import Any

from ringtrue.answers import JobError, StageLogged
from ringtrue.store import (
    ABTest,
    ApiKey,
    AuditEntry,
    FeedbackEvent,
    Flag,
    HistoryPoint,
    LoggedQuery,
    Reply,
    ReviewItem,
    ShadowRun,
    Store,
    StoredBaseline,
    StoredExperiment,
    StoredGoldenSet,
    StoredJob,
    StoredJudgment,
    StoredRating,
    StoredResult,
    StoredRun,
    TestPoint,
)

NOON = "2026-03-01T12:00:00.000000Z"
LATER = "2026-03-01T12:00:05.250000Z"

FULL_QUERY = LoggedQuery(
    query_id="eq_full", query="Zimmer mit Blick auf den See – 部屋 🏔", tool_name="memory_search", created_at=NOON,
    intent="find", mode="deep", session_id="s1", user_id="u1", result_ids=("d1", "d 2", 'd"3'),
    scores=(0.9, 0.1 + 0.2, -1e-300),
    channel_contributions={"bm25": ("d1", "d 2"), "dense": ('d"3',)}, total_latency_ms=12.75,
    stage_latency_ms={"candidate": 3.5, "fusion": 0.25}, stages=(StageLogged("candidate", 100, 20, 3.5),),
    fusion_weights={"bm25": 0.4, "dense": 0.6}, quality_proxy_score=0.71, trace_id="t1", prompt_id="p1", retriever="f00d",
    fallback="dense timed out", degraded=True, mode_override="quick", token_pressure_level="high", token_pressure_ratio=0.83,
    boost_delta=0.02, extraction_count=4, flags={"multi-vector": {"variant": "b", "share": 0.1}}, is_eval_corpus=True,
    eval_category="semantic-search",
)  # fmt: skip
PLAIN_QUERY = LoggedQuery("eq_plain", "breakfast", "cli", LATER)
EVENT = FeedbackEvent(
    event_id="e1", event_type="selection", session_id="s1", created_at=LATER, query_id="eq_full", item_id="d1",
    rank_in_results=1, actor="person", user_id="u1", metadata={"dwell_ms": 1200},
)  # fmt: skip
JUDGMENT = StoredJudgment(
    query_id="eq_full", item_id="d1", relevance=3, source="manual", created_at=LATER, annotator="ann", confidence=0.9,
    metadata={"round": 2},
)  # fmt: skip
RESULT = StoredResult(
    run_id="r1", run_type="regression", created_at=LATER, query_count=50, feature_id="rerank", golden="hotel 1.2",
    metrics={"nDCG@10": 0.61, "RR@5": 0.5, "R@10": 0.7, "P@3": 0.4}, retriever="f00d", intervals={"nDCG@10": (0.55, 0.67)},
    latency_ms={"p50": 10.0, "mean": 11.5}, control_run_id="r0", deltas={"nDCG@10": 0.01, "RR@5": -0.02}, p_value=0.03,
    is_significant=True, gate="pass", per_query={"q1": {"nDCG@10": 0.5}}, mrr_at_5=0.5, ndcg_at_10=0.61, recall_at_10=0.7,
)  # fmt: skip
SHADOW = ShadowRun(
    query_id="eq_full", feature_id="rerank", created_at=LATER, control_result_ids=("d1", "d 2"),
    treatment_result_ids=("d 2", "d1"), rank_correlation=-1.0, set_overlap=1.0, top_result_changed=True, order_differences=1,
    mrr_delta=-0.5, ndcg_delta=-0.2, control_latency_ms=10.0, treatment_latency_ms=14.5, error="late",
    candidate="cafe",
)  # fmt: skip
TEST = ABTest(
    feature_id="rerank", status="running", alpha=0.05, beta=0.2, delta=0.05, started_at=NOON, updated_at=LATER, method="sprt",
    sigma=0.31, log_likelihood_ratio=0.5, upper_bound=2.77, lower_bound=-1.55, sample_count=2,
    sums={"control_mrr": 1.5, "treatment_mrr": 1.75, "squares": 0.1}, min_samples=200, graduation_threshold=0.02,
    decision="none yet", graduated_at=LATER,
)  # fmt: skip
FLAG = Flag(
    name="rerank", rollout=12.5, shadow=True, min_samples=200, graduation_threshold=0.02, state="paused", stage_since=NOON,
    description="the cross encoder", metadata={"stage": 2},
)  # fmt: skip
AUDIT = AuditEntry(at=LATER, who="ann", what="delete user", subject="u9", detail={"rows": 3})
REVIEW = ReviewItem(
    item_key="eq_full|d1", query_id="eq_full", query="Zimmer mit Blick", doc_id="d1", created_at=NOON, title="Lake", text="…",
    priority=2.5, state="pending_review", wanted=2, reserved_by="bo", reserved_until=LATER, metadata={"why": "top"},
)  # fmt: skip
GOLDEN_SET = StoredGoldenSet(
    name="hotel", version="1.2.0", content={"queries": [{"id": "q1", "text": "Blick auf den See"}], "judgments": []},
    created_at=NOON, fingerprint="beef",
)  # fmt: skip
BASELINE = StoredBaseline(
    name="main", version="1.0.0", content={"format": 1, "metrics": {"nDCG@10": 0.61}}, created_at=NOON, reason="new documents",
)  # fmt: skip
EXPERIMENT = StoredExperiment(
    experiment_id="exp-001", name="wider", created_at=NOON,
    content={"id": "exp-001", "date": "2026-03-01", "description": "wider", "results": {"mrr": 0.7}},
)  # fmt: skip
KEY = ApiKey(
    key_id="key_1", name="dashboard", scopes=("read", "review"), created_at=NOON, expires_at="2027-03-01T12:00:00.000000Z",
    revoked_at=LATER, last_used_at=NOON,
)  # fmt: skip
RUN = StoredRun(run_id="r1", name="hybrid", created_at=LATER, content=bytes(range(256)) * 3)
JOB = StoredJob(
    job_id="job_1", kind="evaluate", state="done", created_at=NOON, updated_at=LATER, who="ann",
    request={"golden": "hotel", "k": 10}, done=50, total=50, says="scoring", result={"nDCG@10": 0.61},
    error=JobError("missing_input", "…"),
)  # fmt: skip
REPLY = Reply(
    key="3f1c", route="POST /v1/feedback", fingerprint="f00d", status=201, body=b'{"added":1}\n\x00\xff', created_at=NOON
)
POINT = TestPoint(feature_id="rerank", sample_count=2, at=LATER, llr=0.5, estimate=0.125, low=-0.25, high=0.5)
HISTORY = [
    HistoryPoint(NOON, "recall_at_k", 0.7, {"k": "10", "golden": 'hotel "1"'}),
    HistoryPoint(LATER, "recall_at_k", 0.75, {"k": "10", "golden": 'hotel "1"'}),
]
TOKEN = "rt_a-token-for-tests"


def fill(store: Store) -> None:
    """Put one of everything into a store."""
    store.add_queries([FULL_QUERY, PLAIN_QUERY])
    store.add_feedback([EVENT])
    store.add_judgments([JUDGMENT])
    store.add_result(RESULT)
    store.add_shadow_runs([SHADOW])
    store.create_test(TEST)
    store.update_test("rerank", "eq_full", lambda test: test, point=lambda test: POINT)
    store.set_flag(FLAG, who="ann", at=NOON, why="first stage")
    store.add_audit(AUDIT)
    store.add_review_items([REVIEW])
    store.add_rating("eq_full|d1", "ann", 2, LATER, note="close")
    store.save_golden_set(GOLDEN_SET)
    store.save_baseline(BASELINE)
    store.add_experiments(lambda taken: [EXPERIMENT])
    store.add_key(KEY, TOKEN)
    store.save_run(RUN)
    store.add_job(JOB)
    store.claim_reply(REPLY)
    store.add_history(HISTORY)


def contents(store: Store) -> dict[str, Any]:
    """Return all that a store answers."""
    return {**answers(store), "counts": store.counts()}


def answers(store: Store) -> dict[str, Any]:
    """Return all that a store answers about the project of these records."""
    return {
        "queries": store.queries(),
        "feedback": store.feedback(),
        "judgments": store.judgments(),
        "results": store.results(),
        "shadow runs": store.shadow_runs(feature_id="rerank"),
        "tests": store.tests(),
        "flags": store.flags(),
        "audit": store.audit(),
        "review items": store.review_items(),
        "ratings": store.ratings(),
        "backlog": store.backlog(),
        "golden sets": [store.golden_set(one.name, one.version) for one in store.golden_sets()],
        "baselines": [store.baseline(one.name, one.version) for one in store.baselines()],
        "experiments": store.experiments(),
        "keys": store.keys(),
        "runs": [store.run(run_id) for run_id in store.run_names()],
        "jobs": store.jobs(),
        "replies": [reply for reply in [store.claim_reply(REPLY)] if reply is not None],
        "history": store.history("recall_at_k"),
        "test points": store.test_points("rerank"),
    }


EXPECTED: dict[str, Any] = {
    "queries": [FULL_QUERY, PLAIN_QUERY],
    "feedback": [EVENT],
    "judgments": [JUDGMENT],
    "results": [RESULT],
    "shadow runs": [SHADOW],
    "tests": [TEST],
    "flags": [FLAG],
    "review items": [REVIEW],
    "ratings": [StoredRating("eq_full|d1", "ann", 2, LATER, "close")],
    "golden sets": [GOLDEN_SET],
    "baselines": [BASELINE],
    "experiments": [EXPERIMENT],
    "keys": [KEY],
    "runs": [RUN],
    "jobs": [JOB],
    "replies": [REPLY],
    "history": HISTORY,
    "test points": [POINT],
}
"""What must come back."""
SINCE = {
    **dict.fromkeys(("golden sets", "baselines", "experiments", "keys"), "0002"),
    **dict.fromkeys(("runs", "jobs", "replies", "history", "test points"), "0004"),
}
"""What the kept databases hold only from a schema on: before, nothing wrote it."""
