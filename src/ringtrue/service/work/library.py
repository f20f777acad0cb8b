"""Golden sets, baselines and runs of a project by name, and the golden sets that come with Ringtrue."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from ringtrue.answers import BaselineItem, GoldenItem
from ringtrue.config import load_config
from ringtrue.errors import InputError, MissingInput, nearest
from ringtrue.golden import Report, content_hash, golden_from, load, record_of, shipped, validate
from ringtrue.report import Report as RunReport
from ringtrue.report import report_on
from ringtrue.run import Evaluation, unpacked
from ringtrue.service.errors import Refused, clean
from ringtrue.store import KeptVersion, StoredBaseline, StoredGoldenSet, timestamp
from ringtrue.verdict import (
    Baseline,
    BaselineMovement,
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
    from ringtrue.service.auth import Caller
    from ringtrue.service.context import Service
    from ringtrue.store import StoredResult

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
    report: Report
    new: bool = False


@dataclass(frozen=True)
class KeptBaseline:
    """A baseline that was recorded: what it replaced, what moved, and what spoke against it."""

    name: str
    baseline: Baseline
    previous: str | None
    moves: tuple[BaselineMovement, ...]
    objections: tuple[str, ...]


def named(text: str) -> tuple[str, str | None]:
    """Return name and version of ``name@version``; raises InputError for what can be neither.

    >>> named("hotel@1.0.0")
    ('hotel', '1.0.0')
    """
    name, at, version = text.rpartition("@") if "@" in text else (text, "", "")
    if not NAME.fullmatch(name) or (at and not NAME.fullmatch(version)):
        raise InputError(f"'{text[:80]}' names nothing that is kept here; write a name, or name@version like hotel@1.0.0")
    return name, version or None


def check_address(what: str, name: str) -> None:
    """Raise InputError for the name of something new that no address would lead to.

    >>> check_address("a feature", "rerank v2")
    """
    if not ADDRESS.fullmatch(name):
        raise InputError(f"'{name[:80]}' cannot be the name of {what}: no address leads to it; leave out / \\ ? # %")


# ── golden sets ─────────────────────────────────────────────────────────────────────────────────────────────────────


@cache
def _came_with_us(name: str) -> GoldenSet:
    return load(name)


def golden_named(service: Service, caller: Caller, text: str) -> GoldenSet:
    """Return a golden set of the project, or a shipped one, by ``name`` or ``name@version``; raises MissingInput."""
    return _found(service, caller, text)[0]


def golden_of_server(service: Service) -> GoldenSet:
    """Return the golden set that the server's settings name; raises InputError if they name none."""
    if service.settings.golden is None:
        raise InputError("no golden set is named; name one such as 'hotel', or send a test_set")
    return load(service.settings.golden)


def _found(service: Service, caller: Caller, text: str) -> tuple[GoldenSet, str | None]:
    name, version = named(text)
    row = service.of(caller).golden_set(name, version, project=caller.project)
    if row is not None:
        return golden_from(row.content, name=row.name), row.created_at
    if name in shipped() and version in (None, _came_with_us(name).version):
        return _came_with_us(name), None
    there = [one.name for one in golden_sets(service, caller)]
    if name in there:
        raise MissingInput(
            f"golden set '{name}' has no version '{version}'; {_versions(golden_versions(service, caller, name))}"
        )
    raise MissingInput(f"there is no golden set '{name}'; did you mean {nearest(name, there)}?")


def _versions(known: Sequence[GoldenItem | BaselineItem]) -> str:
    """Return which versions there are, the last saved first."""
    more = f" and {len(known) - MOST_NAMED} more" if len(known) > MOST_NAMED else ""
    return f"it has {', '.join(one.version for one in known[:MOST_NAMED])}{more}"


def golden_sets(service: Service, caller: Caller) -> list[GoldenItem]:
    """Return every golden set by name, the project's own before a shipped one of the same name."""
    ours = [GoldenItem(*_shown(row, count)) for row, count in _last(service.of(caller).golden_sets(project=caller.project))]
    names = {one.name for one in ours}
    theirs = [GoldenItem(name, _came_with_us(name).version, None, 1, shipped=True) for name in shipped() if name not in names]
    return sorted([*ours, *theirs], key=lambda one: one.name)


def _last(rows: Sequence[KeptVersion]) -> list[tuple[KeptVersion, int]]:
    """Return of versions, the last saved first as they come, the last of each name, and how many the name has."""
    counts = Counter(row.name for row in rows)
    newest = {row.name: row for row in reversed(rows)}
    return [(newest[name], counts[name]) for name in sorted(newest)]


def _shown(row: KeptVersion, versions: int) -> tuple[str, str, str, int]:
    return row.name, row.version, row.created_at, versions


def golden_versions(service: Service, caller: Caller, name: str) -> list[GoldenItem]:
    """Return the versions of a golden set, the last saved first; raises MissingInput where there is none."""
    rows = service.of(caller).golden_sets(project=caller.project, name=named(name)[0])
    if rows:
        return [GoldenItem(*_shown(row, len(rows))) for row in rows]
    golden = golden_named(service, caller, name)
    return [GoldenItem(name, golden.version, None, 1, shipped=True)]


def golden_kept(service: Service, caller: Caller, text: str) -> KeptSet:
    """Return a version of a golden set and what validation says of it; raises MissingInput."""
    golden, created_at = _found(service, caller, text)
    return KeptSet(golden, created_at, content_hash(golden), validate(golden))


def keep_golden(service: Service, caller: Caller, golden: GoldenSet) -> KeptSet:
    """Keep a golden set in the store and return it with everything that is wrong with it.

    A version never changes: raises Refused (409) where another one of this number is there, and InputError for a name that no
    address can hold.
    """
    for what, text in (("name", golden.id), ("version", golden.version)):
        if len(text) > LONGEST:
            said = f"the {what} of the set, '{text[:30]}…', has {len(text):,} characters; use one of at most {LONGEST}"
            raise InputError(said)
    if not NAME.fullmatch(golden.id) or not NAME.fullmatch(golden.version):
        raise InputError(
            f"the set calls itself '{golden.id[:60]}' version '{golden.version[:30]}'; use a name without / @ ? # % and "
            "a version like 1.2.0"
        )
    now = service.now()
    row = StoredGoldenSet(
        golden.id, golden.version, record_of(golden), timestamp(now), caller.project, fingerprint=content_hash(golden)
    )
    try:
        new = service.of(caller).save_golden_set(row)
    except InputError:
        said = f"golden set '{golden.id}' has another version {golden.version} already, and a version never changes; raise it"
        raise Refused(409, "version_taken", said, field="body.version") from None
    if new:
        service.note(caller, "golden.upload", f"{golden.id}@{golden.version}", {"queries": len(golden.queries)})
    return KeptSet(golden, row.created_at, row.fingerprint, validate(golden), new)


def keep_shipped(service: Service, caller: Caller, name: str) -> KeptSet:
    """Keep a copy of a shipped set in the store, so that versions of one's own can follow it; raises MissingInput."""
    if name not in shipped():
        raise MissingInput(f"no golden set '{name[:80]}' comes with Ringtrue; shipped are {', '.join(shipped())}")
    return keep_golden(service, caller, _came_with_us(name))


# ── baselines ───────────────────────────────────────────────────────────────────────────────────────────────────────


def baselines(service: Service, caller: Caller) -> list[BaselineItem]:
    """Return every baseline of the project by name, with its last version."""
    return [BaselineItem(*_shown(row, count)) for row, count in _last(service.of(caller).baselines(project=caller.project))]


def baseline_versions(service: Service, caller: Caller, name: str) -> list[BaselineItem]:
    """Return the versions of one baseline, the last saved first."""
    rows = service.of(caller).baselines(project=caller.project, name=named(name)[0])
    return [BaselineItem(*_shown(row, len(rows))) for row in rows]


def baseline_named(service: Service, caller: Caller, text: str) -> Baseline:
    """Return a baseline by ``name`` or ``name@version``; raises MissingInput."""
    name, version = named(text)
    row = service.of(caller).baseline(name, version, project=caller.project)
    if row is not None:
        return baseline_from(row.content, name=row.name)
    there = [one.name for one in baselines(service, caller)]
    if name in there:
        raise MissingInput(
            f"baseline '{name}' has no version '{version}'; {_versions(baseline_versions(service, caller, name))}"
        )
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
    service: Service,
    caller: Caller,
    evaluation: Evaluation,
    *,
    name: str,
    version: str | None = None,
    force: bool = False,
    reason: str = "",
    run_id: str | None = None,
) -> KeptBaseline:
    """Take a run as the new standard under a name, by the rules of ``ringtrue baseline update`` (B-1).

    A run that is worse than the last version is refused (409) unless forced with a reason, which stays with the baseline.
    ``run_id`` is what the run is kept under; the audit trail remembers it, as several runs may have the same answers.
    """
    if named(name) != (name, None):
        raise InputError(f"'{name[:80]}' cannot be the name of a baseline; leave out @ and the version")
    if force and not reason.strip():
        raise InputError("force needs a reason that others can read later; add it")
    policy = server_policy()
    store = service.of(caller)
    row = store.baseline(name, project=caller.project)
    old = None if row is None else baseline_from(row.content, name=name)
    whole, _ = with_measures(evaluation, policy.measures)
    moves = movements(old, baseline_of(whole))
    against = objections(evaluation, old, policy)
    if against and not force:
        said = f"the run is no better standard than baseline {old.version if old else '(none)'}: {'; '.join(against)}"
        raise Refused(409, "worse_than_baseline", f"{said[:1500]}; to take it all the same, send force and a reason")
    number = version or ("1.0.0" if old is None else next_version(old.version, moved=has_moved(moves)))
    made = baseline_of(whole, version=number, reason=reason.strip())
    kept = StoredBaseline(name, number, baseline_record(made), timestamp(service.now()), caller.project, made.reason)
    try:
        store.save_baseline(kept)
    except InputError:
        said = f"baseline '{name}' has another version {number} already, and a version never changes; leave version out"
        raise Refused(409, "version_taken", said, field="body.version") from None
    detail = {"reason": made.reason, "retriever": made.retriever, "run_id": run_id}
    service.note(caller, UPDATE, f"{name}@{number}", detail)
    return KeptBaseline(name, made, None if old is None else old.version, moves, against)


# ── what readers look at, kept open ──
# None of it ever changes under its id, so what is kept is never out of date; whether a project has it is asked every time.


def run_opened(service: Service, caller: Caller, run_id: str) -> tuple[StoredResult, Evaluation | None]:
    """Return the figures of a run, and its answers where they are kept; raises MissingInput."""
    store = service.of(caller)
    row = store.result(run_id, project=caller.project)
    if row is None:
        raise MissingInput(f"there is no run '{run_id:.120}'; look it up in the list of runs")
    if run_id not in store.run_names(project=caller.project, among=[run_id]):
        return row, None

    def opened() -> tuple[int, Evaluation]:
        kept = store.run(run_id, project=caller.project)
        if kept is None:
            raise MissingInput(f"the answers of run '{run_id:.120}' were deleted a moment ago; reload the page")
        found = unpacked(kept.content, name=kept.name)
        # Why a query failed may name places of the machine that it was asked on.
        cleaned = (one if one.error is None else replace(one, error=clean(one.error)) for one in found.rankings)
        return len(kept.content), replace(found, rankings=tuple(cleaned))

    return row, service.opened.runs.get((caller.project, run_id), opened)


def answers_of(service: Service, caller: Caller, run_id: str) -> Evaluation:
    """Return a run with its answers; raises MissingInput, also where only its figures are kept."""
    found = run_opened(service, caller, run_id)[1]
    if found is None:
        raise MissingInput(f"of run '{run_id:.120}' only its figures are kept, not its answers; evaluate again")
    return found


def report_opened(service: Service, caller: Caller, run_id: str, evaluation: Evaluation, *, baseline: str | None) -> RunReport:
    """Return what there is to tell about a run, judged by the last version of a baseline where one is named.

    Raises MissingInput where there is no such baseline.
    """
    made_at = service.now().isoformat(timespec="seconds")
    if baseline is None:
        return report_on(evaluation, made_at=made_at)
    standard, policy = baseline_named(service, caller, baseline), server_policy()
    key = (caller.project, run_id, baseline, standard.version, repr(policy))
    return service.opened.reports.get(
        key, lambda: (1, report_on(evaluation, made_at=made_at, baseline=standard, policy=policy))
    )


def set_opened(service: Service, caller: Caller, name: str, version: str) -> KeptSet:
    """Return a version of a golden set and what validation says of it; raises MissingInput."""
    name = named(name)[0]
    there = next((one for one in golden_versions(service, caller, name) if one.version == version), None)

    def opened() -> tuple[int, KeptSet]:
        found = golden_kept(service, caller, f"{name}@{version}")
        return max(1, len(found.golden.judgments)), found

    if there is None:  # a version that is not the newest of a shipped set; asking says which there are
        return opened()[1]
    return service.opened.sets.get((caller.project, name, version, there.created_at), opened)
