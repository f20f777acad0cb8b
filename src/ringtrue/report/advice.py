"""Advice that follows from evidence. Every rule takes a Report and yields Recommendations.

A rule without its evidence (no comparison, no components, no losses) stays silent, and so does one whose evidence could be
noise: people learn to ignore advice that comes and goes by chance.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ringtrue.brief import counted
from ringtrue.measures import Measure, members
from ringtrue.report.formatting import number, portion, signed, signed_span
from ringtrue.report.records import Recommendation, Report
from ringtrue.report.sentences import comparison_of, primary
from ringtrue.report.tables import Difference, effects_of_parts, relevant_documents, slice_fields, unpaired
from ringtrue.run import Loss
from ringtrue.verdict import upside

MANY_LOST = 0.10
"""A stage that loses a tenth of all relevant documents is worth advice of its own."""
FEW_DOCUMENTS = 5
"""A share of fewer documents than this depends on one or two questions."""
ALPHA = 0.05
MATTERS = 0.01
"""Below this a difference of a mean is not worth a change, however certain."""
NOTHING_OF_ITS_OWN = 0.01
"""99 in 100 hits of such a channel came from another one, too."""
SLICE_QUERIES = 10
"""Below this a slice's mean says little, and its spread is unknown."""
SLICE_GAP = 0.10
"""15 questions a slice detect about this much."""
JUDGED_ENOUGH = 0.5
"""Below this most of what a reader sees was never judged, and measures describe the judges more than the search."""
JUDGED_GAP = 0.10
"""The better-judged of two systems is favoured by about its lead in judged documents."""
Advice = Iterator[Recommendation]


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
    name, effects = primary(report), _effects(report)
    useless = []
    for part in report.evaluation.components:
        change, given = effects.get(part.name), part.contribution
        if change is None or given is None or given.unique_rate > NOTHING_OF_ITS_OWN:
            continue
        # Not missed: even the far end of the interval is too little to matter. Clearly better without is another rule.
        if change.low > -MATTERS and not _hurts(change):
            useless.append((-change.mean, part.name, given.unique_rate, change))
    if useless:
        # Of two channels that find the same, each looks useless while the other is there: only one may go at a time.
        (_, channel, unique, change), *rest = sorted(useless, key=lambda one: one[:2])
        others = f" The same holds for {', '.join(one[1] for one in rest)}; measure again first." if rest else ""
        yield Recommendation(
            "drop-channel",
            f"{channel} adds nothing: {portion(unique)} of the hits are its own, and without it {name} changes by "
            f"{signed(change.mean)} (at worst {signed(change.low)}). Drop it and save its time.{others}",
            {"channel": channel, "unique contribution": unique, f"{name} without it": change.mean, "at worst": change.low},
        )


def harmful_part(report: Report) -> Advice:
    """A channel, or a later step such as a reranker, without which the search is better, beyond noise."""
    name, effects, parts = primary(report), _effects(report), report.evaluation.components
    hits = {part.name: sum(len(ranking.hits) for ranking in part.rankings) for part in parts if part.kind != "channel"}
    for part in parts:
        change = effects.get(part.name)
        # A step that returns less than the others cuts on purpose; what a threshold takes away is told elsewhere.
        cuts = part.kind == "stage" and hits[part.name] < max(hits.values())
        if change is not None and _hurts(change) and not cuts:
            cure = "Drop it or lower its weight." if part.kind == "channel" else "Check its model, its input and its depth."
            yield Recommendation(
                f"harmful-{part.kind}",
                f"{part.name} hurts: without it {name} rises by {number(change.mean)} (interval "
                f"{signed_span(change.low, change.high)} over {counted(change.n, 'query')}). {cure}",
                {part.kind: part.name, f"{name} without it": change.mean, "low": change.low, "high": change.high},
            )


def _effects(report: Report) -> dict[str, Difference | None]:
    """Return how the search changes without each part; every part looked at is one more chance to be fooled."""
    tests = max(1, sum(part.kind in ("without", "stage") for part in report.evaluation.components))
    return effects_of_parts(report.evaluation, primary(report), alpha=ALPHA / tests)


def _hurts(change: Difference) -> bool:
    """Return whether the search is better without a part by more than noise, and by enough to matter."""
    return change.low > 0 and change.mean >= MATTERS


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


RULES = (
    threshold, rerank, vocabulary, overlap, cutoff, drop_channel, harmful_part, weak_slice, judge_more,
)  # fmt: skip


def recommend(report: Report) -> tuple[Recommendation, ...]:
    """Return the advice that the evidence of this report supports, in the order of the rules."""
    return tuple(advice for rule in RULES for advice in rule(report))
