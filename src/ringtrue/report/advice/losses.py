"""Advice from where relevant documents were lost (E-4)."""

from __future__ import annotations

from collections.abc import Iterator

from ringtrue.report.lines import relevant_documents
from ringtrue.report.records import Recommendation, Report
from ringtrue.report.story import counted, portion
from ringtrue.run import Evaluation, Loss

MANY_LOST = 0.10
"""A stage that loses a tenth of all relevant documents is worth an answer of its own."""
FEW_DOCUMENTS = 5
"""A share of fewer documents than this turns on one or two questions."""


def rerank(report: Report) -> Iterator[Recommendation]:
    """Many relevant documents come back, but only below k: the order is wrong, not the search."""
    evaluation = report.evaluation
    found = _lost(evaluation, "below k", "cut by fusion")
    late = [loss for loss in found if loss.rank is not None and loss.rank <= evaluation.setup.k]
    if _many(late, evaluation):
        k, share = late[0].k, len(late) / relevant_documents(evaluation)
        has = evaluation.setup.config.get("reranker")
        cure = f"Let the reranker ({has}) see them: raise its depth." if has else "A reranker over them would lift most."
        yield Recommendation(
            "rerank",
            f"{counted(len(late), 'relevant document')} ({portion(share)} of all) came back only below rank {k}, "
            f"within the first {evaluation.setup.k}. {cure}",
            {"documents": len(late), "share": share, "k": k, "depth": evaluation.setup.k},
            _queries(late),
        )


def vocabulary(report: Report) -> Iterator[Recommendation]:
    """Many relevant documents are in no list that was seen. One list may simply be too short; of channels, none found them."""
    evaluation = report.evaluation
    lost = _lost(evaluation, "not in any list")
    if _many(lost, evaluation):
        share, k = len(lost) / relevant_documents(evaluation), evaluation.setup.k
        channels = ", ".join(part.name for part in evaluation.components if part.kind == "channel")
        why = (
            f"in no candidate list of {channels}: question and document share too few words or meanings. Add a channel of "
            "another kind or query expansion, or deepen the candidate lists."
            if channels
            else f"not among the {k} hits asked for: they rank lower, or the search does not find them at all. "
            f"Ask for more hits (-k {5 * k}) to tell."
        )
        yield Recommendation(
            "vocabulary",
            f"{counted(len(lost), 'relevant document')} ({portion(share)} of all) are {why}",
            {"documents": len(lost), "share": share, "channels": channels or evaluation.search},
            _queries(lost),
        )


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


def cutoff(report: Report) -> Iterator[Recommendation]:
    """Relevant documents that were found and then thrown away by a score threshold."""
    evaluation = report.evaluation
    lost = _lost(evaluation, "cut by threshold")
    if _many(lost, evaluation):
        share = len(lost) / relevant_documents(evaluation)
        yield Recommendation(
            "cut-off",
            f"{counted(len(lost), 'relevant document')} ({portion(share)} of all) were found and then cut by the score "
            "threshold. Lower it, and watch precision.",
            {"documents": len(lost), "share": share},
            _queries(lost),
        )


def _lost(evaluation: Evaluation, *stages: str) -> list[Loss]:
    return [loss for loss in evaluation.losses if loss.stage in stages]


def _many(losses: list[Loss], evaluation: Evaluation) -> bool:
    return len(losses) >= FEW_DOCUMENTS and len(losses) >= MANY_LOST * relevant_documents(evaluation)


def _queries(losses: list[Loss]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(loss.query_id for loss in losses))
