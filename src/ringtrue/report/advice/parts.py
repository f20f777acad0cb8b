"""Advice from evaluating the parts of a retriever: channels, fusion, later steps, time."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ringtrue.brief import counted
from ringtrue.records import Ranking
from ringtrue.report.formatting import milliseconds, number, portion, signed, signed_span
from ringtrue.report.noise import Difference, paired
from ringtrue.report.records import Recommendation, Report
from ringtrue.report.sentences import depth, primary
from ringtrue.report.tables import part_label, whole_of
from ringtrue.run import Component, Evaluation

ALPHA = 0.05
MATTERS = 0.01
"""Below this a difference of a mean is not worth a change, however certain."""
NOTHING_OF_ITS_OWN = 0.01
"""99 in 100 hits of such a channel came from another one, too."""
P95_CEILING_MS = 500.0
"""The default of the gate, used if no gate set another."""
NEAR_CEILING = 0.9
"""Machines differ by a tenth from one day to the next."""


Pair = tuple[str, str]
"""A query and a document."""


def drop_channel(report: Report) -> Iterator[Recommendation]:
    """A channel that contributes nothing of its own and is not missed."""
    name = primary(report)
    useless = [
        (gain.mean, channel.name, channel.contribution.unique_rate, gain)
        for channel, gain in _left_out(report)
        if channel.contribution is not None and channel.contribution.unique_rate <= NOTHING_OF_ITS_OWN
        # Not missed: even the far end of the interval is too little to matter. Clearly better without is another rule.
        and gain.high < MATTERS and not _hurts(gain)
    ]  # fmt: skip
    if useless:
        # Of two channels that find the same, each looks useless while the other is there: only one may go at a time.
        _, channel_name, unique, gain = min(useless, key=lambda one: one[:2])
        others = f" The same holds for {', '.join(one[1] for one in useless if one[1] != channel_name)}; measure again first."
        yield Recommendation(
            "drop-channel",
            f"{channel_name} adds nothing: {portion(unique)} of the hits are its own, and without it {name} changes by "
            f"{signed(-gain.mean)} (at worst {signed(-gain.high)}). Drop it and save its time."
            + (others if len(useless) > 1 else ""),
            {"channel": channel_name, "unique contribution": unique, f"{name} without it": -gain.mean, "at worst": -gain.high},
        )


def harmful_channel(report: Report) -> Iterator[Recommendation]:
    """A channel without which the fusion is better, beyond noise."""
    name = primary(report)
    for channel, gain in _left_out(report):
        if _hurts(gain):
            yield Recommendation(
                "harmful-channel",
                f"{channel.name} hurts: without it {name} rises by {number(-gain.mean)} (interval "
                f"{signed_span(-gain.high, -gain.low)} over {counted(gain.n, 'query')}). Drop it or lower its weight.",
                {"channel": channel.name, f"{name} without it": -gain.mean, "low": -gain.high, "high": -gain.low},
            )


def harmful_fusion(report: Report) -> Iterator[Recommendation]:
    """A fusion that is worse than one of its channels, beyond noise."""
    evaluation, name = report.evaluation, primary(report)
    channels = _parts(evaluation, "channel")
    for fusion in _parts(evaluation, "fusion"):
        gains = [(paired(one.scores, fusion.scores, name, alpha=ALPHA / len(channels)), one.name) for one in channels]
        worse = [(gain.mean, best, gain) for gain, best in gains if gain is not None and _hurts(gain)]
        if worse:
            _, best, gain = min(worse, key=lambda one: one[:2])
            yield Recommendation(
                "harmful-fusion",
                f"{part_label(fusion.name, evaluation)} is worse than {best} alone: {name} {signed(gain.mean)} (interval "
                f"{signed_span(gain.low, gain.high)} over {counted(gain.n, 'query')}). Give {best} more weight, or fuse less.",
                {"fusion": fusion.name, "channel": best, name: gain.mean, "low": gain.low, "high": gain.high},
            )


def check_rerank(report: Report) -> Iterator[Recommendation]:
    """A later step that takes more relevant documents out of the top k than it brings in."""
    evaluation, k = report.evaluation, depth(report)
    for stage in _parts(evaluation, "stage"):
        before = _step_before(stage, evaluation)
        if before is None:
            continue
        demoted, lifted = _exchanged(before, stage, evaluation, k)
        if len(demoted) > len(lifted) and _sign_test(len(lifted), len(demoted)) <= ALPHA:
            step = stage.name.removeprefix(before.name).removeprefix(" >> ")
            yield Recommendation(
                "check-rerank",
                f"{step} pushed {counted(len(demoted), 'relevant document')} out of the first {k} and lifted only "
                f"{len(lifted)} into them. Check its model, its input (title, passage, language) and its depth; without it "
                f"the order was better.",
                {"stage": stage.name, "demoted": len(demoted), "lifted": len(lifted), "k": k},
                tuple(dict.fromkeys(query_id for query_id, _ in sorted(demoted))),
            )


def latency(report: Report) -> Iterator[Recommendation]:
    """The slow answers are near or over the ceiling."""
    evaluation = report.evaluation
    checks = report.verdict.checks if report.verdict else ()
    named = [check.threshold for check in checks if check.rule == "latency" and check.measure == "p95"]
    ceiling = next((value for value in named if value), P95_CEILING_MS)
    p95 = evaluation.latency.p95
    if p95 >= NEAR_CEILING * ceiling:
        evidence: dict[str, float | str] = {"p95 ms": p95, "ceiling ms": ceiling}
        own = {part.name: _own_time(part, evaluation) for part in evaluation.components if part.kind in ("channel", "stage")}
        own = {part: ms for part, ms in own.items() if not math.isnan(ms)}
        cost = ""
        if own:
            slowest = max(own, key=lambda part: own[part])
            evidence |= {"component": slowest, "component mean ms": own[slowest]}
            cost = f" {part_label(slowest, evaluation)} takes the most time, {milliseconds(own[slowest])} on average."
        yield Recommendation(
            "latency",
            f"p95 is {milliseconds(p95)}, {'over' if p95 > ceiling else 'close to'} the ceiling of {milliseconds(ceiling)}."
            f"{cost} Shorten candidate lists, cache, or give it a faster machine.",
            evidence,
            tuple(sorted(evaluation.latencies, key=lambda query_id: -evaluation.latencies[query_id])[:10]),
        )


def _parts(evaluation: Evaluation, kind: str) -> list[Component]:
    return [part for part in evaluation.components if part.kind == kind]


def _left_out(report: Report) -> list[tuple[Component, Difference]]:
    """Return every channel with what it adds to the whole: how much better that is than without the channel."""
    evaluation = report.evaluation
    without = {part.name.removeprefix("without "): part for part in _parts(evaluation, "without")}
    pairs = [(channel, without[channel.name]) for channel in _parts(evaluation, "channel") if channel.name in without]
    whole, alpha = whole_of(evaluation), ALPHA / max(1, len(pairs))
    gains = [(channel, paired(left.scores, whole, primary(report), alpha=alpha)) for channel, left in pairs]
    return [(channel, gain) for channel, gain in gains if gain is not None]


def _hurts(gain: Difference) -> bool:
    """Return whether a step makes things worse by more than noise, and by enough to matter."""
    return gain.high < 0 and gain.mean <= -MATTERS


def _step_before(stage: Component, evaluation: Evaluation) -> Component | None:
    """Return what a step was applied to: the part whose name is the longest beginning of its own."""
    before = [part for part in evaluation.components if part.kind != "without" and stage.name.startswith(f"{part.name} >> ")]
    return max(before, key=lambda part: len(part.name), default=None)


def _own_time(part: Component, evaluation: Evaluation) -> float:
    """Return the mean milliseconds that a part takes for itself; a step's clock starts with the question."""
    spent = part.latency.mean if part.latency is not None else math.nan
    before = _step_before(part, evaluation)
    return spent - before.latency.mean if before is not None and before.latency is not None else spent


def _exchanged(before: Component, after: Component, evaluation: Evaluation, k: int) -> tuple[set[Pair], set[Pair]]:
    """Return the relevant documents that a step pushed out of the first k, and those it lifted into them."""
    least = evaluation.setup.golden.relevance_threshold
    relevant = {(query_id, doc_id) for query_id, doc_id, grade in evaluation.qrels if grade >= least}
    tops = {ranking.query_id: _top(ranking, k) for ranking in after.rankings}
    demoted: set[Pair] = set()
    lifted: set[Pair] = set()
    for ranking in before.rankings:
        old, new = _top(ranking, k), tops.get(ranking.query_id, set())
        # A shorter list was cut, not reordered; what a threshold takes away is told elsewhere.
        if len(new) >= len(old):
            demoted |= {(ranking.query_id, doc_id) for doc_id in old - new}
            lifted |= {(ranking.query_id, doc_id) for doc_id in new - old}
    return demoted & relevant, lifted & relevant


def _top(ranking: Ranking, k: int) -> set[str]:
    return set(list(dict.fromkeys(hit.doc_id for hit in ranking.hits))[:k])


def _sign_test(fewer: int, more: int) -> float:
    """Return the chance that a fair coin falls so unevenly, two-sided."""
    flips = fewer + more
    return min(1.0, 2 * sum(math.comb(flips, heads) for heads in range(fewer + 1)) / (1 << flips))
