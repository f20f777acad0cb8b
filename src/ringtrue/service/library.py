"""Golden sets, baselines and runs of a project by name, for REST and the pages; and the golden sets that come with Ringtrue."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from ringtrue.answers import BaselineItem, BaselineUpdate, GoldenItem
from ringtrue.config import load_config
from ringtrue.errors import InputError, MissingInput, nearest
from ringtrue.golden import ValidationReport, content_hash, golden_from, load, record_of, shipped, validate
from ringtrue.report import Report, known, report_on
from ringtrue.retrieve import shorten
from ringtrue.rollout.health import set_name
from ringtrue.run import Evaluation, unpacked
from ringtrue.service.errors import Refused, clean
from ringtrue.service.models import record_from, wrong_cursor
from ringtrue.store import KeptVersion, StoredBaseline, StoredGoldenSet, timestamp
from ringtrue.verdict import (
    Baseline,
    Policy,
    baseline_from,
    baseline_of,
    baseline_record,
    has_moved,
    movements,
    next_version,
    objections,
    with_measures,
)

if TYPE_CHECKING:
    from ringtrue.records import GoldenSet
    from ringtrue.service.auth import Access
    from ringtrue.store import StoredResult

Item = TypeVar("Item", GoldenItem, BaselineItem)
LONGEST = 120
"""Characters of a name or a version."""
_EDGE, _INNER = r"[^\s/@\\?#%\x00-\x1f\x7f]", r"[^/@\\?#%\x00-\x1f\x7f]"
NAME = re.compile(rf"(?!\.{{1,2}}\Z){_EDGE}(?:{_INNER}{{0,{LONGEST - 2}}}{_EDGE})?")
"""What a golden set or a baseline may be called: anything that an address can hold, without the @ before a version."""
ADDRESS = re.compile(r"(?!\.{1,2}\Z)(?!\s)[^/\\?#%\x00-\x1f\x7f]+(?<!\s)")
"""The same for what has no versions."""

UPDATE = "baseline.update"
"""What the audit trail calls it that a run became a baseline."""
MOST_NAMED = 5
"""Versions that a message names."""


@dataclass(frozen=True)
class KeptSet:
    """A version of a golden set, with where it comes from and what is wrong with it."""

    golden: GoldenSet
    created_at: str | None
    fingerprint: str
    report: ValidationReport
    new: bool = False


def named(text: str) -> tuple[str, str | None]:
    """Return name and version of ``name@version``; raises InputError for what can be neither.

    >>> named("hotel@1.0.0")
    ('hotel', '1.0.0')
    """
    name, at, version = text.rpartition("@") if "@" in text else (text, "", "")
    if not NAME.fullmatch(name) or (at and not NAME.fullmatch(version)):
        raise InputError(f"'{text[:80]}' is not a valid name; write a name, or name@version like hotel@1.0.0")
    return name, version or None


def check_address(what: str, name: str) -> None:
    """Raise InputError for the name of something new that no address would lead to.

    >>> check_address("a feature", "rerank v2")
    """
    if not ADDRESS.fullmatch(name):
        raise InputError(f"'{name[:80]}' cannot be the name of {what}: it cannot be used in a URL; leave out / \\ ? # %")


# ── golden sets ─────────────────────────────────────────────────────────────────────────────────────────────────────


@cache
def _came_with_us(name: str) -> GoldenSet:
    return load(name)


def golden_named(access: Access, text: str | None) -> GoldenSet:
    """Return a golden set of the project, or a shipped one, by ``name`` or ``name@version``; without a name the server's own.

    Raises MissingInput, and InputError if none is named and the server has none.
    """
    if text is not None:
        return _found(access, text)[0]
    if access.service.settings.golden is None:
        raise InputError("no golden set is named; name one such as 'hotel', or send a test_set")
    return load(access.service.settings.golden)


def _found(access: Access, text: str) -> tuple[GoldenSet, str | None]:
    name, version = named(text)
    row = access.store.golden_set(name, version, project=access.project)
    if row is not None:
        return golden_from(row.content, name=row.name), row.created_at
    if name in shipped() and version in (None, _came_with_us(name).version):
        return _came_with_us(name), None
    there = [one.name for one in golden_sets(access)]
    if name in there:
        raise MissingInput(f"golden set '{name}' has no version '{version}'; {_versions(golden_versions(access, name))}")
    raise MissingInput(f"there is no golden set '{name}'; did you mean {nearest(name, there)}?")


def _versions(known: Sequence[GoldenItem | BaselineItem]) -> str:
    """Return which versions there are, the last saved first."""
    more = f" and {len(known) - MOST_NAMED} more" if len(known) > MOST_NAMED else ""
    return f"it has {', '.join(one.version for one in known[:MOST_NAMED])}{more}"


def golden_sets(access: Access) -> list[GoldenItem]:
    """Return every golden set by name, the project's own before a shipped one of the same name."""
    ours = _last(GoldenItem, access.store.golden_sets(project=access.project))
    names = {one.name for one in ours}
    theirs = [GoldenItem(name, _came_with_us(name).version, None, 1, shipped=True) for name in shipped() if name not in names]
    return sorted([*ours, *theirs], key=lambda one: one.name)


def _last(kind: type[Item], rows: Sequence[KeptVersion]) -> list[Item]:
    """Return of versions, the last saved first as they come, the last of each name with how many the name has."""
    counts = Counter(row.name for row in rows)
    newest = {row.name: row for row in reversed(rows)}
    return [record_from(kind, newest[name], versions=counts[name]) for name in sorted(newest)]


def golden_versions(access: Access, name: str) -> list[GoldenItem]:
    """Return the versions of a golden set, the last saved first; raises MissingInput if there is none."""
    rows = access.store.golden_sets(project=access.project, name=named(name)[0])
    if rows:
        return [record_from(GoldenItem, row, versions=len(rows)) for row in rows]
    golden = golden_named(access, name)
    return [GoldenItem(name, golden.version, None, 1, shipped=True)]


def golden_kept(access: Access, text: str) -> KeptSet:
    """Return a version of a golden set and what validation says of it; raises MissingInput."""
    golden, created_at = _found(access, text)
    return KeptSet(golden, created_at, content_hash(golden), validate(golden))


def keep_golden(access: Access, golden: GoldenSet) -> KeptSet:
    """Keep a golden set in the store and return it with everything that is wrong with it.

    A version never changes: raises Refused (409) if another one of this number is there, and InputError for a name that no
    address can hold.
    """
    if not NAME.fullmatch(golden.id) or not NAME.fullmatch(golden.version):
        raise InputError(
            f"the set calls itself '{golden.id[:60]}' version '{golden.version[:30]}'; use a name without / @ ? # % and "
            f"a version like 1.2.0, each of at most {LONGEST} characters"
        )
    now = access.now()
    row = StoredGoldenSet(
        golden.id, golden.version, record_of(golden), timestamp(now), access.project, fingerprint=content_hash(golden)
    )
    try:
        new = access.store.save_golden_set(row)
    except InputError:
        said = f"golden set '{golden.id}' has another version {golden.version} already, and a version never changes; raise it"
        raise Refused(409, "version_taken", said, field="body.version") from None
    if new:
        access.note("golden.upload", f"{golden.id}@{golden.version}", {"queries": len(golden.queries)})
    return KeptSet(golden, row.created_at, row.fingerprint, validate(golden), new)


def keep_shipped(access: Access, name: str) -> KeptSet:
    """Keep a copy of a shipped set in the store, so that versions of one's own can follow it; raises MissingInput."""
    if name not in shipped():
        raise MissingInput(f"no golden set '{name[:80]}' comes with Ringtrue; shipped are {', '.join(shipped())}")
    return keep_golden(access, _came_with_us(name))


# ── baselines ───────────────────────────────────────────────────────────────────────────────────────────────────────


def baselines(access: Access) -> list[BaselineItem]:
    """Return every baseline of the project by name, with its last version."""
    return _last(BaselineItem, access.store.baselines(project=access.project))


def baseline_versions(access: Access, name: str) -> list[BaselineItem]:
    """Return the versions of one baseline, the last saved first."""
    rows = access.store.baselines(project=access.project, name=named(name)[0])
    return [record_from(BaselineItem, row, versions=len(rows)) for row in rows]


def baseline_named(access: Access, text: str) -> Baseline:
    """Return a baseline by ``name`` or ``name@version``; raises MissingInput."""
    name, version = named(text)
    row = access.store.baseline(name, version, project=access.project)
    if row is not None:
        return baseline_from(row.content, name=row.name)
    there = [one.name for one in baselines(access)]
    if name in there:
        raise MissingInput(f"baseline '{name}' has no version '{version}'; {_versions(baseline_versions(access, name))}")
    known = f"did you mean {nearest(name, there)}?" if there else "there is none yet: keep a run as the first one"
    raise MissingInput(f"there is no baseline '{name}'; {known}")


def server_policy(given: Mapping[str, Any] | None = None) -> Policy:
    """Return the rules of the server's ringtrue.toml with those of a request in their place; raises InputError."""
    config = load_config()
    known = [item.name for item in fields(Policy)]
    for name in given or ():
        if name not in known:
            raise InputError(f"policy has no '{name[:60]}'; did you mean {nearest(name, known)}?")
    settings = {name: value for name, value in config.gate.items() if name in known}
    lists = {name: tuple(value) if isinstance(value, list) else value for name, value in (given or {}).items()}
    return Policy(**{**settings, **lists})


def keep_baseline(
    access: Access,
    evaluation: Evaluation,
    *,
    name: str,
    version: str | None = None,
    force: bool = False,
    reason: str = "",
    run_id: str | None = None,
) -> BaselineUpdate:
    """Take a run as the new standard under a name, by the rules of ``ringtrue baseline update``.

    A run that is worse than the last version is refused (409) unless forced with a reason, which stays with the baseline.
    ``run_id`` is what the run is kept under; the audit trail remembers it, as several runs may have the same answers.
    """
    if named(name) != (name, None):
        raise InputError(f"'{name[:80]}' cannot be the name of a baseline; leave out @ and the version")
    if force and not reason.strip():
        raise InputError("force needs a reason for the record; add reason")
    policy = server_policy()
    store = access.store
    row = store.baseline(name, project=access.project)
    old = None if row is None else baseline_from(row.content, name=name)
    whole, _ = with_measures(evaluation, policy.measures)
    moves = movements(old, baseline_of(whole))
    against = objections(evaluation, old, policy)
    if against and not force:
        said = f"the run is no better standard than baseline {old.version if old else '(none)'}: {'; '.join(against)}"
        raise Refused(409, "worse_than_baseline", f"{said[:1500]}; to keep it anyway, send force and a reason")
    number = version or ("1.0.0" if old is None else next_version(old.version, moved=has_moved(moves)))
    made = baseline_of(whole, version=number, reason=reason.strip())
    kept = StoredBaseline(name, number, baseline_record(made), timestamp(access.now()), access.project, made.reason)
    try:
        store.save_baseline(kept)
    except InputError:
        said = f"baseline '{name}' has another version {number} already, and a version never changes; leave version out"
        raise Refused(409, "version_taken", said, field="body.version") from None
    detail = {"reason": made.reason, "retriever": made.retriever, "run_id": run_id}
    access.note(UPDATE, f"{name}@{number}", detail)
    return BaselineUpdate(name, number, None if old is None else old.version, against, moves)


# ── what readers look at, kept open ──
# None of it ever changes under its id, so what is kept is never out of date; whether a project has it is asked every time.


def run_opened(access: Access, run_id: str) -> tuple[StoredResult, Evaluation | None]:
    """Return the figures of a run, and its answers where they are kept; raises MissingInput."""
    store = access.store
    row = store.result(run_id, project=access.project)
    if row is None:
        raise MissingInput(f"there is no run '{run_id:.120}'; look it up in the list of runs")
    if run_id not in store.run_names(project=access.project, among=[run_id]):
        return row, None

    def opened() -> tuple[int, Evaluation]:
        kept = store.run(run_id, project=access.project)
        if kept is None:
            raise MissingInput(f"the answers of run '{run_id:.120}' were deleted a moment ago; reload the page")
        found = unpacked(kept.content, name=kept.name)
        # Why a query failed may name places of the machine that it was asked on.
        cleaned = (one if one.error is None else replace(one, error=clean(one.error)) for one in found.rankings)
        return len(kept.content), replace(found, rankings=tuple(cleaned))

    return row, access.service.opened.runs.get((access.project, run_id), opened)


def answers_of(access: Access, run_id: str) -> Evaluation:
    """Return a run with its answers; raises MissingInput, also where only its figures are kept."""
    found = run_opened(access, run_id)[1]
    if found is None:
        raise MissingInput(f"run '{run_id:.120}' was stored without its answers; evaluate again")
    return found


def report_told(access: Access, evaluation: Evaluation, *, baseline: str | None) -> Report:
    """Return what there is to tell about a run, judged by the last version of a baseline where one is named.

    Raises MissingInput if there is no such baseline.
    """
    made_at = access.now().isoformat(timespec="seconds")
    if baseline is None:
        return report_on(evaluation, made_at=made_at)
    return report_on(evaluation, made_at=made_at, baseline=baseline_named(access, baseline), policy=server_policy())


def set_opened(access: Access, name: str, version: str) -> KeptSet:
    """Return a version of a golden set and what validation says of it; raises MissingInput."""
    name = named(name)[0]
    there = next((one for one in golden_versions(access, name) if one.version == version), None)

    def opened() -> tuple[int, KeptSet]:
        found = golden_kept(access, f"{name}@{version}")
        return max(1, len(found.golden.judgments)), found

    if there is None:  # a version that is not the newest of a shipped set; asking says which there are
        return opened()[1]
    return access.service.opened.sets.get((access.project, name, version, there.created_at), opened)


AT_A_TIME, MOST_LOOKED_AT = 100, 500
"""Runs that are read at a time, and before a list ends although there may be more."""
OTHERS = 6
"""Other runs that are shown beside a query."""
SHOWN = ("nDCG@10", "R@10", "RR")
"""The measures that lists of runs show."""


@dataclass(frozen=True)
class RunFilters:
    """Which runs somebody wants to see; None if it does not matter."""

    golden: str | None = None
    """Name of a golden set, or one version of it like hotel-v1.0.0."""
    retriever: str | None = None
    """A part of its expression, in full or as it is called in short."""
    gate: str | None = None

    def __bool__(self) -> bool:
        return any((self.golden, self.retriever, self.gate))

    def hold(self, row: StoredResult) -> bool:
        """True for a run that is wanted."""
        return (
            (not self.golden or (row.golden or "") == self.golden or set_name(row.golden) == self.golden)
            and (not self.retriever or self.retriever.casefold() in f"{row.retriever} {shorten(row.retriever)}".casefold())
            and (not self.gate or row.gate == self.gate)
        )


@dataclass(frozen=True)
class FoundRuns:
    """Some of the runs, and the cursor of the next page."""

    rows: list[StoredResult]
    next: str | None
    limited: bool = False
    """True if only the newest were looked at, and there are more."""


def find_runs(
    access: Access, wanted: RunFilters, *, sort: str = "-when", cursor: str | None = None, limit: int = 50
) -> FoundRuns:
    """Return the runs that are wanted: in the order of time page by page, in any other among the newest 500.

    Raises Refused (422) for an invalid cursor or order.
    """
    key, by_time = ORDERS.get(sort.removeprefix("-")), sort == "-when"
    if key is None:
        raise Refused(422, "invalid_input", f"runs cannot be sorted by '{sort:.40}'; use {', '.join(ORDERS)}")
    rows, after = newest_runs(
        access, wanted.hold, limit=limit if by_time else MOST_LOOKED_AT, cursor=cursor if by_time else None
    )
    if by_time:
        return FoundRuns(rows, after)
    known = [row for row in rows if key(row) is not None]
    known.sort(key=lambda row: (key(row), row.run_id), reverse=sort.startswith("-"))
    # Runs without the figure come last in either direction.
    return FoundRuns([*known, *(row for row in rows if key(row) is None)], None, after is not None)


def newest_runs(
    access: Access,
    wanted: Callable[[StoredResult], bool],
    *,
    limit: int,
    cursor: str | None = None,
    since: str | None = None,
    most: int = MOST_LOOKED_AT,
) -> tuple[list[StoredResult], str | None]:
    """Return the newest runs that are wanted among the next ``most``, and the cursor behind them if there may be more."""
    store, after, looked = access.store, cursor, 0
    found: list[StoredResult] = []
    while len(found) <= limit and looked < most:
        try:
            rows = store.results(project=access.project, since=since, limit=AT_A_TIME, before=after)
        except MissingInput:
            raise wrong_cursor() from None
        found += filter(wanted, rows)
        looked += len(rows)
        if len(rows) < AT_A_TIME:
            after = None
            break
        after = rows[-1].run_id
    return (found[:limit], found[limit - 1].run_id) if len(found) > limit else (found, after)


def figure(row: StoredResult, name: str) -> float | None:
    """Return the mean of a measure; None if the run has none."""
    return known(row.metrics.get(name))


ORDERS: dict[str, Callable[[StoredResult], Any]] = {
    "when": lambda row: row.created_at,
    "retriever": lambda row: (row.retriever or "").casefold() or None,
    "ndcg": lambda row: figure(row, "nDCG@10"),
    "recall": lambda row: figure(row, "R@10"),
    "mrr": lambda row: figure(row, "RR"),
    "p95": lambda row: row.latency_ms.get("p95"),
    "queries": lambda row: row.query_count,
}
"""By what runs are sorted."""


def kept_among(access: Access, rows: Sequence[StoredResult]) -> dict[str, str]:
    """Return the names of the runs whose answers are kept, by run id."""
    return access.store.run_names(project=access.project, among=[row.run_id for row in rows]) if rows else {}


def elsewhere(access: Access, row: StoredResult, query_id: str, measure: str) -> list[Any]:
    """Return the newest other runs on the same version of the golden set, each with what it reached with a query."""
    rows = access.store.results(project=access.project, limit=AT_A_TIME)
    same = [one for one in rows if one.golden == row.golden and one.run_id != row.run_id and query_id in one.per_query]
    return [(one, known(one.per_query[query_id].get(measure))) for one in same[:OTHERS]]
