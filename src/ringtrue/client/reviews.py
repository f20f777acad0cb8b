"""Pairs of question and document that people judge, blind to each other: ``/v1/reviews``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from ringtrue.answers import AddedPairs, Backlog, NextPair, Pair, Published, ReviewState, Standing, Undone
from ringtrue.client.wire import Wire, given, segment, several


class Reviews:
    """The review queue of the project. Judging needs a key with scope 'review', whose name is the reviewer's."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def list(self, *, state: ReviewState | None = None) -> Iterator[Pair]:
        """Yield pairs, the most urgent first, without grades."""
        return self._wire.items(Pair, "/v1/reviews", state=state)

    def add(self, pairs: Iterable[Mapping[str, Any]], *, wanted: int = 1, golden: str | None = None) -> AddedPairs:
        """Put pairs into the queue, 1,000 at most, each to be judged by ``wanted`` people.

        A pair has ``query_id``, ``query`` and ``doc_id``, and may have ``title``, ``text`` and ``priority``; one that is there
        keeps its state and its grades.
        """
        body = given({"pairs": [given(pair) for pair in pairs], "wanted": wanted, "golden": golden})
        return self._wire.write_as(AddedPairs, "POST", "/v1/reviews", body)

    def next(self, *, passing: str | Sequence[str] = (), minutes: float | None = None) -> NextPair:
        """Return a pair to judge, kept for the caller for a while; keys in ``passing`` are passed over."""
        body = given({"passing": several(passing), "minutes": minutes})
        return self._wire.write_as(NextPair, "POST", "/v1/reviews/next", body)

    def judge(self, key: str, grade: Literal[0, 1, 2, 3], *, note: str = "") -> Pair:
        """Judge a pair and return it; said again, the newest counts, until the pair is published."""
        return self._wire.write_as(Pair, "POST", f"/v1/reviews/{segment(key, 'key')}/judge", {"grade": grade, "note": note})

    def undo(self) -> Pair | None:
        """Take back the last thing that the caller said and return the pair; None where there was nothing."""
        return self._wire.write_as(Undone, "POST", "/v1/reviews/undo").pair

    def skip(self, key: str) -> Pair:
        """Give a pair back for others to judge; name its key in ``passing`` to get another."""
        return self._wire.write_as(Pair, "POST", f"/v1/reviews/{segment(key, 'key')}/skip")

    def reject(self, key: str, *, why: str = "") -> Pair:
        """Take a pair out that nobody should judge."""
        return self._wire.write_as(Pair, "POST", f"/v1/reviews/{segment(key, 'key')}/reject", {"why": why})

    def backlog(self) -> Backlog:
        """Return how many pairs are in each state, and how long the oldest waits."""
        return self._wire.get_as(Backlog, "/v1/reviews/backlog")

    def standing(self, *, adjudicator: str | None = None) -> Standing:
        """Return who judged how much, how far they agree, and where they do not."""
        return self._wire.get_as(Standing, "/v1/reviews/standing", adjudicator=adjudicator)

    def publish(
        self,
        golden: str,
        *,
        rule: str = "majority",
        adjudicator: str | None = None,
        force: bool = False,
        reason: str = "",
    ) -> Published:
        """Keep the next version of a golden set, with the judgments of its approved pairs.

        Raises CannotDecide where no pair of the set is approved, or reviewers agree too little; ``force`` with a ``reason``,
        which stays in the audit trail, passes over that.
        """
        body = given({"golden": golden, "rule": rule, "adjudicator": adjudicator, "force": force, "reason": reason})
        return self._wire.write_as(Published, "POST", "/v1/reviews/publish", body)
