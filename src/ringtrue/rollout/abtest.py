"""A sequential test of a feature, kept in the store and fed query by query from any number of processes.

Every query counts once, whoever reports it and however often. The first decision stays; what comes later is still counted, for
``min_samples`` and the means, and changes nothing about it. Pausing, graduating and rejecting are the status, not the decision.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, get_args

from ringtrue.answers import Status
from ringtrue.errors import InputError, MissingInput, nearest
from ringtrue.stats import BetaBinomial, ConfidenceSequence, SequentialPlan, Sprt, candidate_means
from ringtrue.store import DEFAULT_PROJECT, ABTest, AuditEntry, TestPoint

if TYPE_CHECKING:
    from ringtrue.store import Store

State = Sprt | ConfidenceSequence | BetaBinomial

Method = Literal["sprt", "confidence-sequence", "beta-binomial"]
METHODS: tuple[Method, ...] = get_args(Method)
AGAIN = "again"
"""Among the sums: how often a test was begun anew."""
BEGUN_ANEW = "test begun anew"
"""What the audit trail says of it, with the start of the test before."""
MEASURE = "mrr"
"""What the scores are unless said otherwise; mrr and ndcg have columns of their own in the store."""


@dataclass(frozen=True, slots=True)
class PairedScores:
    """The scores of both sides on one query, and where they stand in a file."""

    query_id: str
    control: float
    treatment: float
    place: str = ""


@dataclass(frozen=True, slots=True)
class Recorded:
    """What became of one query."""

    test: ABTest
    counted: bool
    why_not: str = ""
    """Why it was not counted: counted before, or the test is paused or over."""


@dataclass(frozen=True, slots=True)
class TestStanding:
    """How a test stands, in figures and one sentence."""

    feature_id: str
    project: str
    method: str
    status: Status
    decision: str
    decided_after: int | None
    samples: int
    mean_difference: float | None
    control: float | None
    """Mean score; None if only differences are counted, or none yet."""
    treatment: float | None
    measure: str | None
    interval: tuple[float, float] | None
    """Of the mean difference, valid at every look; None for methods that have none."""
    sigma: float | None
    evidence: float
    """Log likelihood ratio, log capital or log odds; decided where it leaves the bounds."""
    upper_bound: float
    lower_bound: float
    error_controlled: bool
    """Whether looking after every query keeps alpha."""
    reason: str


def create_test(
    store: Store,
    feature_id: str,
    *,
    now: str,
    method: str = "sprt",
    measure: str | None = MEASURE,
    alpha: float = 0.05,
    beta: float = 0.20,
    delta: float = 0.05,
    sigma: float | None = None,
    min_samples: int = 100,
    graduation_threshold: float = 0.03,
    again: bool = False,
    who: str = "",
    project: str = DEFAULT_PROJECT,
) -> ABTest:
    """Start the test of a feature and return it.

    ``measure`` names what the scores are; None for a test that is fed differences, such as credits of interleaving. ``sigma``
    is the known standard deviation of the differences; estimated unless given. ``again`` begins anew if the feature has a
    test, as after a change of the candidate: nothing counted before is taken over, nor counted again under its id; a question
    that the candidate answers afresh counts under another (``counted_as``). Raises InputError if an option is unusable or,
    without ``again``, the feature has a test.
    """
    binary = "a beta-binomial test counts successes of both sides; name what succeeds, such as --measure hit"
    for wrong, why in (
        (method not in METHODS, f"cannot use method {method!r}; write {nearest(method, METHODS)}"),
        (not feature_id.strip(), "a test needs the name of its feature, such as rerank-v2"),
        (
            measure is not None and not measure.replace("_", "").isalnum(),
            f"cannot use measure {measure!r}; letters, digits and _ only, such as mrr or ndcg",
        ),
        (method == "beta-binomial" and measure is None, binary),
        (sigma is not None and method != "sprt", f"{method} takes no sigma; leave it out, or use sprt"),
    ):
        if wrong:
            raise InputError(why)
    sums = {} if measure is None else {f"control_{measure}": 0.0, f"treatment_{measure}": 0.0}
    sums |= {} if sigma is None else {"known_sigma": sigma}
    sums |= {"differences": 0.0, "squares": 0.0}
    state = ABTest(
        feature_id, "running", alpha, beta, delta, now, now, project, method, sums=sums, min_samples=min_samples,
        graduation_threshold=graduation_threshold, decision="continue",
    )  # fmt: skip
    state = _judged(state, _state(state))
    before = store.test(feature_id, project=project) if again else None
    if before is None:
        store.create_test(state)
        return state

    def anew(test: ABTest) -> ABTest:
        return replace(state, sums={**state.sums, AGAIN: test.sums.get(AGAIN, 0.0) + 1})

    state = _changed(store, feature_id, f"status:again:{now}", anew, project=project)
    past = {"samples": before.sample_count, "decision": before.decision, "started_at": before.started_at}
    store.add_audit(AuditEntry(now, who, BEGUN_ANEW, feature_id, past, project))
    return state


def record_scores(
    store: Store,
    feature_id: str,
    query_id: str,
    *,
    control: float,
    treatment: float,
    now: str,
    project: str = DEFAULT_PROJECT,
) -> Recorded:
    """Count the scores of both sides on one query; the same query id is counted once.

    Raises InputError for scores outside 0 to 1, or a test of differences alone; MissingInput if there is no such test.
    """
    return _record(store, feature_id, query_id, (control, treatment), now=now, project=project)


def checked_scores(test: ABTest, rows: Iterable[PairedScores]) -> list[PairedScores]:
    """Return rows that can all be counted in a test, a query that is there twice once; nothing is counted yet.

    Raises InputError naming the place of the first that cannot: a score outside 0 to 1, something else than the test counts,
    or a query whose scores contradict those given before.
    """
    kept: dict[str, PairedScores] = {}
    for row in rows:
        place = f"{row.place}: " if row.place else ""
        try:
            _advanced(test, row.query_id, (row.control, row.treatment), now=test.updated_at)
        except InputError as problem:
            raise InputError(f"{place}{problem}") from problem
        first = kept.setdefault(row.query_id, row)
        if (first.control, first.treatment) != (row.control, row.treatment):
            had = f"{first.control:g} and {first.treatment:g}" + (f" at {first.place}" if first.place else "")
            said = f"has the scores {row.control:g} and {row.treatment:g}, but {had}; keep one of them"
            raise InputError(f"{place}query {row.query_id!r}: {said}")
    return list(kept.values())


def counted_as(test: ABTest, question: str) -> str:
    """Return the id under which a question counts that a candidate answers afresh: once in a test, once more in one begun anew.

    >>> test = ABTest("f", "running", 0.05, 0.2, 0.05, "2026-03-01T00:00:00Z", "2026-03-01T00:00:00Z")
    >>> counted_as(test, "q1"), counted_as(replace(test, sums={"again": 2.0}), "q1")
    ('q1', 'again 2: q1')
    """
    times = int(test.sums.get(AGAIN, 0.0))
    return f"again {times}: {question}" if times else question


def record_difference(
    store: Store, feature_id: str, query_id: str, difference: float, *, now: str, project: str = DEFAULT_PROJECT
) -> Recorded:
    """Count one difference, such as the credit of an interleaved list; the same query id is counted once.

    Raises InputError for a difference outside −1 to 1, or a test of scores; MissingInput if there is no such test.
    """
    if not -1 <= difference <= 1:
        raise InputError(f"query {query_id!r}: the difference {difference!r} does not lie in −1 to 1; scale it beforehand")
    return _record(store, feature_id, query_id, (difference,), now=now, project=project)


def set_status(
    store: Store, feature_id: str, status: Status, *, now: str, who: str, why: str = "", project: str = DEFAULT_PROJECT
) -> ABTest:
    """Pause, resume, graduate or reject a test and write down who did it; return it. Raises MissingInput if there is none.

    Where it has that status already nothing changes and nothing is written down.
    """
    test = found_test(store, feature_id, project=project)
    if test.status == status:
        return test

    def change(test: ABTest) -> ABTest:
        graduated = now if status == "graduated" else test.graduated_at
        return replace(test, status=status, updated_at=now, graduated_at=graduated)

    changed = _changed(store, feature_id, f"status:{status}:{now}", change, project=project)
    store.add_audit(AuditEntry(now, who, f"test {status}", feature_id, {"why": why}, project))
    return changed


def begin_now(store: Store, feature_id: str, *, now: str, project: str = DEFAULT_PROJECT) -> bool:
    """Let a test that has counted nothing begin now, as when its candidate is named after it; True if there is such a test.

    A test that has counted something stays as it is, and so does one of a feature that has none: False.
    """
    if store.test(feature_id, project=project) is None:
        return False

    def change(test: ABTest) -> ABTest:
        return replace(test, started_at=now, updated_at=now) if test.sample_count == 0 else test

    return _changed(store, feature_id, f"status:begin:{now}", change, project=project).sample_count == 0


def found_test(store: Store, feature_id: str, *, project: str = DEFAULT_PROJECT) -> ABTest:
    """Return a feature's test; raises MissingInput if there is none."""
    test = store.test(feature_id, project=project)
    if test is None:
        raise MissingInput(
            f"project {project!r} has no test of feature {feature_id!r}; start it: ringtrue test create {feature_id}"
        )
    return test


def standing(test: ABTest) -> TestStanding:
    """Return how a test stands; pure, from its state alone."""
    n, measure = test.sample_count, measure_of(test)
    mean = test.sums["differences"] / n if n else None
    sides = [test.sums[f"{side}_{measure}"] / n if n and measure else None for side in ("control", "treatment")]
    after = test.sums.get("decided_after")
    return TestStanding(
        feature_id=test.feature_id,
        project=test.project,
        method=test.method,
        status=test.status,
        decision=test.decision or "continue",
        decided_after=None if after is None else int(after),
        samples=n,
        mean_difference=mean,
        control=sides[0],
        treatment=sides[1],
        measure=measure,
        interval=_interval(test),
        sigma=test.sigma,
        evidence=test.log_likelihood_ratio,
        upper_bound=test.upper_bound,
        lower_bound=test.lower_bound,
        error_controlled=test.method != "beta-binomial",
        reason=_reason(test),
    )


def _interval(test: ABTest) -> tuple[float, float] | None:
    return (test.sums.get("low", -1.0), test.sums.get("high", 1.0)) if test.method == "confidence-sequence" else None


def decided_after(test: ABTest) -> int:
    """Return how many queries a test had counted when it decided; so far, where it has not. Later ones still count."""
    return int(test.sums.get("decided_after", test.sample_count))


def measure_of(test: ABTest) -> str | None:
    """Return what the scores of a test are; None if it counts differences alone."""
    return next((name.removeprefix("control_") for name in test.sums if name.startswith("control_")), None)


def _changed(store: Store, feature_id: str, name: str, change: Callable[[ABTest], ABTest], *, project: str) -> ABTest:
    """Change a test through the same door as a query, so that none is counted half before and half after.

    The door lets each id in once. Two changes may have one name, such as two pauses in one moment, and each must take place.
    """
    place = 0
    while (changed := store.update_test(feature_id, f"{name}:{place}" if place else name, change, project=project)) is None:
        place += 1
    return changed


class _NotCounted(Exception):
    """Raised inside the store's transaction, which undoes it: the query may be counted later."""


def _record(store: Store, feature_id: str, query_id: str, reported: tuple[float, ...], *, now: str, project: str) -> Recorded:
    def change(test: ABTest) -> ABTest:
        if test.status != "running":
            raise _NotCounted(f"the test is {test.status}")
        return _advanced(test, query_id, reported, now=now)

    def point(test: ABTest) -> TestPoint:
        n, evidence = test.sample_count, test.log_likelihood_ratio
        low, high = _interval(test) or (None, None)
        return TestPoint(
            n, now, evidence, test.sums["differences"] / n, low, high, feature_id=test.feature_id, project=test.project
        )

    why_not = "counted before"
    try:
        changed = store.update_test(feature_id, query_id, change, project=project, point=point)
    except _NotCounted as refused:
        changed, why_not = None, str(refused)
    if changed is None:
        return Recorded(found_test(store, feature_id, project=project), False, why_not)
    return Recorded(changed, True)


def _advanced(test: ABTest, query_id: str, reported: tuple[float, ...], *, now: str) -> ABTest:
    """One query later, with the scores of both sides or their difference; everything a method needs is in the sums."""
    measure, sums, state = measure_of(test), dict(test.sums), _state(test)
    if len(reported) == 2:
        for side, score in zip(("control", "treatment"), reported, strict=True):
            if not 0 <= score <= 1:
                raise InputError(f"query {query_id!r}: the {side} score {score!r} does not lie in 0 to 1; scale it beforehand")
            sums[f"{side}_{measure}"] = sums.get(f"{side}_{measure}", 0.0) + score
    if (measure is None) != (len(reported) == 1):
        wanted = "differences" if measure is None else f"{measure} scores of both sides"
        raise InputError(f"query {query_id!r}: the test of {test.feature_id!r} counts {wanted}; report those")
    difference = reported[-1] - sum(reported[:-1])
    sums["differences"] += difference
    sums["squares"] += difference * difference
    try:
        state = state.add(*reported) if isinstance(state, BetaBinomial) else state.add(difference)
    except InputError as problem:
        raise InputError(f"query {query_id!r}: {problem}") from problem
    return _judged(replace(test, sums=sums, sample_count=test.sample_count + 1, updated_at=now), state)


def _state(test: ABTest) -> State:
    """The method's own state, from the sums."""
    plan, sums, n = SequentialPlan(test.alpha, test.beta, test.delta), test.sums, test.sample_count
    if test.method == "sprt":
        # A test from before there were gamblers has none; theirs begin now, which is a proof all the same.
        capitals = sums.get("gain", 0.0), sums.get("none", 0.0)
        return Sprt(plan, sums.get("known_sigma"), n, sums["differences"], sums["squares"], *capitals)
    if test.method == "beta-binomial":
        measure = measure_of(test)
        return BetaBinomial(n, int(sums[f"control_{measure}"]), int(sums[f"treatment_{measure}"]))
    places = range(len(candidate_means(plan.delta)) if n else 0)
    up, down = (tuple(sums[f"{side}{place}"] for place in places) for side in ("up", "down"))
    low, high = sums.get("low", -1.0), sums.get("high", 1.0)
    return ConfidenceSequence(plan, n, sums["differences"], sums["squares"], low, high, up, down)


def _judged(test: ABTest, state: State) -> ABTest:
    """The test with evidence, bounds and decision as the method's state has them; the first decision stays."""
    sums, decision = dict(test.sums), test.decision
    if isinstance(state, ConfidenceSequence):
        for side, capitals in (("up", state.up), ("down", state.down)):
            sums |= {f"{side}{place}": capital for place, capital in enumerate(capitals)}
        sums |= {"low": state.low, "high": state.high}
    if isinstance(state, Sprt):
        sums |= {"gain": state.gain, "none": state.none}
    if decision == "continue" and state.decision != "continue":
        decision = state.decision
        sums["decided_after"] = float(test.sample_count)
    upper, lower = state.bounds
    return replace(
        test,
        sigma=state.sigma_used if isinstance(state, Sprt) else None,
        log_likelihood_ratio=state.evidence,
        upper_bound=upper,
        lower_bound=lower,
        decision=decision,
        sums=sums,
    )


def _reason(test: ABTest) -> str:
    n, evidence = test.sample_count, test.log_likelihood_ratio
    peeked = " (not error-controlled: looking often makes it err often)" if test.method == "beta-binomial" else ""
    if test.decision in ("accept-treatment", "accept-control"):
        after = int(test.sums["decided_after"])
        shown = "a gain" if test.decision == "accept-treatment" else f"less than a gain of {test.delta:g}"
        return f"{test.decision} after {after} queries: the differences show {shown}{peeked}"
    if test.status != "running":
        return f"{test.status}; queries are not counted"
    state = _state(test)
    if left := getattr(state, "burn_in_left", 0):
        return f"burning in: {left} more queries before the spread is known"
    if unproven := getattr(state, "unproven", None):
        capital, wanted = unproven
        odds = f"at most once in {capital:.1f} times" if capital > 1 else "any day"
        return (
            f"continue: evidence {evidence:+.2f} is beyond its bound, but rare large differences not seen yet could bring it "
            f"about by chance {odds}; once in {wanted:.3g} is wanted"
        )
    text = f"continue: evidence {evidence:+.2f}; accepted at {test.upper_bound:+.2f}, rejected at {test.lower_bound:+.2f}"
    if n and (between := _interval(test)) is not None:
        # What its picture shows, and what it is decided by: the interval, not a sum of evidence.
        mean = test.sums["differences"] / n
        text = f"continue: mean difference {mean:+.3f}, so far between {between[0]:+.3f} and {between[1]:+.3f}"
        text += f"; decided once that leaves out 0 or {test.delta:+g}"
    bound = test.upper_bound if evidence > 0 else test.lower_bound
    # A forecast from next to no evidence would be a number without a meaning.
    if evidence / bound > 0.1:
        text += f"; about {math.ceil(n * (bound / evidence - 1)):,} more queries at this rate"
    return text + peeked
