"""Suites for those who write retrievers and connectors: subclass, say how to make one, and pytest runs the rest.

::

    class TestMySearch(RetrieverSuite):
        def make(self):
            return MySearch()  # over documents of which at least three answer QUERY

A connector's suite also asks for its faults: each method returns the connector in that state, or raises ``NotPossible``
with the reason why that state cannot be for this system.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from math import isclose, isnan
from typing import Any, ClassVar

from ringtrue.errors import AccessDenied, BadAnswer, InputError, SearchFailed, TimedOut, Unreachable
from ringtrue.records import Hit
from ringtrue.retrieve import Retriever

HOSTILE: tuple[str, ...] = (
    "",
    " ",
    "pool AND",
    "NEAR(pool spa, 2) OR NOT title:*",
    '"pool" "',
    "pool*; DROP TABLE documents; --",
    "' OR 1=1 --",
    "{}[]()^~\\/+-!:&|",
    "%s %(text)s ${env} {{ text }}",
    "pool\0spa",
    "pool \ud800 spa",
    "🏊‍♀️ пул プール مسبح \u202epool\u202c",
    "a" * 100_000,
    "pool spa " * 11_000,
    "\n\t\r",
)
"""Queries that somebody will type: operators of query languages, quotes, NUL, lone surrogates, right to left, 100 KB."""


class NotPossible(Exception):
    """A state that this system cannot be in; the test is then skipped with the reason."""


@contextmanager
def raises(wanted: type[Exception]) -> Iterator[list[str]]:
    """Expect an error whose message is one line with a cure; yields a list that will hold the message."""
    messages: list[str] = []
    try:
        yield messages
    except wanted as problem:
        messages.append(str(problem))
        assert "\n" not in messages[0], f"the message has several lines: {messages[0]!r}"
        assert ";" in messages[0], f"the message names no cure after a semicolon: {messages[0]!r}"
    else:
        raise AssertionError(f"nothing was raised where {wanted.__name__} was expected")


class RetrieverSuite(ABC):
    """What every retriever must hold."""

    QUERY: ClassVar[str] = "pool"

    @abstractmethod
    def make(self) -> Retriever:
        """Return the retriever, over documents of which at least three answer ``QUERY``."""

    def test_hits_are_documents_best_first(self) -> None:
        hits = self.make().search(self.QUERY, k=3)
        assert len(hits) == 3
        assert all(isinstance(hit, Hit) and hit.doc_id for hit in hits)
        scores = [hit.score for hit in hits if hit.score == hit.score]
        assert scores == sorted(scores, reverse=True)

    def test_every_document_comes_once(self) -> None:
        found = [hit.doc_id for hit in self.make().search(self.QUERY, k=100)]
        assert len(found) == len(set(found))

    def test_every_hit_says_where_it_came_from(self) -> None:
        for rank, hit in enumerate(self.make().search(self.QUERY, k=3), 1):
            assert hit.channels, "no channel is named"
            assert hit.stages, "no stage is named"
            assert hit.stages[-1].rank == rank

    def test_k_is_the_most_that_comes(self) -> None:
        retriever = self.make()
        few, many = retriever.search(self.QUERY, k=1), retriever.search(self.QUERY, k=1000)
        assert len(few) == 1
        assert 3 <= len(many) < 1000
        assert few[0].doc_id == many[0].doc_id

    def test_k_below_one_is_refused(self) -> None:
        for k in (0, -1):
            with raises(InputError):
                self.make().search(self.QUERY, k=k)

    def test_the_same_question_has_the_same_answer(self) -> None:
        retriever = self.make()
        first, second = retriever.search(self.QUERY, k=10), retriever.search(self.QUERY, k=10)
        assert [hit.doc_id for hit in first] == [hit.doc_id for hit in second]
        # Systems that compute with BLAS add up in an order that depends on where the numbers lie in memory.
        for one, other in zip(first, second, strict=True):
            assert isclose(one.score, other.score, rel_tol=1e-6) or (isnan(one.score) and isnan(other.score)), one.doc_id

    def test_no_query_breaks_it(self) -> None:
        retriever = self.make()
        for text in HOSTILE:
            hits = retriever.search(text, k=5)
            assert len(hits) <= 5, f"{text[:40]!r} brought {len(hits)} hits"


class ConnectorSuite(RetrieverSuite):
    """What every connector must hold besides: each fault of the system becomes one typed error with a cure."""

    SECRETS: ClassVar[tuple[str, ...]] = ()
    """Passwords, keys and addresses used in the tests; none may show in an error or a repr."""

    @abstractmethod
    def wrong_credentials(self) -> Any:
        """Return a connector whose credentials the system refuses."""

    @abstractmethod
    def nobody_there(self) -> Any:
        """Return a connector to a system that does not run."""

    @abstractmethod
    def gone_mid_query(self) -> Any:
        """Return a connector whose system goes away while it answers."""

    @abstractmethod
    def too_slow(self) -> Any:
        """Return a connector whose system takes longer than the connector's timeout."""

    @abstractmethod
    def malformed(self) -> Any:
        """Return a connector whose system answers something that is not a list of hits."""

    @abstractmethod
    def twice(self) -> Any:
        """Return a connector whose system returns one document twice."""

    @abstractmethod
    def few(self) -> Any:
        """Return (connector, query, number) where the system has fewer hits for the query than are asked for."""

    @abstractmethod
    def fails_once(self) -> Any:
        """Return a connector whose system fails at the first attempt and answers at the second."""

    def _state(self, state: str) -> Any:
        try:
            return getattr(self, state)()
        except NotPossible as reason:
            import pytest

            pytest.skip(f"{state} cannot be: {reason}")

    def _fails(self, state: str, wanted: type[SearchFailed]) -> None:
        connector = self._state(state)
        with raises(wanted) as messages:
            connector.search(self.QUERY, k=3)
        for word in self.SECRETS:
            assert word not in messages[0], f"the message shows '{word}'"

    def test_wrong_credentials_are_denied_access(self) -> None:
        self._fails("wrong_credentials", AccessDenied)

    def test_nobody_there_is_unreachable(self) -> None:
        self._fails("nobody_there", Unreachable)

    def test_a_server_gone_while_answering_is_unreachable(self) -> None:
        self._fails("gone_mid_query", Unreachable)

    def test_a_slow_server_times_out(self) -> None:
        self._fails("too_slow", TimedOut)

    def test_a_malformed_answer_is_a_bad_answer(self) -> None:
        self._fails("malformed", BadAnswer)

    def test_a_document_that_comes_twice_is_a_bad_answer(self) -> None:
        self._fails("twice", BadAnswer)

    def test_fewer_hits_than_asked_for_are_simply_fewer(self) -> None:
        connector, text, count = self._state("few")
        assert len(connector.search(text, k=count + 50)) == count

    def test_a_failure_is_tried_again(self) -> None:
        assert self._state("fails_once").search(self.QUERY, k=3)

    def test_no_secret_shows_in_its_repr(self) -> None:
        shown = repr(self.make())
        for word in self.SECRETS:
            assert word not in shown
