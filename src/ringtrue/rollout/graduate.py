"""Graduation: from the shadow to everybody, 1 → 5 → 10 → 25 → 50 → 100 %, each step on evidence and none without.

``decide`` is a pure function of the flag, the evidence and the time; ``step`` reads both from the store, and writes the flag
only where nobody else moved it meanwhile.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from ringtrue.answers import Action, Condition
from ringtrue.rollout.abtest import decided_after, set_status
from ringtrue.rollout.evidence import LAST_CONTROL, Evidence, Side, gather
from ringtrue.rollout.flags import change_flag, existing_flag
from ringtrue.store import DEFAULT_PROJECT, Flag, Store, timestamp

STAGES = (1.0, 5.0, 10.0, 25.0, 50.0, 100.0)
MEASURE = "RR@10"
"""The measure of the improvement, unless the flag's metadata names another as ``measure``."""
NO_CONSTITUTIONAL = "no_constitutional"
"""The key of a flag's metadata that says why there is no constitutional document that could get lost."""
STAGE_HOURS = 24.0
"""Least time of a stage, unless the flag's metadata has ``stage_hours``: a day holds both busy and quiet hours."""
P95_INCREASE = 0.20
FAILURE_SHARE = 0.01
MISSING_SHARE = 0.20
"""More of a live sample than this may not be missing: a shadow that cannot keep up skips the busy times."""
LEAST_LIVE = 50
"""Searches on either side below which no stage is left: their figures say too little to go on with. A rollback needs fewer."""
FALSE_ROLLBACK = 0.001
"""At most this often chance alone rolls a stage back, however often it is looked at."""
LEAST_FAILED = 5
"""Fewer failures than this may be one user's bad minute, however unlikely they are one by one."""
FAILING_ALONE = 0.25
"""Where nobody without the feature is known, more failures than this are too many by any standard."""
SIGMAS = 3.0
"""How far above what was seen the failures of those without the feature may truly lie."""

TIMED_IN = {"live": " in live systems", "log": " asked again from the log", "golden": " of the golden corpus", None: ""}
"""Where the latencies of a shadow come from, in words."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to become of a flag, and everything that was looked at."""

    action: Action
    why: str
    before: Flag
    flag: Flag
    """As it shall be; as it is where nothing moves."""
    checks: tuple[Condition, ...] = ()
    breaches: tuple[str, ...] = ()

    @property
    def moved(self) -> bool:
        return self.flag != self.before


def decide(flag: Flag, evidence: Evidence, now: datetime) -> Decision:
    """Return what the evidence allows: one stage further, wait, roll back, reject or graduate. Pure.

    >>> from datetime import UTC
    >>> decide(Flag("new"), Evidence(), datetime(2026, 3, 1, tzinfo=UTC)).action
    'wait'
    """
    checks = (*_entry(flag, evidence), *(_stage(flag, evidence, now) if flag.rollout > 0 else ()))

    def decision(action: Action, why: str, *, breaches: tuple[str, ...] = (), **changes: Any) -> Decision:
        after = replace(flag, stage_since=timestamp(now), **changes) if changes else flag
        return Decision(action, why, flag, after, checks, breaches)

    if flag.state in ("graduated", "rejected"):
        return decision("done", f"it is {flag.state}; nothing moves it but `ringtrue flag set`")
    if evidence.test is not None and evidence.test.decision == "accept-control":
        why = "the sequential test found the candidate no better than production"
        return decision("reject", why, rollout=0.0, state="rejected")
    # Before anybody has the feature there is nothing to take away, and a failed gate stays on record; but what a watch said
    # once would be forgotten at the next look, so that it pauses.
    breaches = tuple(_breaches(evidence) if flag.rollout > 0 else evidence.breaches)
    if breaches and (flag.rollout > 0 or flag.state == "running"):
        return decision("rollback", "; ".join(breaches), breaches=breaches, rollout=0.0, state="paused")
    if flag.state == "paused":
        return decision("wait", f"it is paused; go on with `ringtrue flag set {flag.name} --state running`")
    missing = [check.name for check in checks if check.holds is not True]
    if missing:
        return decision("wait", f"for {', '.join(missing)}")
    target = next((stage for stage in STAGES if stage > flag.rollout), None)
    if target is None:
        return decision("graduate", "it reached everybody and every check held", state="graduated")
    metadata, off = flag.metadata, evidence.off
    if target >= 100 and off is not None:
        # Nobody will be left to compare with; those who are there now stay as the standard.
        control = {"queries": off.queries, "degraded": off.degraded, "p95_ms": off.p95_ms, "until": timestamp(now)}
        metadata = {**metadata, LAST_CONTROL: control}
    return decision("advance", f"every check holds: {flag.rollout:g} % → {target:g} %", rollout=target, metadata=metadata)


def step(
    store: Store,
    name: str,
    *,
    now: datetime,
    who: str = "ringtrue",
    breaches: Sequence[str] = (),
    project: str = DEFAULT_PROJECT,
) -> Decision:
    """Decide about a flag, move it where that is due, and return the decision.

    Running it again, or from several processes at once, moves one stage only: the write takes place only where the flag is
    still as it was read. Raises MissingInput if there is no such flag.
    """
    flag = existing_flag(store, name, project=project)
    evidence = gather(store, flag, now=now, breaches=breaches)
    decision = decide(flag, evidence, now)
    if decision.moved:
        why = f"{decision.action}: {decision.why}"
        if not store.set_flag(decision.flag, who=who, at=now, why=why, expected=flag):
            here = existing_flag(store, name, project=project)
            return Decision("wait", "somebody else changed the flag in this moment", here, here, decision.checks)
        if decision.action in ("graduate", "reject") and evidence.test is not None:  # the test is over, too
            set_status(store, name, decision.flag.state, now=timestamp(now), who=who, why=why, project=project)
    return decision


def roll_back(store: Store, name: str, *, now: datetime, who: str, why: str, project: str = DEFAULT_PROJECT) -> Flag:
    """Take a feature away from everybody and pause it; return the flag. Raises MissingInput if there is none."""
    existing_flag(store, name, project=project)
    return change_flag(store, name, who=who, now=now, why=f"rollback: {why}", project=project, rollout=0.0, state="paused")


def explain(decision: Decision) -> str:
    """Return a decision as one page in plain words: where the flag is, whether it moved, every check and its reason."""
    before, after = decision.before, decision.flag
    head = {
        "advance": f"moves on to {after.rollout:g} %",
        "graduate": "graduates",
        "rollback": f"is rolled back from {before.rollout:g} % to 0 % and paused" if before.rollout else "is paused at 0 %",
        "reject": "is rejected",
        "wait": "waits",
        "done": "is done",
    }[decision.action]
    since = f" since {before.stage_since}" if before.stage_since else ""
    marks = {True: "yes", False: "NO", None: "?"}
    link = " " if decision.action == "wait" and decision.why.startswith("for ") else ": "
    lines = [f"{before.name}: {before.rollout:g} %, {before.state}{since}", "", f"It {head}{link}{decision.why}.", ""]
    width = max((len(check.name) for check in decision.checks), default=0)
    lines += [f"  {marks[check.holds]:<4}{check.name:<{width}}  {check.says}" for check in decision.checks]
    path = " → ".join(f"[{stage:g}]" if stage == after.rollout else f"{stage:g}" for stage in (0.0, *STAGES))
    return "\n".join([*lines, "", f"  stages: {path} %"])


def _entry(flag: Flag, evidence: Evidence) -> Iterator[Condition]:
    """What must hold before anybody gets the feature, and as long as it spreads."""
    yield _improvement(flag, evidence)
    yield _test(flag, evidence)
    count = evidence.test.sample_count if evidence.test is not None else 0
    yield Condition("samples", count >= flag.min_samples, f"{count} judged queries compared; {flag.min_samples} are needed")
    yield from _constitutional(flag, evidence)
    shadow = evidence.shadow
    increase, where = shadow.p95_increase, TIMED_IN[shadow.timed_source]
    if increase is None or shadow.timed < flag.min_samples:
        timed = f"{shadow.timed} shadow queries{where} are timed on both sides"
        yield Condition("latency", None, f"{timed}; {flag.min_samples} are needed")
    else:
        ms = f"{shadow.control_p95_ms:.1f} → {shadow.treatment_p95_ms:.1f} ms, {increase:+.1%}{where}"
        yield Condition("latency", _below_limit(increase), f"p95 {ms}; below {P95_INCREASE:+.0%} is allowed")
    share = shadow.failure_share
    if share is None:
        yield Condition("failures", None, "no query was shadowed yet")
    else:
        seen = f"the candidate failed on {shadow.failures} of {shadow.queries} shadow queries"
        yield Condition("failures", share <= FAILURE_SHARE, f"{seen}; {FAILURE_SHARE:.0%} is allowed")
    gone = shadow.missing_share
    if gone is not None and gone > MISSING_SHARE:
        seen = f"of {shadow.live + shadow.missing:,} sampled live queries {shadow.missing:,} are missing ({gone:.0%})"
        cure = "give the shadow more workers, or a smaller sample"
        yield Condition("sample", False, f"{seen}, and under load these are not random; {MISSING_SHARE:.0%} is allowed: {cure}")
    if evidence.gate is not None:
        holds = {"pass": True, "fail": False}.get(evidence.gate)
        said = "could not decide" if holds is None else f"{evidence.gate}ed"
        yield Condition("gate", holds, f"the feature's newest gate {said}")
    if evidence.breaches:
        yield Condition("watch", False, "; ".join(evidence.breaches))


def _improvement(flag: Flag, evidence: Evidence) -> Condition:
    measure, needed = str(flag.metadata.get("measure", MEASURE)), flag.graduation_threshold
    name, run = "improvement", evidence.golden
    if run is None:
        cure = f"run `ringtrue shadow start {flag.name} --golden SET …`"
        return Condition(name, None, f"not measured on the golden corpus; {cure}")
    delta = run.deltas.get(measure)
    if delta is None or math.isnan(delta):
        return Condition(name, None, f"the shadow run {run.run_id} on the golden corpus has no difference in {measure}")
    where = f"on {run.golden or 'the golden corpus'} ({run.query_count} queries)"
    return Condition(name, delta >= needed, f"{measure} {delta:+.4f} {where}; {needed:+.4g} is needed")


def _test(flag: Flag, evidence: Evidence) -> Condition:
    name = "sequential test"
    if evidence.test_is_older:
        cure = f"begin anew: ringtrue test create {flag.name} --again"
        return Condition(name, None, f"it began before the candidate was changed; {cure}")
    if evidence.test is None:
        return Condition(name, None, f"there is none; start it: ringtrue test create {flag.name}")
    if evidence.test.method == "beta-binomial":
        return Condition(name, None, "its method does not hold its error when looked at often; use sprt or confidence-sequence")
    said, after = evidence.test.decision, decided_after(evidence.test)
    if said == "accept-treatment":
        return Condition(name, True, f"accepted the candidate after {after} queries")
    if said == "accept-control":
        return Condition(name, False, f"accepted production after {after} queries")
    return Condition(name, None, f"undecided after {evidence.test.sample_count} queries")


def _constitutional(flag: Flag, evidence: Evidence) -> Iterator[Condition]:
    """Yield the check of constitutional documents; none if the golden set has none or the project never measures them."""
    name = "constitutional"
    before, after = _surfacing(evidence)
    if before is not None and after is not None:
        yield Condition(name, after >= before - 1e-12, f"surfacing {before:.4f} → {after:.4f}; it must not fall")
    elif evidence.constitutional and not flag.metadata.get(NO_CONSTITUTIONAL):
        yield Condition(name, None, "surfacing is not measured on both sides of the golden corpus; measure Constitutional@5")


def _surfacing(evidence: Evidence) -> tuple[float | None, float | None]:
    if evidence.golden is None or evidence.control is None:
        return None, None
    for measure, after in evidence.golden.metrics.items():
        before = evidence.control.metrics.get(measure)
        if measure.startswith("Constitutional") and before is not None and not math.isnan(before + after):
            return before, after
    return None, None


def _stage(flag: Flag, evidence: Evidence, now: datetime) -> Iterator[Condition]:
    """What must hold of the present stage."""
    seen = evidence.on.queries if evidence.on is not None else 0
    yield Condition(
        "stage queries", seen >= flag.min_samples, f"{seen} live searches with the feature; {flag.min_samples} are needed"
    )
    hours = float(flag.metadata.get("stage_hours", STAGE_HOURS))
    if flag.stage_since is None:
        yield Condition("stage time", None, "the start of the stage is not recorded; set the percentage again")
    else:
        spent = (now - datetime.fromisoformat(flag.stage_since)).total_seconds() / 3600
        yield Condition("stage time", spent >= hours, f"{spent:.1f} h at {flag.rollout:g} %; {hours:g} h are needed")
    on, off = evidence.on, evidence.off
    if on is None or off is None or min(on.queries, off.queries) < LEAST_LIVE:
        have = f"{on.queries if on else 0} with the feature and {off.queries if off else 0} without"
        for name in ("live latency", "live failures"):
            yield Condition(name, None, f"{have}; {LEAST_LIVE} each are needed")
        return
    if not on.p95_ms or not off.p95_ms or len(on.latencies) < LEAST_LIVE:
        yield Condition("live latency", None, "too few live searches carry their latency")
    else:
        yield Condition("live latency", _below_limit(on.p95_ms / off.p95_ms - 1), _slower(on, off))
    more = on.degraded / on.queries - off.degraded / off.queries
    yield Condition("live failures", more <= FAILURE_SHARE, _more_trouble(on, off))


def _below_limit(increase: float) -> bool:
    return increase < P95_INCREASE - 1e-9  # 120 / 100 - 1 is a little below 0.2 in floating point


def _slower(on: Side, off: Side) -> str:
    before, after = off.p95_ms or math.nan, on.p95_ms or math.nan
    return f"p95 {before:.1f} → {after:.1f} ms, {after / before - 1:+.1%}; below {P95_INCREASE:+.0%} is allowed"


def _more_trouble(on: Side, off: Side) -> str:
    said = f"failed or degraded: {off.degraded}/{off.queries} without, {on.degraded}/{on.queries} with"
    return f"{said}; {FAILURE_SHARE:.0%} more is allowed"


def _breaches(evidence: Evidence) -> Iterator[str]:
    """What takes the feature away again, at once."""
    yield from evidence.breaches
    if evidence.gate == "fail":
        yield "the feature's newest gate failed"
    before, after = _surfacing(evidence)
    if before is not None and after is not None and after < before - 1e-12:
        yield f"constitutional surfacing fell from {before:.4f} to {after:.4f}"
    on, off = evidence.on, evidence.off
    if on is None:
        return
    if off is not None and off.queries >= LEAST_LIVE and off.p95_ms and on.p95_ms:
        slow = sum(ms > off.p95_ms * (1 + P95_INCREASE) for ms in on.latencies)
        if beyond_chance(slow, len(on.latencies), 0.05):  # at an increase of exactly the limit, 5 % lie above limit · p95
            yield f"live latency: {_slower(on, off)}"
    if on.degraded < LEAST_FAILED:
        return
    if off is None or off.queries == 0:
        if beyond_chance(on.degraded, on.queries, FAILING_ALONE):
            said = f"{on.degraded}/{on.queries} failed or degraded, and nobody without it is known"
            yield f"live failures: {said}; more than {FAILING_ALONE:.0%} are too many by any standard"
    elif beyond_chance(on.degraded, on.queries, _at_most(off.degraded, off.queries) + FAILURE_SHARE):
        yield f"live failures: {_more_trouble(on, off)}"


def beyond_chance(hits: int, count: int, allowed: float) -> bool:
    """Return whether so many hits prove a share above ``allowed``, however often and from the first search on one looks.

    The likelihood ratio of all larger shares, weighed alike, to ``allowed`` is expected never to grow where the true share is
    at most that; it ever reaches 1 / FALSE_ROLLBACK with a chance of FALSE_ROLLBACK at most (Ville's inequality).

    >>> beyond_chance(49, 49, 0.02), beyond_chance(5, 49, 0.02), beyond_chance(30, 500, 0.05)
    (True, False, False)
    """
    if not 0 < allowed < 1 or hits < (count + 1) * allowed:
        return False
    misses = count - hits
    # The integral over the shares above ``allowed`` is at least half of the whole one, since hits are not below their median.
    whole = math.lgamma(hits + 1) + math.lgamma(misses + 1) - math.lgamma(count + 2)
    ratio = whole + math.log(0.5) - math.log1p(-allowed) - hits * math.log(allowed) - misses * math.log1p(-allowed)
    return ratio >= -math.log(FALSE_ROLLBACK)


def _at_most(hits: int, count: int) -> float:
    """The largest share that agrees with what was seen (Wilson's bound); 1 where that is anything."""
    share, slack = hits / count, SIGMAS**2 / count
    spread = math.sqrt(slack * share * (1 - share) + slack * slack / 4)
    return (share + slack / 2 + spread) / (1 + slack)
