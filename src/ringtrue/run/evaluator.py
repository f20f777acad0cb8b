"""``evaluate``: a retriever on a golden set. Preconditions, cache, questions, scores, components, blame, in this order."""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
import platform
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from ringtrue.config import cache_folder
from ringtrue.errors import CannotDecide, InputError, nearest
from ringtrue.golden import about_scale, check_grades, load
from ringtrue.golden import split as split_set
from ringtrue.measures import Measure, Scores, parse_measures, score
from ringtrue.records import GoldenSet, Query, Ranking
from ringtrue.retrieve import Collection, Retriever, Source, indexes_of
from ringtrue.run import preconditions
from ringtrue.run.ask import Answer, Question, ask_all
from ringtrue.run.cache import AnswerJournal, ResultCache, key_of
from ringtrue.run.evaluation import (
    DEFAULT_MEASURES,
    NOT_CACHED,
    REPLAYED,
    Component,
    Evaluation,
    Origin,
    Precondition,
    Setup,
)
from ringtrue.run.figures import Failed, about_chunks, figures_of, how_answered, misspelt, session_lift
from ringtrue.run.named import IdOf, mapped, mapping, same, unmapping
from ringtrue.run.parts import blame, relevant_total
from ringtrue.run.parts import components as components_of
from ringtrue.run.subject import DEEP, SHALLOW, Routed, code_hash, corpus_of, routed

Split = Literal["all", "tuning", "held_out"]
SESSIONS = ("session", "transcript_context", "sessionContext")
"""Where golden sets keep what was said before a question."""
SEED, ALPHA = 0, 0.05
READ = 20
"""Hits of each answer that people may come to read."""


@dataclass(frozen=True)
class Watcher:
    """Who is told how an evaluation goes: a progress bar, or nobody. What it raises ends the evaluation at that step."""

    start: Callable[[str, int], None] = lambda what, total: None
    """Called with what begins and how many steps it has; 0 if that is not known."""
    step: Callable[[int], None] = lambda count: None


def evaluate(
    retriever: Source | Retriever | Callable[..., Any] | Mapping[str, Any],
    golden: GoldenSet | str | Path | Mapping[Any, Any] | Sequence[Any],
    *,
    measures: Iterable[str | Measure] = DEFAULT_MEASURES,
    k: int | None = None,
    name: str | None = None,
    collection: Collection | None = None,
    chunks: str | None = None,
    components: bool = False,
    blame_at: int = 10,
    workers: int | None = None,
    timeout: float = 30.0,
    retries: int = 1,
    warmup: int = 1,
    passes: int = 1,
    sample: float = 1.0,
    split: Split = "all",
    session: bool = False,
    scope: str | None = None,
    route_by: str = "corpus",
    ids: str | Callable[[str], str] | None = None,
    failed: Failed = "list",
    allow: Iterable[str] = (),
    version: str = "",
    watch: Iterable[Path] = (),
    cache: bool = True,
    resume: bool = False,
    watcher: Watcher | None = None,
    now: datetime | None = None,
) -> Evaluation:
    """Return how good a retriever is on a golden set (or what ``load`` makes one of), with every answer.

    ``retriever`` is an expression (over ``collection``, or the set's own documents, indexed on first use), a retriever, a plain
    function ``search(text, k)``, or ``{corpus: retriever}`` to route queries by their field ``route_by``. Nothing is scored
    before the preconditions hold; ``allow`` names those that need not. A query that fails is listed with its error and
    left out of the means, unless ``failed='zero'`` counts it as an empty answer. ``passes`` asks every query so many times, to
    time more answers; the first pass is scored. ``version`` vouches for a system whose state
    cannot be seen, so that its result may be cached. Raises InputError, and CannotDecide if no honest number exists.

    >>> from ringtrue.records import Document, Judgment
    >>> pool, spa = Document("pool", "an indoor pool"), Document("spa", "sauna and massage")
    >>> asked = Query("q1", "swim indoors")
    >>> tiny = GoldenSet("tiny", "1.0.0", (asked,), (Judgment("q1", "pool", 3),), (pool, spa))
    >>> evaluate(lambda text, k: ["spa", "pool"], tiny, measures=["RR"]).metrics
    {'RR': 0.5}
    """
    watcher = watcher or Watcher()
    wanted = tuple(parse_measures(measures))
    if failed not in get_args(Failed):
        raise InputError(f"failed={failed!r} is not known; write 'list', 'exclude' or 'zero'")
    if passes < 1:
        raise InputError(f"passes={passes!r} is too few; write 1 or more")
    allowed = preconditions.check_allowed(allow)
    id_of, there = mapping(ids), unmapping(ids)
    whole = golden if isinstance(golden, GoldenSet) else load(golden)
    check_grades(whole)
    asked = _sampled(_side(whole, split), sample)

    @functools.cache
    def documents() -> Collection:
        return corpus_of(whole, cache_folder() / "corpora", chunks=chunks) if collection is None else collection

    subjects = routed(retriever, documents=documents, name=name, version=version, watched=watch, by=route_by)
    depth = _depth(k, wanted, subjects, merging=ids is not None)
    watcher.start("preparing", 0)
    _make_ready(subjects, watcher)
    met = preconditions.settle(preconditions.before(subjects, asked, wanted, id_of=id_of, there=there), allowed)
    key = key_of({
        "fingerprint": subjects.fingerprint,
        "code": code_hash(),
        "corpus": subjects.corpus,
        "golden": [vars(Origin.of(asked)), asked.metadata],
        "measures": [str(measure) for measure in wanted],
        "asked": [depth, session, scope, ids if isinstance(ids, str) else repr(ids), sorted(allowed), failed, workers],
        "passes": passes,
        "told": [components, blame_at],
    })  # fmt: skip
    kept = ResultCache(cache_folder() / "evaluations")
    # A function that maps ids is out of sight like any other code of the user's.
    cacheable = cache and subjects.complete and not callable(ids)
    if cacheable and (found := kept.get(key)) is not None:
        return replace(found, name=subjects.name)

    plan = _Plan(
        whole, asked, subjects, wanted, depth, id_of, allowed, failed, session, timeout, components, blame_at,
        workers or min(one.workers for one in subjects.all), not any(one.replays for one in subjects.all),
    )  # fmt: skip
    questions = _questions(asked, subjects, k=depth, session=session, scope=scope)
    if warmup and plan.timed:
        # Loading models and opening connections is nobody's latency; an error is one when it counts.
        with suppress(CannotDecide):
            ask_all(questions[:warmup], timeout=timeout, retries=0, timed=False)
    journal = AnswerJournal(kept.folder / f"{key}.answers.jsonl")
    before = journal.read() if resume or cacheable else {}
    left = [question for question in questions if question.query_id not in before]
    watcher.start("searching", len(questions))
    watcher.step(len(questions) - len(left))
    answers = before | _asked(plan, left, journal, retries=retries, watcher=watcher)
    repeats = _timed_again(plan, left, passes, watcher=watcher) if plan.timed and left else {}
    made = _evaluation(plan, questions, answers, met, resumed=len(before))
    recorded_at = (now or datetime.now(UTC)).isoformat(timespec="seconds")
    made = replace(made, setup=replace(made.setup, recorded_at=recorded_at, sample=sample), repeats=repeats)
    if cacheable and not any(answer.ranking.error for answer in answers.values()):
        kept.put(key, made)
    return made


@dataclass(frozen=True)
class _Plan:
    """An evaluation as it is settled before its first question."""

    whole: GoldenSet
    golden: GoldenSet
    """The part of the set that is asked."""
    subjects: Routed
    measures: tuple[Measure, ...]
    k: int
    id_of: IdOf
    allowed: frozenset[str]
    failed: Failed
    session: bool
    timeout: float
    components: bool
    blame_at: int
    workers: int
    timed: bool
    """False if answers come from a file, whose time says nothing."""


def machine() -> str:
    """Return a short name for the kind of machine this is; equal names mean that latencies may be compared."""
    model = platform.processor()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        model += "".join(line for line in info.read_text(errors="replace").splitlines() if line.startswith("model name"))
    digest = hashlib.sha256(f"{model}\0{platform.node()}".encode()).hexdigest()[:8]
    return f"{platform.system()}-{platform.machine()}-{os.cpu_count()}cpu-{digest}".lower()


# ── what is asked ───────────────────────────────────────────────────────────────────────────────────────────────────


def _side(golden: GoldenSet, split: Split) -> GoldenSet:
    if split not in get_args(Split):
        raise InputError(f"split={split!r} is not known; write 'all', 'tuning' or 'held_out'")
    return golden if split == "all" else split_set(golden)[0 if split == "tuning" else 1]


def _sampled(golden: GoldenSet, share: float) -> GoldenSet:
    """Return the set with a share of its queries, always the same ones."""
    if not 0 < share <= 1:
        raise InputError(f"sample={share!r} is not a share of the queries; write a number above 0, up to 1")
    if share == 1:
        return golden
    order = sorted(golden.queries, key=lambda query: hashlib.sha256(query.query_id.encode("utf-8", "surrogatepass")).digest())
    chosen = {query.query_id for query in order[: max(1, round(share * len(order)))]}
    return golden.part(chosen)


def _depth(k: int | None, measures: Sequence[Measure], subjects: Routed, *, merging: bool) -> int:
    """Return how many hits to ask for: as deep as measures look, and deeper where that is cheap or passages are merged."""
    deep = preconditions.deepest(measures) or 0
    if k is None:
        return max(deep, DEEP if merging or all(one.in_process for one in subjects.all) else SHALLOW)
    if k < deep:
        raise InputError(f"k={k} is less than the rank {deep} that measures look at; ask for {deep} or more")
    return k


def _make_ready(subjects: Routed, watcher: Watcher) -> None:
    """Bring indexes up to their documents. The first time that takes long, so it is told step by step and may be ended."""
    whole = [one for one in subjects.all if one.collection is not None and not one.collection.unfinished]
    indexes = {index.folder: index for one in whole for index in indexes_of(one.retriever)}.values()
    if pending := sum(index.pending() for index in indexes):
        watcher.start("indexing", pending)
        for index in indexes:
            index.ready(progress=watcher.step)


def _questions(golden: GoldenSet, subjects: Routed, *, k: int, session: bool, scope: str | None) -> list[Question]:
    if not golden.queries:
        raise CannotDecide(f"golden set '{golden.id}' has no query to ask")
    silent = [query.query_id for query in golden.queries if not (query.text.strip() or subjects.for_query(query).replays)]
    if silent:
        raise CannotDecide(
            f"query '{silent[0]}' of golden set '{golden.id}' has no text, so it cannot be asked ({len(silent)} of "
            f"{len(golden.queries)}); add the texts, or score a run of your own with ringtrue score"
        )
    field = scope or golden.scope
    if scope is not None and not any(scope in query.metadata for query in golden.queries):
        fields = sorted({name for query in golden.queries for name in query.metadata})
        cure = f"did you mean {nearest(scope, fields)}?" if fields else "leave the scope out"
        raise InputError(f"no query of '{golden.id}' has the field '{scope}' to be scoped by; {cure}")
    questions = []
    for query in golden.queries:
        subject = subjects.for_query(query)
        options: dict[str, Any] = {"k": k}
        if field and field in query.metadata and not (subjects.by == field and subject.collection is None):
            options["scope"] = {field: str(query.metadata[field])}
        if session and (said := _said(query)) is not None:
            parameters = inspect.signature(subject.retriever.search).parameters
            if "session" not in (getattr(subject.retriever, "accepts", None) or parameters):
                cure = "evaluate without --session, or give it a parameter session=None"
                raise InputError(f"{subject.name} takes no session; {cure}")
            options["session"] = said
        questions.append(Question(query.query_id, query.text, subject.retriever, options))
    return questions


def _said(query: Query) -> list[str] | None:
    """Return what was said or held before a question, as texts; None if a set does not tell."""
    for name in SESSIONS:
        value = query.metadata.get(name)
        if isinstance(value, Mapping):
            value = next((part for part in value.values() if isinstance(part, list | tuple)), None)
        if isinstance(value, list | tuple):
            return [str(item) for item in value]
    return None


def _asked(
    plan: _Plan, questions: Sequence[Question], journal: AnswerJournal, *, retries: int, watcher: Watcher
) -> dict[str, Answer]:
    """Return the answers by query, each written to the journal as it comes."""
    with journal.writing() as note:

        def done(answer: Answer) -> None:
            note(answer)
            watcher.step(1)

        how: dict[str, Any] = {"workers": plan.workers, "timeout": plan.timeout, "timed": plan.timed, "retries": retries}
        return {answer.ranking.query_id: answer for answer in ask_all(questions, **how, done=done)}


def _timed_again(plan: _Plan, questions: Sequence[Question], passes: int, *, watcher: Watcher) -> dict[str, tuple[float, ...]]:
    """Ask all questions again, for their times alone; an answer that fails is not timed.

    Raises CannotDecide if the search stops answering.
    """
    times: dict[str, tuple[float, ...]] = {}
    for number in range(2, passes + 1):
        watcher.start(f"timing pass {number}", len(questions))
        again = ask_all(questions, workers=plan.workers, timeout=plan.timeout, retries=0, done=lambda _: watcher.step(1))
        for one in (answer.ranking for answer in again):
            if one.latency_ms is not None:
                times[one.query_id] = (*times.get(one.query_id, ()), one.latency_ms)
    return times


# ── what comes of it ────────────────────────────────────────────────────────────────────────────────────────────────


def _evaluation(
    plan: _Plan, questions: Sequence[Question], answers: Mapping[str, Answer], met: tuple[Precondition, ...], *, resumed: int
) -> Evaluation:
    """Return what comes of the answers; raises CannotDecide if a precondition fails in them, or none can be scored."""
    golden, subjects, id_of = plan.golden, plan.subjects, plan.id_of
    rankings = tuple(answers[query.query_id].ranking for query in golden.queries)
    ids: dict[str, str] = {}
    if id_of is not same:
        ids = {hit.doc_id: id_of(hit.doc_id) for ranking in rankings for hit in ranking.hits}
        rankings = tuple(replace(ranking, hits=mapped(ranking.hits, id_of)) for ranking in rankings)
    found = preconditions.after(rankings, golden, plan.measures, visible=subjects.visible, ids=ids)
    met += preconditions.settle(found, plan.allowed)
    errors = [ranking.error for ranking in rankings if ranking.error is not None]
    if plan.failed == "zero":
        rankings = tuple(replace(one, error=None, hits=()) if one.error is not None else one for one in rankings)
    answered, unjudged = _answered(golden, rankings)
    known = {query.query_id for query in answered.queries}
    scored = [one for one in rankings if one.query_id in known]
    scores = score(scored, answered, plan.measures)
    seen = {query_id: answer.seen for query_id, answer in answers.items() if answer.seen is not None}
    more: dict[str, Any] = {"seen": seen, "id_of": id_of}
    parts: tuple[Component, ...] = ()
    if plan.components and len(subjects.all) == 1:
        parts = components_of(subjects.all[0].retriever, answered, plan.measures, k=plan.k, rankings=rankings, **more)
    deep = preconditions.deepest(plan.measures) or 0

    def reaches(rank: int) -> bool:
        """Return whether a figure may look down to a rank: measures do, or nothing is known to cut the answers above it."""
        return rank <= deep or (rank <= plan.k and preconditions.reaches(rank, rankings, golden, subjects))

    figures = figures_of(scored, answered, reaches)
    if plan.session and all(one.in_process for one in subjects.all):
        figures |= session_lift(questions, scored, answered, timeout=plan.timeout, id_of=id_of)
    # Our own chunks are numbered by how the documents were cut, which a set says by ``chunks`` in its metadata; the chunks of a
    # system out of sight are taken at their word.
    ours = [one.collection.chunks for one in subjects.all if one.collection is not None]
    chunks = all(golden.metadata.get("chunks") == cut for cut in ours)
    more |= {"in_corpus": subjects.contains(id_of), "chunks": chunks}
    said = subjects.passages((hit.doc_id for ranking in rankings for hit in ranking.hits[:READ]), id_of=id_of)
    return Evaluation(
        name=subjects.name,
        setup=_setup(plan, met),
        queries=golden.queries,
        qrels=golden.qrels,
        titles=_titles(golden, subjects, rankings) | {doc_id: title for doc_id, (title, _) in said.items() if title},
        texts={doc_id: text for doc_id, (_, text) in said.items() if text},
        rankings=rankings,
        scores=scores,
        intervals=intervals_of(scores),
        figures=figures,
        components=parts,
        losses=blame(answered, rankings, k=plan.blame_at, **more),
        classes=golden.equivalence_classes,
        relevant=relevant_total(answered, rankings),
        notes=(
            *how_answered(errors, len(rankings), plan.failed, resumed=resumed, met=met),
            *_notes(plan, rankings, met),
            *([f"{unjudged} queries have no judgment and take no part in any mean"] if unjudged else []),
            *scores.counted.notes(),
        ),
    )


def _notes(plan: _Plan, rankings: Sequence[Ranking], met: Iterable[Precondition]) -> Iterator[str]:
    """Yield what readers should know about the search and the golden set."""
    if not plan.timed:
        yield REPLAYED
    if not plan.subjects.complete:
        yield NOT_CACHED
    yield from about_scale(plan.whole)
    if any(str(measure) == "Top1Chunk" for measure in plan.measures):
        yield from about_chunks(plan.golden, rankings)
    if any(one.name == "documents" and one.status != "met" for one in met):
        yield from misspelt(plan.golden, rankings)


def _setup(plan: _Plan, met: Iterable[Precondition]) -> Setup:
    return Setup(
        retriever=plan.subjects.text,
        config=plan.subjects.config,
        fingerprint=plan.subjects.fingerprint,
        golden=Origin.of(plan.golden),
        k=plan.k,
        measures=tuple(str(measure) for measure in plan.measures),
        recorded_at="",
        ringtrue=version_of("ringtrue"),
        machine=machine(),
        workers=plan.workers,
        session=plan.session,
        corpus=plan.subjects.corpus,
        preconditions=tuple(dict.fromkeys(met)),
    )


def _answered(golden: GoldenSet, rankings: Iterable[Ranking]) -> tuple[GoldenSet, int]:
    """Return the part of a set that can be scored, and how many answered queries nobody judged: they have no score."""
    failed = {ranking.query_id for ranking in rankings if ranking.error is not None}
    if len(failed) == len(golden.queries):
        raise CannotDecide(f"none of the {len(failed)} questions was answered")
    judged = {judgment.query_id for judgment in golden.judgments}
    known = {query.query_id for query in golden.queries if query.query_id in judged or query.negative}
    if not known - failed:
        raise CannotDecide(f"golden set '{golden.id}' judges none of the queries that were answered; add judgments")
    unjudged = len(golden.queries) - len(known)
    return (golden.part(known - failed) if failed or unjudged else golden), unjudged


def intervals_of(scores: Scores) -> dict[str, tuple[float, float]]:
    """Return the 95 % interval of each measure's mean in any order of queries; sums and geometric means have none."""
    from ringtrue.stats import mean_interval

    averaged = [measure for measure in scores.measures if measure.definition.average == "mean"]
    if not averaged or len(scores.query_ids) < 2:
        return {}
    values = np.stack([scores.of(measure) for measure in averaged], axis=1)[np.argsort(scores.query_ids)]
    found = mean_interval(values, rng=np.random.default_rng(SEED))
    ends = {}
    for column, measure in enumerate(averaged):
        low, high, mean = float(found.low[column]), float(found.high[column]), float(found.mean[column])
        if measure.definition.bounded:
            # No mean of shares lies outside 0 to 1, whatever an interval that knows no bounds says. And n perfect scores do not
            # make certain: were the true mean below alpha^(1/n), so many in a row would be rarer than alpha (likewise for 0).
            least = (ALPHA / 2) ** (1 / int(found.n[column])) if found.constant[column] else 0.0
            low = least if mean == 1 else max(low, 0.0)
            high = 1 - least if mean == 0 else min(high, 1.0)
        ends[str(measure)] = low, high
    return ends


def _titles(golden: GoldenSet, subjects: Routed, rankings: Iterable[Ranking]) -> dict[str, str]:
    """Return the titles of documents a reader of the result may meet."""
    mentioned = dict.fromkeys(judgment.doc_id for judgment in golden.judgments)
    mentioned |= dict.fromkeys(hit.doc_id for ranking in rankings for hit in ranking.hits[:READ])
    titles = {document.doc_id: document.title for document in golden.documents if document.doc_id in mentioned}
    for one in subjects.all:
        if one.collection is not None:
            titles |= one.collection.titles(doc_id for doc_id in mentioned if doc_id not in titles)
    return {doc_id: title for doc_id, title in titles.items() if title}
