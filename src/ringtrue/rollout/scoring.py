"""Quality of both sides of a shadow run: C-3 figures for every query, reciprocal rank and nDCG for judged ones."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from ringtrue.errors import InputError
from ringtrue.store import DEFAULT_PROJECT, LoggedQuery, ShadowRun, StoredJudgment, timestamp

if TYPE_CHECKING:
    from ringtrue.records import GoldenSet
    from ringtrue.store import Store


@dataclass(frozen=True, slots=True)
class Scored:
    """How good one list is for one judged query."""

    rr: float
    ndcg: float


Feed = Callable[[str, Scored, Scored], object]
"""Hears of a judged question: its id (``question_id``), production's scores, the candidate's."""


def scorer(
    judged: Mapping[str, Mapping[str, int]], *, rel: int = 1, k: int = 10
) -> Callable[[str, Sequence[str]], Scored | None]:
    """Return a function (query id, ids) → reciprocal rank and nDCG at k; None for a query without a relevant document.

    >>> scorer({"q1": {"a": 3, "b": 1}})("q1", ["b", "a"]).rr
    1.0
    >>> scorer({"q1": {"a": 3}})("q2", ["a"]) is None
    True
    """

    def scored(query_id: str, ids: Sequence[str]) -> Scored | None:
        from ringtrue.measures import score

        grades = judged.get(query_id, {})
        if not any(grade >= rel for grade in grades.values()):
            return None
        found = score({query_id: list(ids)}, {query_id: grades}, [f"RR@{k}", f"nDCG@{k}"], rel=rel).per_query[query_id]
        return Scored(found[f"RR@{k}"], found[f"nDCG@{k}"])

    return scored


def golden_scorer(golden: GoldenSet, *, k: int = 10) -> Callable[[str, Sequence[str]], Scored | None]:
    """Return the scorer of a golden set's judgments, for queries that are logged under its own ids."""
    judged: dict[str, dict[str, int]] = {}
    for judgment in golden.judgments:
        judged.setdefault(judgment.query_id, {})[judgment.doc_id] = judgment.grade
    return scorer(judged, rel=golden.relevance_threshold, k=k)


def grades_of(judgments: Sequence[StoredJudgment]) -> dict[str, dict[str, int]]:
    """Return grades by query and item from judgments of several sources; where they disagree the winning one (F-4)."""
    from ringtrue.feedback.precedence import winning

    by_query: dict[str, list[StoredJudgment]] = {}
    for one in judgments:
        by_query.setdefault(one.query_id, []).append(one)
    return {query_id: {one.item_id: one.relevance for one in winning(said)} for query_id, said in by_query.items()}


def grades_by_words(
    searches: Sequence[LoggedQuery],
    judgments: Sequence[StoredJudgment],
    *,
    golden: GoldenSet | None = None,
    min_confidence: float = 0.0,
) -> dict[str, dict[str, int]]:
    """Return what is known about each search: the grades of its own id, and of all searches with the same words.

    Where a golden set asks the question its judgments come first. Derived judgments below ``min_confidence`` do not count.

    >>> asked = [LoggedQuery(name, "Late checkout?", "web", "2026-03-01T12:00:00Z") for name in ("eq_1", "eq_2")]
    >>> grades_by_words(asked, [StoredJudgment("eq_1", "faq", 2, "implicit", "2026-03-02T12:00:00Z")])
    {'eq_1': {'faq': 2}, 'eq_2': {'faq': 2}}
    """
    from ringtrue.feedback.derive import text_key
    from ringtrue.feedback.precedence import winning_by_words

    key_of = {search.query_id: text_key(search.query) for search in searches}
    known: dict[str, dict[str, int]] = {}
    for (key, item_id), one in winning_by_words(judgments, searches, min_confidence=min_confidence).items():
        known.setdefault(key, {})[item_id] = one.relevance
    if golden is not None:
        words = {query.query_id: text_key(query.text) for query in golden.queries}
        for judgment in golden.judgments:
            if judgment.query_id in words:
                known.setdefault(words[judgment.query_id], {})[judgment.doc_id] = judgment.grade
    return {query_id: known[key] for query_id, key in key_of.items() if key in known}


def feed_for_test(
    store: Store,
    feature_id: str,
    *,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    project: str = DEFAULT_PROJECT,
) -> Feed:
    """Return the feed of a feature's sequential test: reciprocal ranks, or nDCG where the test is of that.

    A question counts once in a test, and once more in one begun anew (``counted_as``). Raises MissingInput where there is no
    such test, and InputError where it is of something else.
    """
    from ringtrue.rollout.abtest import counted_as, found_test, measure_of, record_scores

    measure = measure_of(found_test(store, feature_id, project=project))
    if measure not in ("mrr", "ndcg"):
        raise InputError(f"the test of '{feature_id}' is of {measure or 'differences'}; a shadow run scores mrr or ndcg")

    def feed(query_id: str, control: Scored, treatment: Scored) -> object:
        sides = (control.rr, treatment.rr) if measure == "mrr" else (control.ndcg, treatment.ndcg)
        test = found_test(store, feature_id, project=project)  # it may have been begun anew since this feed was made
        name, now = counted_as(test, query_id), timestamp(clock())
        return record_scores(store, feature_id, name, control=sides[0], treatment=sides[1], now=now, project=project)

    return feed


def feed_judged(
    store: Store,
    feature_id: str,
    feed: Feed,
    *,
    since: str | None = None,
    golden: GoldenSet | None = None,
    min_confidence: float = 0.0,
    rel: int = 1,
    k: int = 10,
    project: str = DEFAULT_PROJECT,
) -> int:
    """Hand the scores of both sides to a test, for every question that has been judged by now; return how many.

    Searches with the same words are one question, whichever of them was judged, and it is told once, with the first of its
    stored rows: the same words again are no new evidence. Judgments of ``golden`` come first, as in ``grades_by_words``.
    Judgments of live queries come after their answers, so this is run again from time to time. A test counts a question once,
    so running it twice changes nothing. Rows without whole lists, and those where the candidate failed, are left out.
    """
    from ringtrue.feedback.derive import question_id

    rows = [
        row
        for row in store.shadow_runs(project=project, feature_id=feature_id, since=since)
        if row.error is None and has_whole_lists(row)
    ]
    if not rows:
        return 0
    searches = store.queries(project=project, query_ids=[row.query_id for row in rows])
    question = {search.query_id: question_id(search.query) for search in searches}
    judged = grades_by_words(searches, store.judgments(project=project), golden=golden, min_confidence=min_confidence)
    scored = scorer(judged, rel=rel, k=k)
    found: dict[str, tuple[Scored, Scored]] = {}
    for row in sorted(rows, key=lambda row: (row.created_at, row.query_id)):
        asked = question.get(row.query_id)
        if asked is None or asked in found:
            continue
        control, treatment = scored(row.query_id, row.control_result_ids), scored(row.query_id, row.treatment_result_ids)
        if control is not None and treatment is not None:
            found[asked] = control, treatment
    for asked in drawn_order(feature_id, found):
        feed(asked, *found[asked])
    return len(found)


def drawn_order(feature_id: str, questions: Iterable[str]) -> list[str]:
    """Return questions in an order that has nothing to do with them: by a hash, another one for every feature.

    A sequential test may stop at any question, so the order must not decide. A file has its questions by topic, by age or by
    document, and the first forty may be those that a candidate is good at.

    >>> drawn_order("multi-vector", ["q1", "q2", "q3"]) == drawn_order("multi-vector", ["q3", "q2", "q1"])
    True
    """
    return sorted(questions, key=lambda question: hashlib.sha256(f"{feature_id}\0{question}".encode()).digest())


def compared(
    row: ShadowRun,
    *,
    k: int,
    scores: tuple[Scored, Scored] | None = None,
    keep: Literal["lists", "difference"] = "lists",
) -> ShadowRun:
    """Return a row with its C-3 figures (production first) and, where both sides are scored, the differences in quality."""
    from ringtrue.stats import ranking_difference

    control, treatment = row.control_result_ids, row.treatment_result_ids
    found = ranking_difference(
        control,
        treatment,
        k=k,
        rr=None if scores is None else (scores[0].rr, scores[1].rr),
        ndcg=None if scores is None else (scores[0].ndcg, scores[1].ndcg),
    )
    if keep == "difference":
        control, treatment = (
            tuple(one for one in control if one not in treatment),
            tuple(one for one in treatment if one not in control),
        )
    return replace(
        row,
        control_result_ids=control,
        treatment_result_ids=treatment,
        rank_correlation=None if math.isnan(found.tau) else found.tau,
        set_overlap=None if math.isnan(found.overlap) else found.overlap,
        top_result_changed=found.top1_changed,
        order_differences=found.order_differences,
        mrr_delta=found.rr_delta,
        ndcg_delta=found.ndcg_delta,
    )


def has_whole_lists(row: ShadowRun) -> bool:
    """Return whether a row holds both lists, not only what one has and the other lacks (``keep='difference'``)."""
    control, treatment = set(row.control_result_ids), set(row.treatment_result_ids)
    if row.set_overlap is None or not control | treatment:
        return False
    return math.isclose(len(control & treatment) / len(control | treatment), row.set_overlap, abs_tol=1e-9)
