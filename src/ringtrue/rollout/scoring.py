"""Quality of production and candidate: figures of shadow runs, scores of judged queries, and evaluations in the store.

Two evaluations of one golden set, production's and a candidate's, become shadow runs and a pair of stored results, which health
and graduation read.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from ringtrue.answers import ShadowSummary
from ringtrue.errors import CannotDecide, InputError
from ringtrue.feedback import question_id, text_key, winning_by_words
from ringtrue.golden import version_name
from ringtrue.measures import Facts, score
from ringtrue.records import GoldenSet
from ringtrue.rollout.abtest import counted_as, found_test, measure_of, record_scores
from ringtrue.rollout.evidence import ON_GOLDEN, Feed, Scored, both, compared, shadow_of
from ringtrue.run import FIGURES, Evaluation, packed
from ringtrue.store import (
    DEFAULT_PROJECT,
    Flag,
    LoggedQuery,
    RunType,
    ShadowRun,
    Store,
    StoredJudgment,
    StoredResult,
    StoredRun,
    timestamp,
)
from ringtrue.verdict import Comparison, Verdict, compare


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
        grades = judged.get(query_id, {})
        if not any(grade >= rel for grade in grades.values()):
            return None
        found = score({query_id: list(ids)}, {query_id: grades}, [f"RR@{k}", f"nDCG@{k}"], rel=rel)
        return _of(found.per_query[query_id], k)

    return scored


def _of(values: Mapping[str, float], k: int) -> Scored:
    return Scored(values[f"RR@{k}"], values[f"nDCG@{k}"])


def golden_scorer(golden: GoldenSet, *, k: int = 10) -> Callable[[str, Sequence[str]], Scored | None]:
    """Return the scorer of a golden set's judgments, for queries that are logged under its own ids."""
    judged: dict[str, dict[str, int]] = {}
    for judgment in golden.judgments:
        judged.setdefault(judgment.query_id, {})[judgment.doc_id] = judgment.grade
    return scorer(judged, rel=golden.relevance_threshold, k=k)


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

    A question counts once in a test, and once more in one begun anew (``counted_as``). Raises MissingInput if there is no
    such test, and InputError if it is of something else.
    """
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
    stored rows: the same words again are not new evidence. Judgments of ``golden`` come first, as in ``grades_by_words``.
    Judgments of live queries come after their answers, so this is run again from time to time. A test counts a question once,
    so running it twice changes nothing. Rows without whole lists, and those where the candidate failed, are left out.
    """
    rows = store.shadow_runs(project=project, feature_id=feature_id, since=since)
    rows.sort(key=lambda row: (row.created_at, row.query_id))
    judged = _judged_pairs(store, rows, golden=golden, min_confidence=min_confidence, rel=rel, k=k, project=project)
    found: dict[str, tuple[Scored, Scored]] = {}
    for text, _, scores in judged:
        found.setdefault(question_id(text), scores)
    for asked in drawn_order(feature_id, found):
        feed(asked, *found[asked])
    return len(found)


def _judged_pairs(
    store: Store,
    rows: Sequence[ShadowRun],
    *,
    golden: GoldenSet | None = None,
    min_confidence: float = 0.0,
    rel: int = 1,
    k: int = 10,
    project: str = DEFAULT_PROJECT,
) -> list[tuple[str, int, tuple[Scored, Scored]]]:
    """Return what was asked, the place of the row and both sides' scores, for rows with whole lists that are judged by now."""
    whole = {str(place): row for place, row in enumerate(rows) if row.error is None and has_whole_lists(row)}
    searches = store.queries(project=project, query_ids=[row.query_id for row in whole.values()]) if whole else []
    texts = {search.query_id: search.query for search in searches}
    known = grades_by_words(searches, store.judgments(project=project), golden=golden, min_confidence=min_confidence)
    grades = {key: known.get(row.query_id, {}) for key, row in whole.items()}
    grades = {key: found for key, found in grades.items() if any(grade >= rel for grade in found.values())}
    if not grades:
        return []
    before, after = (
        score({key: list(getattr(whole[key], side)) for key in grades}, grades, [f"RR@{k}", f"nDCG@{k}"], rel=rel).per_query
        for side in ("control_result_ids", "treatment_result_ids")
    )
    return [(texts[whole[key].query_id], int(key), (_of(before[key], k), _of(after[key], k))) for key in grades]


def judged_shadow_of(store: Store, flag: Flag) -> ShadowSummary:
    """Return ``shadow_of`` with searches that were judged after they were stored; it reads the log and the judgments."""
    return shadow_of(store, flag, scored=lambda rows: judged_by_now(store, rows, project=flag.project))


def judged_by_now(store: Store, rows: Sequence[ShadowRun], *, k: int = 10, project: str = DEFAULT_PROJECT) -> list[ShadowRun]:
    """Return stored rows with the differences in quality of those whose words were judged after they were stored."""
    found = list(rows)
    late = [place for place, row in enumerate(rows) if row.mrr_delta is None]
    for _, number, (before, after) in _judged_pairs(store, [rows[place] for place in late], k=k, project=project):
        row = rows[late[number]]
        found[late[number]] = replace(row, mrr_delta=after.rr - before.rr, ndcg_delta=after.ndcg - before.ndcg)
    return found


def drawn_order(feature_id: str, questions: Iterable[str]) -> list[str]:
    """Return questions in an order that has nothing to do with them: by a hash, another one for every feature.

    A sequential test may stop at any question, so the order must not decide. A file has its questions by topic, by age or by
    document, and the first forty may be those that a candidate is good at.

    >>> drawn_order("multi-vector", ["q1", "q2", "q3"]) == drawn_order("multi-vector", ["q3", "q2", "q1"])
    True
    """
    return sorted(questions, key=lambda question: hashlib.sha256(f"{feature_id}\0{question}".encode()).digest())


def has_whole_lists(row: ShadowRun) -> bool:
    """Return whether a row holds both lists, not only what one has and the other lacks (``keep='difference'``)."""
    control, treatment = set(row.control_result_ids), set(row.treatment_result_ids)
    if row.set_overlap is None or not control | treatment:
        return False
    return math.isclose(len(control & treatment) / len(control | treatment), row.set_overlap, abs_tol=1e-9)


RR, NDCG, SURFACING = "RR@10", "nDCG@10", "Constitutional@5"
ANSWERS = 10


def record_evaluation(
    store: Store,
    evaluation: Evaluation,
    *,
    now: datetime,
    verdict: Verdict | None = None,
    comparison: Comparison | None = None,
    control_run_id: str | None = None,
    feature_id: str | None = None,
    uploaded: bool = False,
    project: str = DEFAULT_PROJECT,
) -> StoredResult:
    """Add an evaluation to the store, gated (``verdict``) or compared with another run, and return what was stored of it.

    The run itself, with every hit, is kept under the same run id. Means, intervals, latencies and the scores per query are its
    result, without latencies where the answers came from the cache; of a comparison the differences, and for its primary
    measure the adjusted p and whether it decides. A verdict brings its own comparison, with the baseline. ``feature_id`` marks
    a candidate, ``uploaded`` a golden set that is kept nowhere: neither is about production.
    """
    moment = timestamp(now)
    kind: RunType = "full" if verdict is None else "regression"
    if verdict is not None:
        comparison = comparison or verdict.comparison
        control_run_id = control_run_id or (None if verdict.baseline is None else f"baseline {verdict.baseline}")
    setup = evaluation.setup
    # What tells evaluations apart that end in the same moment.
    known = (evaluation.name, setup.retriever, setup.fingerprint, setup.golden.content_hash, setup.recorded_at)
    said = "\0".join((*known, repr(sorted(evaluation.metrics.items()))))
    mark = hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    result = replace(
        result_of(evaluation, f"{kind}-{moment}-{mark}", kind, moment, comparison),
        project=project,
        feature_id=feature_id,
        control_run_id=control_run_id,
        gate=None if verdict is None else verdict.word,
        uploaded=uploaded,
    )
    # In this order a result that is listed always has its run.
    store.save_run(StoredRun(result.run_id, evaluation.name, moment, packed(evaluation), project))
    store.add_result(result)
    return result


def result_of(
    evaluation: Evaluation, run_id: str, run_type: RunType, created_at: str, comparison: Comparison | None = None
) -> StoredResult:
    """Return the row of an evaluation, with all that it knows; what it does not know is None."""
    primary = None if comparison is None else comparison.measures[comparison.primary]
    metrics = _known(evaluation.metrics)
    # Answers from the cache took their time when they were made, not now.
    latency = {part: ms for part, ms in asdict(evaluation.latency).items() if part != "count"}
    figures: dict[str, Any] = {column: metrics[measure] for column, measure in FIGURES.items() if measure in metrics}
    figures |= evaluation.figures
    return StoredResult(
        run_id=run_id,
        run_type=run_type,
        created_at=created_at,
        query_count=len(evaluation.scores.query_ids),
        metrics=metrics,
        golden=evaluation.setup.golden.version,
        retriever=evaluation.setup.retriever,
        intervals={name: ends for name, ends in evaluation.intervals.items() if not math.isnan(sum(ends))},
        latency_ms={} if evaluation.cached else _known(latency),
        deltas={} if comparison is None else _known({name: one.diff for name, one in comparison.measures.items()}),
        p_value=None if primary is None else primary.p_adjusted,
        is_significant=None if comparison is None else comparison.verdict != "not enough evidence",
        per_query={**{one.query_id: {} for one in evaluation.rankings if one.error}, **evaluation.scores.per_query},
        channel_contribution={name: asdict(part) for name, part in evaluation.contributions.items()} or None,
        **figures,
    )


def _known(values: dict[str, float]) -> dict[str, float]:
    return {name: value for name, value in values.items() if not math.isnan(value)}


@dataclass(frozen=True, slots=True)
class OnGolden:
    """Production and candidate on the golden corpus."""

    control: StoredResult
    treatment: StoredResult
    rows: tuple[ShadowRun, ...]


def measures_for(golden: GoldenSet) -> tuple[str, ...]:
    """Return what both sides must be measured by: surfacing too, where the set has constitutional documents."""
    return (RR, NDCG) if without_constitutional(golden) else (RR, NDCG, SURFACING)


def without_constitutional(golden: GoldenSet) -> str:
    """Return the words that say that no document of a set is constitutional; '' where one is."""
    facts = Facts.of(golden)
    if any(facts.tier(doc_id) == "constitutional" and not facts.out_of_use(doc_id) for doc_id in facts.documents):
        return ""
    return f"{version_name(golden)} has no constitutional documents"


def record_on_golden(
    store: Store,
    feature_id: str,
    control: Evaluation,
    treatment: Evaluation,
    *,
    now: datetime,
    feed: Feed | None = None,
    project: str = DEFAULT_PROJECT,
) -> OnGolden:
    """Store what two evaluations of one golden set show about a candidate, and return it.

    ``feed`` hears of both sides' scores per question, under the id that live searches with its words have too
    (``question_id``), for a sequential test, in a drawn order: that of the file must not decide. Raises CannotDecide where
    the two cannot be compared: another set, or a query that only one side has scored.
    """
    if set(control.scores.query_ids) != set(treatment.scores.query_ids):
        raise CannotDecide("production and candidate were not scored on the same queries; evaluate both with failed='zero'")
    found = compare(control, treatment, primary=RR)
    moment = timestamp(now)
    # One name per pair: a query counts once for a feature, but every run on the golden corpus is a new one.
    names = [f"golden-{feature_id}-{moment}-{side}" for side in ("production", "candidate")]
    rows = tuple(_rows(feature_id, control, treatment, moment, project))
    production = result_of(control, names[0], "shadow", moment)
    candidate = replace(result_of(treatment, names[1], "shadow", moment, found), control_run_id=names[0])
    results = [replace(one, project=project, feature_id=feature_id) for one in (production, candidate)]
    for result in results:
        store.add_result(result)
    store.add_shadow_runs(rows)
    if feed is not None:
        texts = {query.query_id: query.text for query in control.queries}
        scored: dict[str, tuple[Scored, Scored]] = {}
        for query_id in control.scores.query_ids:
            scores = both(_scored(control, query_id), _scored(treatment, query_id))
            if scores is not None:
                scored.setdefault(question_id(texts[query_id]), scores)
        for asked in drawn_order(feature_id, scored):
            feed(asked, *scored[asked])
    return OnGolden(results[0], results[1], rows)


def _rows(feature_id: str, control: Evaluation, treatment: Evaluation, moment: str, project: str) -> list[ShadowRun]:
    rows = []
    for ranking in control.rankings:
        other = treatment.ranking(ranking.query_id)
        if ranking.error is not None:
            continue  # nothing stands beside the candidate's answer
        row = ShadowRun(
            query_id=f"{ON_GOLDEN}{moment}:{ranking.query_id}",
            feature_id=feature_id,
            created_at=moment,
            control_result_ids=tuple(hit.doc_id for hit in ranking.hits[:ANSWERS]),
            treatment_result_ids=tuple(hit.doc_id for hit in other.hits[:ANSWERS]),
            project=project,
            control_latency_ms=ranking.latency_ms,
            treatment_latency_ms=other.latency_ms,
            error=other.error,
            source="golden",
        )
        if other.error is None:
            scores = both(_scored(control, ranking.query_id), _scored(treatment, ranking.query_id))
            row = compared(row, k=ANSWERS, scores=scores)
        rows.append(row)
    return rows


def _scored(evaluation: Evaluation, query_id: str) -> Scored | None:
    values = evaluation.scores.per_query.get(query_id, {})
    rr, ndcg = values.get(RR, math.nan), values.get(NDCG, math.nan)
    return None if math.isnan(rr + ndcg) else Scored(rr, ndcg)
