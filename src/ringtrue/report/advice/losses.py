"""Advice from where relevant documents were lost."""

from __future__ import annotations

from collections.abc import Iterator

from ringtrue.brief import counted
from ringtrue.report.formatting import portion
from ringtrue.report.records import Recommendation, Report
from ringtrue.report.tables import relevant_documents
from ringtrue.run import Evaluation, Loss

MANY_LOST = 0.10
"""A stage that loses a tenth of all relevant documents is worth advice of its own."""
FEW_DOCUMENTS = 5
"""A share of fewer documents than this depends on one or two questions."""


def rerank(report: Report) -> Iterator[Recommendation]:
    """Many relevant documents come back, but only below k: the order is wrong, not the search."""
    evaluation = report.evaluation
    depth, found = evaluation.setup.k, _lost(evaluation, "below k", "cut by fusion")
    late = [loss for loss in found if loss.rank is not None and loss.rank <= depth]
    if late:
        has = evaluation.setup.config.get("reranker")
        cure = f"Let the reranker ({has}) see them: raise its depth." if has else "A reranker over them would lift most."
        told = f"came back only below rank {late[0].k}, within the first {depth}. {cure}"
        yield from _if_many("rerank", late, told, evaluation, k=late[0].k, depth=depth)


def vocabulary(report: Report) -> Iterator[Recommendation]:
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
    lost = _lost(evaluation, "not in any list")
    yield from _if_many("vocabulary", lost, told, evaluation, channels=channels or evaluation.search)


def cutoff(report: Report) -> Iterator[Recommendation]:
    """Relevant documents that were found and then cut by a score threshold."""
    told = "were found and then cut by the score threshold. Lower it, and watch precision."
    yield from _if_many("cut-off", _lost(report.evaluation, "cut by threshold"), told, report.evaluation)


def overlap(report: Report) -> Iterator[Recommendation]:
    """Documents lost because the passage that answers was cut in two."""
    evaluation = report.evaluation
    lost = _lost(evaluation, "wrong chunk")
    # A set declares one passage a question, however many documents are relevant: the share is one of questions.
    share = len(_queries(lost)) / max(1, len(evaluation.scores.query_ids))
    if len(lost) >= FEW_DOCUMENTS and share >= MANY_LOST:
        chunking = evaluation.setup.config.get("chunking")
        now = f" (now {chunking})" if chunking else ""
        yield Recommendation(
            "overlap",
            f"In {portion(share)} of the questions ({counted(len(lost), 'document')}) another passage was found than the one "
            f"that answers: it is cut at a border. Raise the overlap of chunks{now}.",
            {"documents": len(lost), "share of questions": share},
            _queries(lost),
        )


def _if_many(
    rule: str, lost: list[Loss], told: str, evaluation: Evaluation, **evidence: float | str
) -> Iterator[Recommendation]:
    """Yield advice if the lost documents are many; ``told`` says what happened to them and what helps."""
    total = relevant_documents(evaluation)
    if len(lost) >= FEW_DOCUMENTS and len(lost) >= MANY_LOST * total:
        share = len(lost) / total
        text = f"{counted(len(lost), 'relevant document')} ({portion(share)} of all) {told}"
        yield Recommendation(rule, text, {"documents": len(lost), "share": share, **evidence}, _queries(lost))


def _lost(evaluation: Evaluation, *stages: str) -> list[Loss]:
    return [loss for loss in evaluation.losses if loss.stage in stages]


def _queries(losses: list[Loss]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(loss.query_id for loss in losses))
