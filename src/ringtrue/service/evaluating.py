"""Evaluations on request: what is asked, how it is answered, and how it is kept."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic_core import from_json

from ringtrue.answers import ComponentScores, Details, Evaluated
from ringtrue.config import cache_folder
from ringtrue.errors import InputError, RingtrueError
from ringtrue.measures import Measure
from ringtrue.report import known
from ringtrue.retrieve import Collection, admitted, names_documents, only
from ringtrue.retrieve.connectors.run import RunFile
from ringtrue.rollout import record_evaluation
from ringtrue.run import DEFAULT_MEASURES, Evaluation, corpus_of, evaluate
from ringtrue.service.errors import Refused, clean
from ringtrue.service.models import record_from

if TYPE_CHECKING:
    from ringtrue.records import GoldenSet
    from ringtrue.run import Watcher
    from ringtrue.service.auth import Access
    from ringtrue.service.context import Service
    from ringtrue.service.settings import Settings
    from ringtrue.store import StoredResult
    from ringtrue.verdict import Verdict

MOST_MEASURES, MOST_HITS = 50, 1_000
MOST_ANSWERED, MOST_IN_JSON = 10_000, 200_000
"""Documents of one query in a run that is uploaded, and of all its queries in JSON: each is looked at one by one there."""
SEARCH_S = 20.0
"""Seconds that one search of an evaluation may take."""
DOCUMENTS_PER_QUERY = 10
"""A set whose own documents must be indexed first may have so many for each query that is answered at once."""
LOOK = "golden.look"
"""What the audit trail calls a look at the held-out part of a golden set."""
UNJUDGED_AT = 10
"""How far down unjudged documents are listed."""
Documents = Literal["own", "served"]


@dataclass(frozen=True)
class EvaluationPlan:
    """One evaluation: a golden set, a retriever, and how it is asked; ``planned`` settles what was left open."""

    golden: GoldenSet
    retriever: str | None = None
    """An expression; the server's own unless given."""
    components: tuple[str, ...] = ()
    """Only these channels of it."""
    measures: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    """How ``evaluate`` asks: k, split, sample, scope, failed and allow; it checks them and names the legal values."""
    documents: Documents | None = None
    """Whose documents are searched: the set's own if it has any, else those the server serves; None for a connected system."""
    uploaded: bool = False
    """It came with the request and is kept nowhere."""
    feature_id: str | None = None
    """The feature that this is a candidate of; figures of candidates are not production's."""

    def at_once(self, most: int) -> bool:
        """True if it is small enough for one request."""
        indexed = len(self.golden.documents) if self.documents == "own" else 0
        return len(self.golden.queries) <= most and indexed <= most * DOCUMENTS_PER_QUERY

    def record(self) -> dict[str, Any]:
        """Return what a job says about its request, without what was uploaded."""
        said = {
            "golden": f"{self.golden.id}@{self.golden.version}",
            "queries": len(self.golden.queries),
            "uploaded": self.uploaded,
            "retriever": self.retriever,
            "measures": list(self.measures),
            "split": self.options.get("split", "all"),
            "sample": self.options.get("sample", 1.0),
        }
        return said if self.feature_id is None else {**said, "feature_id": self.feature_id}


def admitted_by(settings: Settings, text: str) -> str:
    """Return a retriever that a request names; raises Refused (422) for one that it may not name."""
    try:
        return admitted(text, settings.own_retrievers)
    except InputError as problem:
        raise Refused(422, "invalid_expression", str(problem), field="body.retriever") from None


def planned(service: Service, wanted: EvaluationPlan) -> EvaluationPlan:
    """Return a plan with its retriever and documents settled; raises Refused and InputError for one that is not possible."""
    settings = service.settings
    text = settings.retriever if wanted.retriever is None else admitted_by(settings, wanted.retriever)
    if wanted.components:
        try:
            text = only(text, wanted.components)
        except InputError as problem:
            raise Refused(422, "unknown_channel", str(problem), field="query.components") from None
    if len(wanted.measures) > MOST_MEASURES:
        raise InputError(f"{len(wanted.measures)} measures are asked for; {MOST_MEASURES} are allowed")
    for name in wanted.measures:
        at = Measure.parse(name).at
        if isinstance(at, int) and at > MOST_HITS:
            raise InputError(f"{name} looks at rank {at}; {MOST_HITS} is the last one here")
    return replace(wanted, retriever=text, documents=_documents(service, wanted, text))


def _documents(service: Service, wanted: EvaluationPlan, text: str) -> Documents | None:
    if not names_documents(text):
        return None
    chosen = wanted.documents or ("own" if wanted.golden.documents else "served")
    if chosen == "own" and not wanted.golden.documents:
        raise InputError(f"golden set '{wanted.golden.id}' brings no documents; leave documents out, or send them with the set")
    if chosen == "served":
        service.searches.check_room(text, service.searches.documents)
    return chosen


def evaluated(
    service: Service, plan: EvaluationPlan, *, watcher: Watcher | None = None, more: Sequence[str] = ()
) -> Evaluation:
    """Return the evaluation of a plan; ``more`` are measures that somebody needs besides those asked for."""
    measures = tuple(dict.fromkeys((*(plan.measures or DEFAULT_MEASURES), *more)))
    with _collection(service, plan) as collection:
        return evaluate(
            plan.retriever or service.settings.retriever,
            plan.golden,
            measures=measures,
            collection=collection,
            components=True,
            timeout=SEARCH_S,
            # Where projects share a server, an answer from the cache would tell what another project has evaluated.
            cache=service.settings.open,
            watcher=watcher,
            now=service.now(),
            **plan.options,
        )


@contextmanager
def _collection(service: Service, plan: EvaluationPlan) -> Iterator[Collection | None]:
    """Yield the documents that are searched; those of an upload are indexed in a folder that goes with the evaluation."""
    if plan.documents == "served":
        yield service.searches.documents
    elif plan.documents == "own" and plan.uploaded:
        with tempfile.TemporaryDirectory(prefix="ringtrue-", ignore_cleanup_errors=True) as folder:
            yield corpus_of(plan.golden, Path(folder))
    elif plan.documents == "own":
        collection = corpus_of(plan.golden, cache_folder() / "corpora")
        service.searches.check_room(plan.retriever or service.settings.retriever, collection)
        yield collection
    else:
        yield None


def kept(
    access: Access,
    evaluation: Evaluation,
    *,
    verdict: Verdict | None = None,
    feature_id: str | None = None,
    uploaded: bool = False,
) -> StoredResult:
    """Add an evaluation to the store with all of its answers and return its row; looks at a held-out part are counted.

    ``feature_id`` marks a candidate, ``uploaded`` a golden set that is kept nowhere: neither counts as production's.
    """
    store, now = access.store, access.now()
    if evaluation.setup.golden.split == "held_out":
        access.note(LOOK, evaluation.setup.golden.version, {"retriever": evaluation.setup.retriever})
    about: dict[str, Any] = {"feature_id": feature_id, "uploaded": uploaded, "project": access.project}
    row = record_evaluation(store, evaluation, now=now, verdict=verdict, **about)
    access.service.telemetry.evaluated(access.project)
    return row


def answered(access: Access, evaluation: Evaluation, *, feature_id: str | None = None, uploaded: bool = False) -> Evaluated:
    """Keep an evaluation and return what REST says about it."""
    row = kept(access, evaluation, feature_id=feature_id, uploaded=uploaded)
    notes = (
        ["health, alerts and gauges ignore uploaded sets; to include this one, store it: POST /v1/golden"] if uploaded else []
    )
    if evaluation.setup.golden.split == "held_out":
        looks = len(access.store.audit(project=access.project, subject=evaluation.setup.golden.version, what=LOOK))
        notes.append(f"this was look {looks} at the held-out part; each look makes it a little less held out")
    return summary(evaluation, run_id=row.run_id, notes=notes)


def scored_run(
    service: Service,
    golden: GoldenSet,
    content: bytes,
    *,
    kind: Literal["trec", "json"],
    name: str,
    measures: Sequence[str] = (),
    allow: Sequence[str] = (),
) -> Evaluation:
    """Return the evaluation of answers that somebody made elsewhere: a run in TREC's format, or ``{query: {doc: score}}``.

    Queries that the run does not answer are failures, listed and left out of the means. Raises InputError naming line, value
    and cure, and Refused (413) for more documents than are read here.
    """
    _check_size(content, kind)
    with tempfile.TemporaryDirectory(prefix="ringtrue-", ignore_cleanup_errors=True) as folder:
        # The reader of run files wants files; these names are ours, and nothing of the request is in them.
        answers, questions = Path(folder) / f"upload.{'json' if kind == 'json' else 'run'}", Path(folder) / "queries.jsonl"
        answers.write_bytes(content)
        lines = [json.dumps({"_id": query.query_id, "text": query.text}) for query in golden.queries]
        questions.write_text("\n".join(lines) + "\n", encoding="utf-8")
        replayed = RunFile(path=answers, queries=questions, format=kind, name="upload")
        options: dict[str, Any] = {"measures": tuple(measures) or DEFAULT_MEASURES, "allow": allow, "name": name}
        try:
            found = evaluate(replayed, golden, k=MOST_HITS, retries=0, cache=False, now=service.now(), **options)
        except RingtrueError as problem:
            raise type(problem)(str(problem).replace(f"{folder}/", "")) from None

    def nameless(text: str) -> str:
        return text.replace(f"{folder}/", "")

    rankings = (one if one.error is None else replace(one, error=nameless(one.error)) for one in found.rankings)
    return replace(found, rankings=tuple(rankings), notes=tuple(map(nameless, found.notes)))


def _check_size(content: bytes, kind: Literal["trec", "json"]) -> None:
    """Raise Refused (413) for a run with more documents than are read in the time of a request."""
    if kind == "json":
        value = from_json(content)
        answers = value.items() if isinstance(value, dict) else ()
        counts = {str(query_id): len(found) for query_id, found in answers if isinstance(found, dict | list)}
    else:
        first = (line.split(None, 1)[:1] for line in content.splitlines())
        counts = Counter(word[0].decode("utf-8", "replace") for word in first if word)
    most, total = max(counts, key=lambda query_id: counts[query_id], default=""), sum(counts.values())
    said = ""
    if counts and counts[most] > MOST_ANSWERED:
        said = f"query '{most:.60}' is answered with {counts[most]:,} documents; {MOST_ANSWERED:,} are read, send the best"
    elif kind == "json" and total > MOST_IN_JSON:
        said = f"the run has {total:,} documents; as JSON {MOST_IN_JSON:,} are read: send it as TREC (text/plain)"
    if said:
        raise Refused(413, "too_large", said, field="body")


# ── what is told of it ──────────────────────────────────────────────────────────────────────────────────────────────


def keys_of(measures: Sequence[Measure | str]) -> dict[str, str]:
    """Return ``{measure: key}``: recall_at_10 for R@10, mrr for RR; where two would share a key both keep their own text.

    >>> keys_of(["R@10", "RR", "RR@5"])
    {'R@10': 'recall_at_10', 'RR': 'mrr', 'RR@5': 'mrr_at_5'}
    >>> list(keys_of(["Diversity(by='a_b')@5", "Diversity(by='a b')@5"]).values())
    ["Diversity(by='a_b')@5", "Diversity(by='a b')@5"]
    """
    parsed = [one if isinstance(one, Measure) else Measure.parse(one) for one in measures]
    spelt = [one.snake for one in parsed]
    return {str(one): str(one) if spelt.count(key) > 1 else key for one, key in zip(parsed, spelt, strict=True)}


def renamed(values: Mapping[str, float], keys: Mapping[str, str]) -> dict[str, float | None]:
    """Return figures by measure under the keys of REST."""
    return {keys[name]: known(value) for name, value in values.items() if name in keys}


def summary(evaluation: Evaluation, *, run_id: str, notes: Sequence[str] = ()) -> Evaluated:
    """Return what REST says about an evaluation, with further ``notes``."""
    scores, setup = evaluation.scores, evaluation.setup
    keys = keys_of(scores.measures)
    by, by_type = _by_type(evaluation, keys)
    return record_from(
        Evaluated,
        evaluation,
        setup,
        run_id=run_id,
        golden=setup.golden.version,
        split=setup.golden.split,
        queries=len(evaluation.queries),
        measures={key: name for name, key in keys.items()},
        metrics=renamed(evaluation.metrics, keys),
        intervals={keys[name]: tuple(map(known, ends)) for name, ends in evaluation.intervals.items() if name in keys},
        per_query_type=by_type,
        per_query_type_field=by,
        components={
            part.name: ComponentScores(part.kind, renamed(part.scores.aggregate, keys)) for part in evaluation.components
        },
        latency_ms={name: known(value) for name, value in asdict(evaluation.latency).items() if name != "count"},
        judged_at_10=known(scores.judged_share),
        details=Details(
            unjudged_at=UNJUDGED_AT,
            unjudged=_unjudged(evaluation),
            failures={query_id: clean(error) for query_id, error in evaluation.failures.items()},
            missing=tuple(scores.counted.missing),
            notes=(*map(clean, evaluation.notes), *notes),
        ),
    )


def _by_type(evaluation: Evaluation, keys: Mapping[str, str]) -> tuple[str | None, dict[str, dict[str, float | None]]]:
    """Return the field that divides the queries, query_type where they have it, and the means of each of its values."""
    scores = evaluation.scores
    fields = ("query_type", *evaluation.setup.golden.slices)
    field = next((name for name in fields if any(name in query.metadata for query in evaluation.queries)), None)
    found: dict[str, dict[str, float | None]] = {}
    if field is not None and any(field in scores.facts.get(query_id, {}) for query_id in scores.query_ids):
        for measure in scores.measures:
            for value, one in scores.by(field, measure).items():
                found.setdefault(value, {})[keys[str(measure)]] = known(one.mean)
    return field, found


def _unjudged(evaluation: Evaluation) -> dict[str, tuple[str, ...]]:
    """Return ``{query: documents}`` among the first hits that nobody judged; queries without any are absent."""
    judged = evaluation.qrels.to_dict()
    found = {}
    for one in evaluation.rankings:
        found[one.query_id] = tuple(
            hit.doc_id for hit in one.hits[:UNJUDGED_AT] if hit.doc_id not in judged.get(one.query_id, {})
        )
    return {query_id: docs for query_id, docs in found.items() if docs}
