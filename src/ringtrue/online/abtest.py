"""A sequential test of a feature, kept in the store and fed query by query from any number of processes (S-2).

Every query counts once, whoever reports it and however often. The first decision stays; what comes later is still counted, for
``min_samples`` and the means, and changes nothing about it. Pausing, graduating and rejecting are the status, not the decision.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, get_args

from ringtrue.errors import InputError, MissingInput, nearest
from ringtrue.store import DEFAULT_PROJECT, ABStatus, ABTest, AuditEntry

if TYPE_CHECKING:
    from ringtrue.stats import BetaBinomial, ConfidenceSequence, Sprt

    State: TypeAlias = Sprt | ConfidenceSequence | BetaBinomial

Method = Literal["sprt", "confidence-sequence", "beta-binomial"]
METHODS: tuple[Method, ...] = get_args(Method)
MEASURE = "mrr"
"""What the scores are unless said otherwise; mrr and ndcg have columns of their own in the store."""


class TrialStore(Protocol):
    """What a sequential test needs of the store."""

    def create_test(self, state: ABTest) -> None: ...

    def test(self, feature_id: str, *, project: str = ...) -> ABTest | None: ...

    def update_test(
        self, feature_id: str, query_id: str, change: Callable[[ABTest], ABTest], *, project: str = ...
    ) -> ABTest | None: ...

    def add_audit(self, entry: AuditEntry) -> None: ...


@dataclass(frozen=True, slots=True)
class Recorded:
    """What became of one query."""

    test: ABTest
    counted: bool
    why_not: str = ""
    """Why it was not counted: counted before, or the test is paused or over."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How a test stands, in figures and one sentence."""

    feature_id: str
    project: str
    method: str
    status: ABStatus
    decision: str
    decided_after: int | None
    samples: int
    mean_difference: float | None
    control: float | None
    """Mean score; None where only differences are counted, or none yet."""
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
    store: TrialStore,
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
    is the known standard deviation of the differences; estimated unless given. ``again`` begins anew where the feature has a
    test, as after a change of the candidate: nothing counted before is taken over, nor counted again. Raises InputError if an
    option is unusable or, without ``again``, the feature has a test.
    """
    if method not in METHODS:
        raise InputError(f"cannot use method {method!r}; write {nearest(method, METHODS)}")
    if not feature_id.strip():
        raise InputError("a test needs the name of its feature, such as rerank-v2")
    if measure is not None and not measure.replace("_", "").isalnum():
        raise InputError(f"cannot use measure {measure!r}; letters, digits and _ only, such as mrr or ndcg")
    if method == "beta-binomial" and measure is None:
        raise InputError("a beta-binomial test counts successes of both sides; name what succeeds, such as --measure hit")
    if sigma is not None and method != "sprt":
        raise InputError(f"{method} takes no sigma; leave it out, or use sprt")
    sums = {} if measure is None else {f"control_{measure}": 0.0, f"treatment_{measure}": 0.0}
    if sigma is not None:
        sums["known_sigma"] = sigma
    state = ABTest(
        feature_id=feature_id,
        status="running",
        alpha=alpha,
        beta=beta,
        delta=delta,
        started_at=now,
        updated_at=now,
        project=project,
        method=method,
        sums=sums | {"differences": 0.0, "squares": 0.0},
        min_samples=min_samples,
        graduation_threshold=graduation_threshold,
        decision="continue",
    )
    state = _judged(state, _state(state))
    before = store.test(feature_id, project=project) if again else None
    if before is None:
        store.create_test(state)
        return state
    # Through the same door as a query, so that none is counted half before and half after.
    store.update_test(feature_id, f"status:again:{now}", lambda _: state, project=project)
    past = {"samples": before.sample_count, "decision": before.decision, "started_at": before.started_at}
    store.add_audit(AuditEntry(now, who, "test begun anew", feature_id, project, past))
    return state


def record_scores(
    store: TrialStore,
    feature_id: str,
    query_id: str,
    *,
    control: float,
    treatment: float,
    now: str,
    project: str = DEFAULT_PROJECT,
) -> Recorded:
    """Count the scores of both sides on one query; the same query id is counted once.

    Raises InputError for scores outside 0 to 1, or a test of differences alone; MissingInput where there is no such test.
    """
    for side, score in (("control", control), ("treatment", treatment)):
        if not 0 <= score <= 1:
            raise InputError(f"query {query_id!r}: the {side} score {score!r} does not lie in 0 to 1; scale it beforehand")
    return _record(store, feature_id, query_id, treatment - control, (control, treatment), now=now, project=project)


def record_difference(
    store: TrialStore, feature_id: str, query_id: str, difference: float, *, now: str, project: str = DEFAULT_PROJECT
) -> Recorded:
    """Count one difference, such as the credit of an interleaved list; the same query id is counted once.

    Raises InputError for a difference outside −1 to 1, or a test of scores; MissingInput where there is no such test.
    """
    if not -1 <= difference <= 1:
        raise InputError(f"query {query_id!r}: the difference {difference!r} does not lie in −1 to 1; scale it beforehand")
    return _record(store, feature_id, query_id, difference, None, now=now, project=project)


def set_status(
    store: TrialStore, feature_id: str, status: ABStatus, *, now: str, who: str, why: str = "", project: str = DEFAULT_PROJECT
) -> ABTest:
    """Pause, resume, graduate or reject a test and write down who did it; return it. Raises MissingInput where there is none.

    It goes through the same door as a query, under an id of its own, so that no query counted meanwhile is lost.
    """

    def change(test: ABTest) -> ABTest:
        graduated = now if status == "graduated" else test.graduated_at
        return replace(test, status=status, updated_at=now, graduated_at=graduated)

    changed = store.update_test(feature_id, f"status:{status}:{now}", change, project=project)
    if changed is None:
        return found_test(store, feature_id, project=project)
    store.add_audit(AuditEntry(now, who, f"test {status}", feature_id, project, {"why": why}))
    return changed


def found_test(store: TrialStore, feature_id: str, *, project: str = DEFAULT_PROJECT) -> ABTest:
    """Return a feature's test; raises MissingInput where there is none."""
    test = store.test(feature_id, project=project)
    if test is None:
        raise MissingInput(f"project {project!r} has no test of feature {feature_id!r}; start it: ringtrue test create")
    return test


def standing(test: ABTest) -> Standing:
    """Return how a test stands; pure, from its state alone."""
    n, measure = test.sample_count, measure_of(test)
    mean = test.sums["differences"] / n if n else None
    sides = [test.sums[f"{side}_{measure}"] / n if n and measure else None for side in ("control", "treatment")]
    interval = (test.sums.get("low", -1.0), test.sums.get("high", 1.0)) if test.method == "confidence-sequence" else None
    after = test.sums.get("decided_after")
    return Standing(
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
        interval=interval,
        sigma=test.sigma,
        evidence=test.log_likelihood_ratio,
        upper_bound=test.upper_bound,
        lower_bound=test.lower_bound,
        error_controlled=test.method != "beta-binomial",
        reason=_reason(test),
    )


def measure_of(test: ABTest) -> str | None:
    """Return what the scores of a test are; None where it counts differences alone."""
    return next((name.removeprefix("control_") for name in test.sums if name.startswith("control_")), None)


class _NotCounted(Exception):
    """Raised inside the store's transaction, which undoes it: the query may be counted later."""


def _record(
    store: TrialStore,
    feature_id: str,
    query_id: str,
    difference: float,
    scores: tuple[float, float] | None,
    *,
    now: str,
    project: str,
) -> Recorded:
    def change(test: ABTest) -> ABTest:
        if test.status != "running":
            raise _NotCounted(f"the test is {test.status}")
        return _advanced(test, query_id, difference, scores, now=now)

    try:
        changed = store.update_test(feature_id, query_id, change, project=project)
    except _NotCounted as refused:
        return Recorded(found_test(store, feature_id, project=project), False, str(refused))
    if changed is None:
        return Recorded(found_test(store, feature_id, project=project), False, "counted before")
    return Recorded(changed, True)


def _advanced(test: ABTest, query_id: str, difference: float, scores: tuple[float, float] | None, *, now: str) -> ABTest:
    """One query later; everything a method needs is in the sums."""
    from ringtrue.stats import BetaBinomial

    measure, sums, state = measure_of(test), dict(test.sums), _state(test)
    if (measure is None) != (scores is None):
        wanted = "differences" if measure is None else f"{measure} scores of both sides"
        raise InputError(f"query {query_id!r}: the test of {test.feature_id!r} counts {wanted}; report those")
    if scores is not None:
        sums[f"control_{measure}"] += scores[0]
        sums[f"treatment_{measure}"] += scores[1]
    sums["differences"] += difference
    sums["squares"] += difference * difference
    try:
        state = state.add(*scores or ()) if isinstance(state, BetaBinomial) else state.add(difference)
    except InputError as problem:
        raise InputError(f"query {query_id!r}: {problem}") from problem
    return _judged(replace(test, sums=sums, sample_count=test.sample_count + 1, updated_at=now), state)


def _state(test: ABTest) -> State:
    """The method's own state, from the sums."""
    from ringtrue.stats import BetaBinomial, ConfidenceSequence, SequentialPlan, Sprt, candidate_means

    plan, sums, n = SequentialPlan(test.alpha, test.beta, test.delta), test.sums, test.sample_count
    if test.method == "sprt":
        return Sprt(plan, sums.get("known_sigma"), n, sums["differences"], sums["squares"])
    if test.method == "beta-binomial":
        measure = measure_of(test)
        return BetaBinomial(n, int(sums[f"control_{measure}"]), int(sums[f"treatment_{measure}"]))
    places = range(len(candidate_means(plan.delta)) if n else 0)
    up, down = (tuple(sums[f"{side}{place}"] for place in places) for side in ("up", "down"))
    low, high = sums.get("low", -1.0), sums.get("high", 1.0)
    return ConfidenceSequence(plan, n, sums["differences"], sums["squares"], low, high, up, down)


def _judged(test: ABTest, state: State) -> ABTest:
    """The test with evidence, bounds and decision as the method's state has them; the first decision stays."""
    from ringtrue.stats import ConfidenceSequence, Sprt

    sums, decision = dict(test.sums), test.decision
    if isinstance(state, ConfidenceSequence):
        for side, capitals in (("up", state.up), ("down", state.down)):
            sums |= {f"{side}{place}": capital for place, capital in enumerate(capitals)}
        sums |= {"low": state.low, "high": state.high}
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
    left = getattr(_state(test), "burn_in_left", 0)
    if left:
        return f"burning in: {left} more queries before the spread is known"
    text = f"continue: evidence {evidence:+.2f}, decided at {test.upper_bound:+.2f} or {test.lower_bound:+.2f}"
    bound = test.upper_bound if evidence > 0 else test.lower_bound
    # A forecast from next to no evidence would be a number without a meaning.
    if evidence / bound > 0.1:
        text += f"; about {math.ceil(n * (bound / evidence - 1)):,} more queries if it goes on like this"
    return text + peeked
