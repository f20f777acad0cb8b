"""What is tried on users, and how far it may go: shadow runs, sequential tests and flags."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ringtrue.answers import ListedFlag, ShadowSummary, Status
from ringtrue.errors import InputError, MissingInput, nearest
from ringtrue.log import Redactor
from ringtrue.rollout import (
    Decision,
    Recorded,
    Scores,
    change_flag,
    checked_scores,
    create_test,
    decide,
    existing_flag,
    found_test,
    gather,
    grades_by_words,
    is_on,
    only_forced,
    overrides,
    record_difference,
    record_scores,
    roll_back,
    scorer,
    set_status,
    shadow_of,
    standing,
    step,
)
from ringtrue.rollout import Standing as TestStanding
from ringtrue.rollout.abtest import measure_of
from ringtrue.rollout.evidence import shadowed as shadow_features
from ringtrue.rollout.scoring import compared
from ringtrue.service.errors import Refused
from ringtrue.service.models import record_from
from ringtrue.service.work.library import check_address
from ringtrue.store import ABTest, AuditEntry, Flag, ShadowRun, TestPoint, timestamp

if TYPE_CHECKING:
    from ringtrue.service.auth import Caller
    from ringtrue.service.context import Service

SHADOW_K = 10
"""Depth to which lists of production and candidate are compared."""


# ── shadow runs ─────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Shadowed:
    """A feature whose candidate runs beside production, and what that has shown."""

    flag: Flag
    known: bool
    """False where nobody set the flag, and runs were recorded all the same."""
    summary: ShadowSummary


def shadowed(service: Service, caller: Caller) -> list[Shadowed]:
    """Return the features of the project that run or ran in the shadow."""
    store = service.of(caller)
    found = [Shadowed(flag, known, shadow_of(store, flag)) for flag, known in shadow_features(store, project=caller.project)]
    return [one for one in found if one.flag.shadow or one.summary.queries]


def shadow_feature(service: Service, caller: Caller, feature: str) -> Shadowed:
    """Return what the shadow of a feature has shown; raises MissingInput where there is neither a flag nor a run."""
    store = service.of(caller)
    known = store.flag(feature, project=caller.project)
    flag = known or Flag(feature, project=caller.project)
    found = Shadowed(flag, known is not None, shadow_of(store, flag))
    if known is None and not found.summary.queries:
        names = [one.name for one in store.flags(project=caller.project)]
        cure = f"did you mean {nearest(feature, names)}?" if names else "no feature runs in the shadow yet"
        raise MissingInput(f"there is no shadow of '{feature}'; {cure}")
    return found


def shadow_rows(service: Service, caller: Caller, feature: str, *, limit: int) -> list[ShadowRun]:
    """Return the newest runs of a feature, the newest first."""
    return service.of(caller).shadow_runs(feature_id=feature, project=caller.project, limit=limit, newest=True)[::-1]


def record_shadow(service: Service, caller: Caller, rows: Sequence[ShadowRun]) -> int:
    """Keep runs of a candidate that runs elsewhere, compared here as anywhere, and return how many are new.

    Queries that are judged, under their id or in the same words, get their differences in quality.
    """
    store, cleaner = service.of(caller), Redactor()
    searches = store.queries(project=caller.project, query_ids=sorted({row.query_id for row in rows}))
    judged = grades_by_words(searches, store.judgments(project=caller.project)) if searches else {}
    score = scorer(judged, k=SHADOW_K)
    kept = []
    for row in rows:
        if row.error is not None:
            kept.append(replace(row, error=cleaner.text(row.error)))
            continue
        control, treatment = score(row.query_id, row.control_result_ids), score(row.query_id, row.treatment_result_ids)
        both = None if control is None or treatment is None else (control, treatment)
        kept.append(compared(row, k=SHADOW_K, scores=both))
    return store.add_shadow_runs(kept)


# ── sequential tests ────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Tested:
    """A sequential test, how it stands, and the path of its evidence between the bounds."""

    test: ABTest
    standing: TestStanding
    points: tuple[TestPoint, ...] = ()


def tests(service: Service, caller: Caller) -> list[Tested]:
    """Return the tests of the project by feature, without their paths."""
    return [Tested(test, standing(test)) for test in service.of(caller).tests(project=caller.project)]


def tested(service: Service, caller: Caller, feature: str) -> Tested:
    """Return a feature's test with its path; raises MissingInput where there is none."""
    store = service.of(caller)
    test = found_test(store, feature, project=caller.project)
    return Tested(test, standing(test), tuple(store.test_points(feature, project=caller.project)))


def start_test(service: Service, caller: Caller, feature: str, **options: Any) -> Tested:
    """Start the test of a feature, write down who did it, and return it.

    Raises InputError for a name or options that cannot be, and Refused (409) where the feature has a test and is not begun
    ``again``.
    """
    check_address("a feature", feature)
    store, now = service.of(caller), timestamp(service.now())

    def taken() -> bool:
        return not options.get("again") and store.test(feature, project=caller.project) is not None

    said = f"feature '{feature}' has a test already; look at it, or begin it anew with again"
    if taken():
        raise Refused(409, "conflict", said, field="body.feature")
    try:
        test = create_test(store, feature, now=now, who=caller.who, project=caller.project, **options)
    except InputError:
        if taken():  # somebody else was quicker
            raise Refused(409, "conflict", said, field="body.feature") from None
        raise
    if not options.get("again"):  # a test begun anew is written down already
        store.add_audit(AuditEntry(now, caller.who, "test.create", feature, {"method": test.method}, caller.project))
    return Tested(test, standing(test))


def record_in_test(
    service: Service, caller: Caller, feature: str, rows: Sequence[Scores] = (), differences: Sequence[tuple[str, float]] = ()
) -> list[tuple[str, Recorded]]:
    """Count scores of both sides, or differences, and return what became of each; all are checked before any is counted.

    A query counts once, whoever reports it and however often.
    """
    store, project = service.of(caller), caller.project
    test, now = found_test(store, feature, project=project), timestamp(service.now())
    measure = measure_of(test)
    if differences and measure is not None:
        wanted = f"{measure} scores of both sides"
        raise InputError(f"query '{differences[0][0]}': the test of '{feature}' counts {wanted}; report those")
    found: list[tuple[str, Recorded]] = []
    for row in checked_scores(test, rows):
        said = record_scores(
            store, feature, row.query_id, control=row.control, treatment=row.treatment, now=now, project=project
        )
        found.append((row.query_id, said))
    for query_id, difference in differences:
        found.append((query_id, record_difference(store, feature, query_id, difference, now=now, project=project)))
    return found


def change_status(service: Service, caller: Caller, feature: str, status: Status, *, why: str = "") -> Tested:
    """Pause, resume, graduate or reject a test; it is written down who did it."""
    now = timestamp(service.now())
    test = set_status(service.of(caller), feature, status, now=now, who=caller.who, why=why, project=caller.project)
    return Tested(test, standing(test))


# ── flags ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def flags(service: Service, caller: Caller) -> list[ListedFlag]:
    """Return the flags of the project by name, with those that only the server's environment sets."""
    there, forced = service.of(caller).flags(project=caller.project), overrides()
    found = [(flag, False) for flag in there] + [(flag, True) for flag in only_forced(there, forced, project=caller.project)]
    return [
        record_from(ListedFlag, flag, preset=unset, override=forced.get(flag.name))
        for flag, unset in sorted(found, key=lambda one: one[0].name)
    ]


def checklist(service: Service, caller: Caller, name: str) -> Decision:
    """Return what would become of a flag now, and every check behind it; nothing changes. Raises MissingInput."""
    store, now = service.of(caller), service.now()
    flag = existing_flag(store, name, project=caller.project)
    return decide(flag, gather(store, flag, now=now), now)


def set_flag(service: Service, caller: Caller, name: str, *, why: str = "", **changes: Any) -> Flag:
    """Make a flag or change what is given of it; ``measure`` and ``stage_hours`` are kept in its metadata."""
    store = service.of(caller)
    facts = {field: changes.pop(field) for field in ("measure", "stage_hours") if field in changes}
    if facts:
        from ringtrue.measures import Measure

        if "measure" in facts:
            facts["measure"] = str(Measure.parse(facts["measure"]))
        old = store.flag(name, project=caller.project)
        changes["metadata"] = {**(old.metadata if old is not None else {}), **facts}
    return change_flag(store, name, who=caller.who, now=service.now(), why=why, project=caller.project, **changes)


def make_flag(service: Service, caller: Caller, name: str, *, why: str) -> Flag:
    """Make a flag that reaches nobody yet; raises Refused (409) where somebody has set one of this name."""
    if service.of(caller).flag(name, project=caller.project) is not None:
        raise Refused(409, "conflict", f"there is a flag '{name}' already; open it, or choose another name", field="name")
    return set_flag(service, caller, name, why=why)


def resume_flag(service: Service, caller: Caller, name: str, *, why: str) -> Flag:
    """Let the evidence move a paused flag again; raises MissingInput, and Refused (409) for one that is not paused."""
    flag = existing_flag(service.of(caller), name, project=caller.project)
    if flag.state != "paused":
        raise Refused(409, "conflict", f"flag '{name}' is {flag.state}, not paused; there is nothing to resume")
    return set_flag(service, caller, name, why=f"resumed: {why}", state="running")


def step_flag(service: Service, caller: Caller, name: str, *, breaches: Sequence[str] = ()) -> Decision:
    """Take a flag one stage further, or back, as the evidence says; return the decision."""
    store = service.of(caller)
    return step(store, name, now=service.now(), who=caller.who, breaches=breaches, project=caller.project)


def roll_back_flag(service: Service, caller: Caller, name: str, *, why: str) -> Flag:
    """Take a feature away from everybody at once and pause it."""
    return roll_back(service.of(caller), name, now=service.now(), who=caller.who, why=why, project=caller.project)


def variant(service: Service, caller: Caller, name: str, identity: str) -> tuple[Flag, bool, float | None]:
    """Return a flag, whether it is on for an identity, and the percentage of the environment where that wins."""
    flag = existing_flag(service.of(caller), name, project=caller.project)
    forced = overrides().get(name)
    return flag, is_on(flag, identity, override=forced), forced


def flag_history(service: Service, caller: Caller, name: str, *, limit: int = 50) -> list[AuditEntry]:
    """Return who changed a flag, the newest first."""
    return service.of(caller).audit(project=caller.project, subject=name, limit=limit)
