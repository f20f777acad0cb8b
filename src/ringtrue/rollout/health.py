"""Health: one look at everything that runs, as far as the store knows it. What is not known is said to be so.

A project's quality is that of the search that is served, on the golden set of its baseline. Whoever tries another
search, or another set, does not want to be told that production has become worse.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from ringtrue.answers import HealthPart, PartState
from ringtrue.errors import OK, REGRESSION, UNDECIDED, InputError, RingtrueError
from ringtrue.golden import parse_version
from ringtrue.log.figures import living, losses
from ringtrue.log.query_log import log_folder
from ringtrue.retrieve import Collection as Documents
from ringtrue.retrieve import build, indexes_of, same_search, shorten
from ringtrue.rollout.abtest import decided_after
from ringtrue.rollout.candidate import said
from ringtrue.rollout.evidence import is_stopped, shadow_of, shadowed
from ringtrue.rollout.graduate import FAILURE_SHARE, MISSING_SHARE
from ringtrue.store import DEFAULT_PROJECT, Flag, KeptVersion, Store, StoredResult, result_columns

LOOKED_AT = 100
"""Newest results among which the pair is looked for."""
STANDARDS = 5
"""Baselines that are looked at, by name, the last saved first."""


@dataclass(frozen=True, slots=True)
class SearchOnSet:
    """A search and the golden set that it is measured with, whatever its version."""

    retriever: str
    """As results name it; '' where they do not."""
    golden: str

    def has(self, row: StoredResult) -> bool:
        """True for a result of this search on this set."""
        return set_name(row.golden) == self.golden and same_search(row.retriever or "", self.retriever)


def of_production(one: StoredResult) -> bool:
    """True for a result about production: neither a candidate's nor one on a golden set that was only uploaded."""
    return not one.uploaded and (one.feature_id is None or (one.run_type == "shadow" and one.control_run_id is None))


def production_pair(store: Store, *, project: str = DEFAULT_PROJECT, served: str | None = None) -> SearchOnSet | None:
    """Return what a project's quality is told of; None if nothing was evaluated.

    That is the search that is ``served``, else that of the baseline, on the golden set of the baseline; without a baseline the
    served search on the set it is evaluated with most; where it never was, whatever is evaluated most, and of equals the last.
    """
    rows = [row for row in store.results(project=project, limit=LOOKED_AT) if of_production(row)]
    standards = list(_standards(store, project))
    pairs = list(standards)
    if served is not None:
        standards.sort(key=lambda one: not same_search(one.retriever, served))
        pairs = [*(SearchOnSet(served, standard.golden) for standard in standards), *standards]
    for pair in pairs:
        if any(pair.has(row) for row in rows):
            return pair
    # What stood beside a candidate in its shadow may have been replaced by it since.
    rows = [row for row in rows if row.run_type != "shadow"] or rows
    ours = [row for row in rows if served is not None and same_search(row.retriever or "", served)]
    counts = Counter(SearchOnSet(row.retriever or "", set_name(row.golden)) for row in ours or rows)
    # The first of equals is the newest, as the rows are.
    return max(counts, key=lambda pair: counts[pair], default=None)


def _standards(store: Store, project: str) -> Iterator[SearchOnSet]:
    newest: dict[str, KeptVersion] = {}
    for one in sorted(store.baselines(project=project), key=lambda one: one.created_at, reverse=True):
        newest.setdefault(one.name, one)
    for one in list(newest.values())[:STANDARDS]:
        row = store.baseline(one.name, one.version, project=project)
        golden = None if row is None else row.content.get("golden")
        if row is not None and isinstance(golden, Mapping):  # one of means alone says nothing of where they come from
            yield SearchOnSet(str(row.content.get("retriever", "")), set_name(str(golden.get("version", ""))))


def set_name(golden: str | None) -> str:
    """Return the name of a golden set without its version: a new version takes the place of the old one."""
    try:
        return parse_version(golden or "").name
    except InputError:
        return golden or ""


RECENT = timedelta(hours=24)
NOT_EVALUATED = "no evaluation yet; run `ringtrue eval`"
RESULTS = 200
"""Newest evaluations that are looked at."""


@dataclass(frozen=True, slots=True)
class Health:
    """All parts, and what they come to."""

    parts: tuple[HealthPart, ...]

    @property
    def state(self) -> PartState:
        """'wrong' if a part is, else 'unknown' if a part is, else 'ok'; parts that are not used do not count."""
        return _worst({part.state for part in self.parts})

    @property
    def exit_code(self) -> int:
        return {"ok": OK, "wrong": REGRESSION, "unknown": UNDECIDED, "unused": OK}[self.state]


def _worst(states: Collection[PartState]) -> PartState:
    return "wrong" if "wrong" in states else "unknown" if "unknown" in states else "ok"


def review_and_evaluation(
    store: Store, *, project: str = DEFAULT_PROJECT, served: str | None = None
) -> dict[str, dict[str, Any] | None]:
    """Return the review ``backlog`` and a summary of the newest ``evaluation`` of the search in production.

    ``unknown`` says why one of them is None. In the summary, None is a figure that the run did not measure.
    """
    newest = _newest(_production_results(store, project, served)[1])
    return {
        "backlog": dict(store.backlog(project=project)),
        "evaluation": None if newest is None else _summary(newest),
        "unknown": {} if newest is not None else {"evaluation": NOT_EVALUATED},
    }


def _summary(row: StoredResult) -> dict[str, Any]:
    def finite(value: float) -> float | None:
        return value if math.isfinite(value) else None

    return {
        "run_id": row.run_id, "run_type": row.run_type, "created_at": row.created_at, "golden": row.golden,
        "retriever": row.retriever, "gate": row.gate, "query_count": row.query_count, **result_columns(row),
        "metrics": {name: finite(value) for name, value in row.metrics.items()},
        "intervals": {name: [finite(end) for end in pair] for name, pair in row.intervals.items()},
    }  # fmt: skip


def _production_results(store: Store, project: str, served: str | None) -> tuple[list[StoredResult], list[StoredResult]]:
    """Return the newest results about production, and those of the search and golden set that quality is told of."""
    results = [row for row in store.results(project=project, limit=RESULTS) if of_production(row)]
    pair = production_pair(store, project=project, served=served)
    return results, [row for row in results if pair is not None and pair.has(row)]


def health_of(
    store: Store,
    *,
    now: datetime,
    project: str = DEFAULT_PROJECT,
    index: Path | None = None,
    retriever: str = "hybrid",
    served: str | None = None,
) -> Health:
    """Return the health of a project; ``index`` is a folder of documents whose indexes must be up to date for ``retriever``.

    ``served`` is the search that users get, where that is known: evaluation and gate are told of it and not of what somebody
    tried (``production_pair``). A part that cannot be read is unknown, and the others are still told. What only users of the
    agent memory have, constitutional documents, is left out until it is measured.
    """

    @cache
    def results() -> tuple[list[StoredResult], list[StoredResult]]:
        return _production_results(store, project, served)

    looks: dict[str, Callable[[], HealthPart | None]] = {
        "schema": lambda: HealthPart("schema", "ok", f"version {store.schema_version()}", {"version": store.schema_version()}),
        "log": lambda: _log(store, project, now),
        "losses": lambda: _losses(store, project, now),
        "evaluation": lambda: _evaluation(results()[1]),
        "gate": lambda: _gate(results()[1]),
        "constitutional": lambda: _constitutional(results()[0]),
        "backlog": lambda: _backlog(store.backlog(project=project)),
        "shadow": lambda: _shadow(store, project, now),
        "tests": lambda: _tests(store, project),
        "rollout": lambda: _rollout(store, project),
        "index": lambda: _index(index, retriever),
    }
    parts = []
    for name, look in looks.items():
        try:
            part = look()
        except (RingtrueError, OSError) as problem:
            part = HealthPart(name, "unknown", said(problem))
        if part is not None:
            parts.append(part)
    return Health(tuple(parts))


def _log(store: Store, project: str, now: datetime) -> HealthPart:
    newest = store.queries(project=project, limit=1, newest=True)
    if not newest:
        return HealthPart("log", "unknown", "no search was ever logged", {"last_24h": 0, "last_at": None})
    count, last = store.count_queries(project=project, since=now - RECENT), newest[0].created_at
    return HealthPart("log", "ok", f"{count:,} searches in 24 h, the last at {last}", {"last_24h": count, "last_at": last})


def _losses(store: Store, project: str, now: datetime) -> HealthPart:
    lately, ever = losses(store, project=project, since=now - RECENT), losses(store, project=project)
    folder = log_folder(store)
    ended = living(folder, project=project)[1] if folder is not None else []
    unsettled = sum(counts.waiting for counts in ended)
    figures = {
        "last_24h": lately.total, "told": ever.total, "lost": ever.lost, "dropped": ever.dropped, "refused": ever.refused,
        "unsettled": unsettled,
    }  # fmt: skip
    says = f"{lately.total:,} events lost in 24 h, {ever.total:,} in all"
    if ended:
        says += f"; {len(ended)} processes ended without closing, with up to {unsettled:,} more; the next log counts them"
    return HealthPart("losses", "wrong" if lately.total else "unknown" if ended else "ok", says, figures)


def _newest(results: list[StoredResult]) -> StoredResult | None:
    return next((one for one in results if one.run_type in ("full", "regression")), None)


def _evaluation(results: list[StoredResult]) -> HealthPart:
    newest = _newest(results)
    if newest is None:
        return HealthPart("evaluation", "unknown", NOT_EVALUATED)
    shown = []
    for measure, value in list(newest.metrics.items())[:3]:
        low, high = newest.intervals.get(measure, (math.nan, math.nan))
        shown.append(f"{measure} {value:.4f}" + ("" if math.isnan(low + high) else f" ({low:.4f} to {high:.4f})"))
    figures = {
        "run_id": newest.run_id, "at": newest.created_at, "retriever": newest.retriever, "golden": newest.golden,
        "queries": newest.query_count, "unanswered": newest.unanswered,
        "metrics": dict(newest.metrics), "intervals": {name: list(pair) for name, pair in newest.intervals.items()},
    }  # fmt: skip
    gaps = ""
    if newest.unanswered:
        gaps = f"; {newest.unanswered} of {newest.query_count + newest.unanswered} queries were not answered and are left out"
    state: PartState = "unknown" if gaps else "ok"
    return HealthPart("evaluation", state, f"{', '.join(shown)}{_of(newest)} at {newest.created_at}{gaps}", figures)


def _of(row: StoredResult) -> str:
    """Return which search on which golden set a result is about, as far as it says."""
    return (f" of {shorten(row.retriever)[:60]}" if row.retriever else "") + (f" on {row.golden}" if row.golden else "")


def _gate(results: list[StoredResult]) -> HealthPart:
    newest = next((one for one in results if one.gate is not None), None)
    if newest is None:
        whose = _of(results[0]) if results else ""
        says = f"no run{whose} was gated yet" if whose else "nothing was gated yet"
        about = {"retriever": results[0].retriever, "golden": results[0].golden} if results else {}
        return HealthPart("gate", "unknown", f"{says}; run `ringtrue gate`, or evaluate with a baseline", about)
    states: dict[str, PartState] = {"pass": "ok", "fail": "wrong"}
    figures = {
        "verdict": newest.gate, "at": newest.created_at, "run_id": newest.run_id, "retriever": newest.retriever,
        "golden": newest.golden,
    }  # fmt: skip
    says = f"{newest.gate}{_of(newest)} at {newest.created_at}"
    return HealthPart("gate", states.get(str(newest.gate), "unknown"), says, figures)


def _constitutional(results: list[StoredResult]) -> HealthPart | None:
    """Return the part of constitutional documents; None for a project that never measured it."""
    for one in results:
        for measure, value in one.metrics.items():
            if measure.startswith("Constitutional"):
                state: PartState = "ok" if value >= 1 else "wrong"
                return HealthPart(
                    "constitutional", state, f"{measure} {value:.4f}; 1 is wanted", {"rate": value, "measure": measure}
                )
    return None


def _backlog(counts: Mapping[str, Any]) -> HealthPart:
    if not counts["total"]:
        return HealthPart("backlog", "unused", "nothing to review", counts)
    oldest = f", the oldest of {counts['oldest_pending_at']}" if counts["oldest_pending_at"] else ""
    return HealthPart("backlog", "ok", f"{counts['pending_review']:,} of {counts['total']:,} wait for review{oldest}", counts)


def _shadow(store: Store, project: str, now: datetime) -> HealthPart:
    def runs(flag: Flag, known: bool) -> bool:
        if known:
            return flag.shadow and flag.state in ("running", "paused")
        # Without a flag only its newest runs tell that a live shadow still runs.
        recent = store.shadow_runs(feature_id=flag.name, project=project, since=now - RECENT, limit=1)
        return bool(recent) and not is_stopped(store, flag.name, project=project)

    running = [flag for flag, known in shadowed(store, project=project) if runs(flag, known)]
    if not running:
        return HealthPart("shadow", "unused", "no candidate runs in the shadow")
    figures: dict[str, Any] = {}
    lines, states = [], set[PartState]()
    for flag in running:
        found = shadow_of(store, flag)
        share, gone = found.failure_share, found.missing_share or 0.0
        figures[flag.name] = {
            "queries": found.queries, "failures": found.failures, "missing": found.missing, "p95_increase": found.p95_increase,
        }  # fmt: skip
        wrong = gone > MISSING_SHARE or (share is not None and share > FAILURE_SHARE)
        states.add("wrong" if wrong else "unknown" if share is None else "ok")
        missing = f", {found.missing:,} missing ({gone:.0%} of the live sample)" if found.missing else ""
        lines.append(f"{flag.name}: {_counted(found.queries)}, {found.failures:,} failed{missing}")
    return HealthPart("shadow", _worst(states), "; ".join(lines), figures)


def _tests(store: Store, project: str) -> HealthPart:
    tests = store.tests(project=project)
    if not tests:
        return HealthPart("tests", "unused", "no sequential test")
    words = {"accept-treatment": "candidate accepted", "accept-control": "candidate rejected"}
    outcomes = [words.get(str(one.decision), "not decided" if one.status == "running" else one.status) for one in tests]
    counted = [_counted(decided_after(one)) for one in tests]
    lines = [f"{one.feature_id}: {came} after {many}" for one, came, many in zip(tests, outcomes, counted, strict=True)]
    figures = {
        one.feature_id: {"status": one.status, "decision": one.decision, "samples": one.sample_count, "at": one.updated_at}
        for one in tests
    }
    return HealthPart("tests", "ok", "; ".join(lines), figures)


def _counted(queries: int) -> str:
    return f"{queries:,} {'query' if queries == 1 else 'queries'}"


def _rollout(store: Store, project: str) -> HealthPart:
    flags = store.flags(project=project)
    if not flags:
        return HealthPart("rollout", "unused", "no flag")
    back = {}
    for flag in flags:
        entry = next(iter(store.audit(project=project, subject=flag.name, limit=1)), None)
        if flag.state == "paused" and entry is not None and str(entry.detail.get("why", "")).startswith("rollback"):
            back[flag.name] = str(entry.detail["why"])
    # Those in trouble are what a reader looks for; of the others it is enough how many there are.
    lines = [f"{flag.name}: {flag.rollout:g} %, {back[flag.name]}" for flag in flags if flag.name in back]
    states = Counter(flag.state for flag in flags if flag.name not in back)
    told = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    lines += [f"{'other flags: ' if back else 'flags: '}{told}"] if told else []
    figures = {flag.name: {"rollout": flag.rollout, "state": flag.state, "why": back.get(flag.name)} for flag in flags}
    return HealthPart("rollout", "wrong" if back else "ok", "; ".join(lines), figures)


def _index(folder: Path | None, retriever: str) -> HealthPart:
    if folder is None:
        return HealthPart("index", "unused", "no folder was named")
    if not folder.is_dir():
        return HealthPart("index", "wrong", f"{folder} is not there")
    collection = Documents(folder)
    if collection.unfinished:
        return HealthPart("index", "wrong", f"the last ingest into {folder} did not finish; run it again")
    behind = {index.folder.name: index.pending() for index in indexes_of(build(retriever, collection))}
    late = [f"{name} lacks {count:,}" for name, count in behind.items() if count]
    says = f"; {', '.join(late)}; the next search brings it up" if late else ", every index up to date"
    state: PartState = "wrong" if late or not len(collection) else "ok"
    figures = {"documents": len(collection), "behind": behind}
    return HealthPart("index", state, f"{len(collection):,} documents{says}", figures)
