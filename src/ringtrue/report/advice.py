"""Advice that follows from evidence. Every rule takes a Report and yields Recommendations.

A rule without its evidence (no comparison, no components, no losses) stays silent, and so does one whose evidence could be
noise: people learn to ignore advice that comes and goes by chance.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ringtrue.brief import counted
from ringtrue.measures import Measure
from ringtrue.records import Ranking
from ringtrue.report.formatting import milliseconds, number, portion, signed, signed_span
from ringtrue.report.records import Recommendation, Report
from ringtrue.report.sentences import POWER, comparison_of, depth, primary, same, terms
from ringtrue.report.tables import Difference, paired, part_label, relevant_documents, slice_fields, unpaired, whole_of
from ringtrue.run import Component, Evaluation, Loss
from ringtrue.verdict import members, upside

MANY_LOST = 0.10
"""A stage that loses a tenth of all relevant documents is worth advice of its own."""
FEW_DOCUMENTS = 5
"""A share of fewer documents than this depends on one or two questions."""
ALPHA = 0.05
MATTERS = 0.01
"""Below this a difference of a mean is not worth a change, however certain."""
NOTHING_OF_ITS_OWN = 0.01
"""99 in 100 hits of such a channel came from another one, too."""
P95_CEILING_MS = 500.0
"""The default of the gate, used if no gate set another."""
NEAR_CEILING = 0.9
"""Machines differ by a tenth from one day to the next."""
SLICE_QUERIES = 10
"""Below this a slice's mean says little, and its spread is unknown."""
SLICE_GAP = 0.10
"""15 questions a slice detect about this much."""
JUDGED_ENOUGH = 0.5
"""Below this most of what a reader sees was never judged, and measures describe the judges more than the search."""
JUDGED_GAP = 0.10
"""The better-judged of two systems is favoured by about its lead in judged documents."""
FEW_QUERIES = 50
"""A bootstrap interval of fewer queries is too narrow."""
WORTH_FINDING, USUAL_SPREAD = 0.05, 0.15
"""The difference a set should detect, and the usual spread of paired differences."""
OVERFIT_GAP = 0.05
"""The difference that matters, between the part that was tuned on and the part that was not."""
Advice = Iterator[Recommendation]
Pairs = set[tuple[str, str]]
"""Queries with documents."""


def threshold(report: Report) -> Advice:
    """Precision fell while recall rose: more documents get in than before, good and bad."""
    comparison = comparison_of(report)
    if comparison is None:
        return
    named = [(Measure.parse(name).definition.name, found) for name, found in comparison.measures.items()]
    fell = [found for name, found in named if name in ("P", "SetP") and found.high < 0]
    rose = [found for name, found in named if name == "R" and found.low > 0]
    if fell and rose:
        precision, recall = fell[0], rose[-1]
        yield Recommendation(
            "threshold",
            f"Precision fell ({precision.measure} {signed(precision.diff)}) while recall rose ({recall.measure} "
            f"{signed(recall.diff)}): more is let in, good and bad. Raise the score threshold or return fewer hits (k), "
            "and look at what entered the first ranks.",
            {
                precision.measure: precision.diff, f"{precision.measure} high": precision.high,
                recall.measure: recall.diff, f"{recall.measure} low": recall.low,
            },
            tuple(query for query, delta in sorted(precision.deltas.items(), key=lambda pair: pair[1]) if delta < 0)[:10],
        )  # fmt: skip


# ── where relevant documents were lost ────────────────────────────────────────────────────────────────────────────────


def rerank(report: Report) -> Advice:
    """Many relevant documents come back, but only below k: the order is wrong, not the search."""
    setup, found = report.evaluation.setup, _lost(report, "below k", "cut by fusion")
    late = [loss for loss in found if loss.rank is not None and loss.rank <= setup.k]
    if late:
        has = setup.config.get("reranker")
        cure = f"Let the reranker ({has}) see them: raise its depth." if has else "A reranker over them would lift most."
        told = f"came back only below rank {late[0].k}, within the first {setup.k}. {cure}"
        yield from _if_many("rerank", late, told, report, k=late[0].k, depth=setup.k)


def vocabulary(report: Report) -> Advice:
    """Many relevant documents are in no candidate list."""
    evaluation = report.evaluation
    channels = ", ".join(part.name for part in evaluation.components if part.kind == "channel")
    # One list may simply be too short; of several channels, none found them.
    if channels:
        told = (
            f"are in no candidate list of {channels}: question and document share too few words or meanings. Add a channel of "
            "another kind or query expansion, or deepen the candidate lists."
        )
    else:
        k = evaluation.setup.k
        told = (
            f"are not among the {k} hits asked for: they rank lower, or the search does not find them at all. "
            f"Ask for more hits (-k {5 * k}) to tell."
        )
    lost = _lost(report, "not in any list")
    yield from _if_many("vocabulary", lost, told, report, channels=channels or evaluation.search)


def cutoff(report: Report) -> Advice:
    """Relevant documents that were found and then cut by a score threshold."""
    told = "were found and then cut by the score threshold. Lower it, and watch precision."
    yield from _if_many("cut-off", _lost(report, "cut by threshold"), told, report)


def overlap(report: Report) -> Advice:
    """Documents lost because the passage that answers was cut in two."""
    lost = _lost(report, "wrong chunk")
    # A set declares one passage a question, however many documents are relevant: the share is one of questions.
    share = len(_queries(lost)) / max(1, len(report.evaluation.scores.query_ids))
    if len(lost) >= FEW_DOCUMENTS and share >= MANY_LOST:
        chunking = report.evaluation.setup.config.get("chunking")
        now = f" (now {chunking})" if chunking else ""
        yield Recommendation(
            "overlap",
            f"In {portion(share)} of the questions ({counted(len(lost), 'document')}) another passage was found than the one "
            f"that answers: it is cut at a border. Raise the overlap of chunks{now}.",
            {"documents": len(lost), "share of questions": share},
            _queries(lost),
        )


def _if_many(rule: str, lost: list[Loss], told: str, report: Report, **evidence: float | str) -> Advice:
    """Yield advice if the lost documents are many; ``told`` says what happened to them and what helps."""
    total = relevant_documents(report.evaluation)
    if len(lost) >= FEW_DOCUMENTS and len(lost) >= MANY_LOST * total:
        share = len(lost) / total
        text = f"{counted(len(lost), 'relevant document')} ({portion(share)} of all) {told}"
        yield Recommendation(rule, text, {"documents": len(lost), "share": share, **evidence}, _queries(lost))


def _lost(report: Report, *stages: str) -> list[Loss]:
    return [loss for loss in report.evaluation.losses if loss.stage in stages]


def _queries(losses: list[Loss]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(loss.query_id for loss in losses))


# ── parts of a retriever ──────────────────────────────────────────────────────────────────────────────────────────


def drop_channel(report: Report) -> Advice:
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
        (_, channel, unique, gain), *rest = sorted(useless, key=lambda one: one[:2])
        others = f" The same holds for {', '.join(one[1] for one in rest)}; measure again first." if rest else ""
        yield Recommendation(
            "drop-channel",
            f"{channel} adds nothing: {portion(unique)} of the hits are its own, and without it {name} changes by "
            f"{signed(-gain.mean)} (at worst {signed(-gain.high)}). Drop it and save its time.{others}",
            {"channel": channel, "unique contribution": unique, f"{name} without it": -gain.mean, "at worst": -gain.high},
        )


def harmful_channel(report: Report) -> Advice:
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


def harmful_fusion(report: Report) -> Advice:
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


def check_rerank(report: Report) -> Advice:
    """A later step that takes more relevant documents out of the top k than it brings in."""
    evaluation, k = report.evaluation, depth(report)
    for stage in _parts(evaluation, "stage"):
        before = _step_before(stage, evaluation)
        demoted, lifted = _exchanged(before, stage, evaluation, k) if before is not None else (set(), set())
        flips = len(demoted) + len(lifted)
        # The chance that a fair coin falls so unevenly, two-sided.
        by_chance = 2 * sum(math.comb(flips, heads) for heads in range(len(lifted) + 1)) / (1 << flips)
        if before is not None and len(demoted) > len(lifted) and by_chance <= ALPHA:
            step = stage.name.removeprefix(before.name).removeprefix(" >> ")
            yield Recommendation(
                "check-rerank",
                f"{step} pushed {counted(len(demoted), 'relevant document')} out of the first {k} and lifted only "
                f"{len(lifted)} into them. Check its model, its input (title, passage, language) and its depth; without it "
                f"the order was better.",
                {"stage": stage.name, "demoted": len(demoted), "lifted": len(lifted), "k": k},
                tuple(dict.fromkeys(query_id for query_id, _ in sorted(demoted))),
            )


def latency(report: Report) -> Advice:
    """The slow answers are near or over the ceiling."""
    evaluation = report.evaluation
    checks = report.verdict.checks if report.verdict else ()
    named = [check.threshold for check in checks if check.rule == "latency" and check.measure == "p95"]
    ceiling = next((value for value in named if value), P95_CEILING_MS)
    p95 = evaluation.latency.p95
    if p95 >= NEAR_CEILING * ceiling:
        evidence: dict[str, float | str] = {"p95 ms": p95, "ceiling ms": ceiling}
        own: dict[str, float] = {}
        for part in evaluation.components:
            if part.latency is not None and part.kind in ("channel", "stage") and not math.isnan(part.latency.mean):
                # A step's clock starts with the question.
                before = _step_before(part, evaluation)
                own[part.name] = part.latency.mean - (before.latency.mean if before and before.latency else 0.0)
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


def _exchanged(
    before: Component, after: Component, evaluation: Evaluation, k: int
) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    """Return the relevant documents that a step pushed out of the first k, and those it lifted into them."""
    least = evaluation.setup.golden.relevance_threshold
    relevant = {(query_id, doc_id) for query_id, doc_id, grade in evaluation.qrels if grade >= least}
    tops = {ranking.query_id: _top(ranking, k) for ranking in after.rankings}
    demoted: Pairs = set()
    lifted: Pairs = set()
    for ranking in before.rankings:
        old, new = _top(ranking, k), tops.get(ranking.query_id, set())
        # A shorter list was cut, not reordered; what a threshold takes away is told elsewhere.
        if len(new) >= len(old):
            demoted |= {(ranking.query_id, doc_id) for doc_id in old - new}
            lifted |= {(ranking.query_id, doc_id) for doc_id in new - old}
    return demoted & relevant, lifted & relevant


def _top(ranking: Ranking, k: int) -> set[str]:
    return set(list(dict.fromkeys(hit.doc_id for hit in ranking.hits))[:k])


# ── questions and their judgments ──────────────────────────────────────────────────────────────────────────────────


def weak_slice(report: Report) -> Advice:
    """A kind of question that is far below all others, beyond noise."""
    evaluation, name = report.evaluation, primary(report)
    scores = evaluation.scores
    values = scores.of(name)
    sign, row = upside(name), {query_id: index for index, query_id in enumerate(scores.query_ids)}
    groups = []
    for field in slice_fields(evaluation):
        found = members(scores.facts, field, scores.query_ids)
        groups += [(field, value, [row[query_id] for query_id in queries]) for value, queries in found.items()]
    groups = [group for group in groups if SLICE_QUERIES <= len(group[2]) < len(values)]
    for field, value, rows in groups:
        rest = np.setdiff1d(np.arange(len(values)), rows)
        # Every slice looked at is one more chance to be fooled.
        gap = unpaired(sign * values[rows], sign * values[rest], alpha=ALPHA / len(groups))
        if gap.mean <= -SLICE_GAP and gap.high < 0:
            here = float(np.nanmean(values[rows]))
            worst = sorted(rows, key=lambda row: math.inf if math.isnan(values[row]) else sign * values[row])
            yield Recommendation(
                "weak-slice",
                f"{field}={value} is far below the rest: {name} {number(here)} over {counted(len(rows), 'query')}, "
                f"{number(-gap.mean)} worse than all others. Look at these questions first: label more of them, or tune "
                "for them.",
                {"slice": f"{field}={value}", "queries": len(rows), name: here, "gap": gap.mean, "high": gap.high},
                tuple(scores.query_ids[row] for row in worst[:10]),
            )


def judge_more(report: Report) -> Advice:
    """Too few of the documents shown were ever judged, or fewer than on the other side."""
    evaluation, other = report.evaluation, report.other
    # If each question asks for one document, unjudged ones are known to be wrong.
    if evaluation.setup.golden.profile == "known-item":
        return
    share = evaluation.scores.judged_share
    lead = other.scores.judged_share - share if other is not None else math.nan
    if share < JUDGED_ENOUGH or lead >= JUDGED_GAP:
        evidence: dict[str, float | str] = {"Judged@10": share, "unjudged share": 1 - share}
        beside = ""
        if other is not None and lead >= JUDGED_GAP:
            evidence["Judged@10 of the other"] = other.scores.judged_share
            beside = f", for {other.name} it is {portion(1 - other.scores.judged_share)}, which favours that one"
        worst = [evaluation.scores.query_ids[row] for row in np.argsort(evaluation.scores.judged, kind="stable")[:10]]
        yield Recommendation(
            "judge-more",
            f"{portion(1 - share)} of the first ten documents were never judged and count as not relevant{beside}. "
            "Judge them (`ringtrue golden pool` lists them), else the measures punish what is new.",
            evidence,
            tuple(worst),
        )


def more_queries(report: Report) -> Advice:
    """Too few questions to see a difference that matters."""
    comparison, evaluation = comparison_of(report), report.evaluation
    name = primary(report)
    found = comparison.measures.get(name) if comparison is not None else None
    if comparison is not None and found is not None and found.word == "not enough evidence" and not same(comparison):
        if found.n > 1 and found.detectable > WORTH_FINDING:
            yield _too_few(name, found.n, found.detectable, comparison.alpha, found.tests)
    elif comparison is None and 1 < (n := evaluation.scores.summary(name).count) < FEW_QUERIES:
        yield _too_few(name, n, None, ALPHA, 1)


def _too_few(name: str, n: int, detectable: float | None, alpha: float, tests: int) -> Recommendation:
    """Return the advice; ``detectable`` is what a comparison of these queries finds, None if none was made."""
    from ringtrue.stats import fewest_queries, minimum_detectable_effect, queries_to_settle

    unit = minimum_detectable_effect(n=n, sd=1.0, alpha=alpha / tests, power=POWER)
    spread, whose = USUAL_SPREAD, "a usual spread of differences"
    if detectable is not None and math.isfinite(detectable):
        # The spread is that of these very pairs: the one with which so many queries find so much.
        spread, whose = detectable / unit, "the spread of differences seen here"
    if detectable is None:
        widest = 1.0 if Measure.parse(name).definition.bounded else math.inf
        detectable = unit * spread if n >= fewest_queries(alpha / tests) and unit * spread <= widest else math.inf
    more = queries_to_settle(n=n, sd=spread, difference=WORTH_FINDING, alpha=alpha, power=POWER, tests=tests)
    if math.isfinite(detectable):
        finds = f"can detect a difference in {name} of {number(detectable, 3)} or more, but {WORTH_FINDING} would matter"
    else:
        finds = f"are too few to show any difference in {name}; {WORTH_FINDING} would matter"
    return Recommendation(
        "more-queries",
        f"{counted(n, 'query')} {finds}. About {counted(more or 0, 'more query')} would show that ({terms(alpha, tests)}; with "
        f"{whose}, {number(spread, 3)}).",
        {
            "queries": n, "detectable": detectable, "more": more or 0, "spread": spread, "alpha": alpha, "power": POWER,
            "tests": tests,
        },
    )  # fmt: skip


def overfitting(report: Report) -> Advice:
    """The part that was tuned on does better than the part that was kept away."""
    sides = {run.setup.golden.split: run for run in (report.evaluation, report.other) if run is not None}
    if set(sides) != {"tuning", "held_out"}:
        return
    tuned, kept, name = sides["tuning"], sides["held_out"], primary(report)
    alike = tuned.setup.golden.id == kept.setup.golden.id and tuned.setup.fingerprint == kept.setup.fingerprint
    if not alike or name not in tuned.metrics or name not in kept.metrics:
        return
    gap = unpaired(upside(name) * tuned.scores.of(name), upside(name) * kept.scores.of(name), alpha=ALPHA)
    if gap.mean >= OVERFIT_GAP and gap.low > 0:
        yield Recommendation(
            "overfitting",
            f"{name} is {number(tuned.metrics[name])} on the tuning part and {number(kept.metrics[name])} on the held-out "
            f"part, {number(gap.mean)} worse (interval {signed_span(gap.low, gap.high)}): the settings fit the "
            "questions they were tuned on. Trust the held-out number, and tune fewer parameters or on more questions.",
            {"tuning": tuned.metrics[name], "held-out": kept.metrics[name], "gap": gap.mean, "low": gap.low},
        )


RULES = (
    threshold, rerank, vocabulary, overlap, cutoff, drop_channel, harmful_channel, harmful_fusion, check_rerank, weak_slice,
    judge_more, more_queries, latency, overfitting,
)  # fmt: skip


def recommend(report: Report) -> tuple[Recommendation, ...]:
    """Return the advice that the evidence of this report supports, in the order of the rules."""
    return tuple(advice for rule in RULES for advice in rule(report))
