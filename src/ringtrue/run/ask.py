"""Questions → answers, several at once, each with its own stopwatch.

The stopwatch runs around the retriever alone: neither waiting for a free worker nor anything after the answer counts. A search
that hangs cannot be stopped from outside; its thread is left behind, its question gets an error, and another thread goes on.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any

from ringtrue.errors import AccessDenied, BadAnswer, CannotDecide, RingtrueError, SearchFailed, TimedOut, Unreachable
from ringtrue.records import Hit, Ranking
from ringtrue.retrieve import Retriever, Seen, observing, plain
from ringtrue.traffic import marked

PAUSE = 0.2
"""Seconds before the first retry; each further one waits twice as long."""
HOPELESS = 5
"""So many questions without a single answer between them, and asking ends."""
MOST_LEFT_BEHIND = 8
"""Threads that may hang before asking ends: each keeps its memory and connection."""
PASSING = (Unreachable, TimedOut, ConnectionError, TimeoutError)


@dataclass(frozen=True)
class Question:
    """One query as it is put to its retriever."""

    query_id: str
    text: str
    retriever: Retriever
    options: Mapping[str, Any]
    """k, and where they are used scope and session."""


@dataclass(frozen=True)
class Answer:
    """What came back: hits, or an error; ``seen`` is how the hits came about, for retrievers that have parts."""

    ranking: Ranking
    seen: Seen | None = None


@dataclass
class _Turn:
    """One attempt at a question by one thread."""

    question: Question
    attempt: int
    started: float = 0.0
    given_up: bool = False


def ask_all(
    questions: Sequence[Question],
    *,
    workers: int = 1,
    timeout: float = 30.0,
    retries: int = 1,
    timed: bool = True,
    done: Callable[[Answer], None] | None = None,
) -> list[Answer]:
    """Return one answer per question, in their order; ``done`` hears of each as it comes, in this thread.

    ``retries`` are further attempts at a search that has no setting ``retries`` of its own. Raises CannotDecide if nothing is
    answered, AccessDenied at once, and any error that says that the question itself is wrong.
    """
    waiting: deque[_Turn] = deque(_Turn(question, 1) for question in questions)
    threads = _Workers(timed)
    answers: dict[str, Answer] = {}
    running: list[_Turn] = []
    failed_first: list[str] = []
    for _ in range(min(workers, len(questions))):
        threads.start_one()
    try:
        while len(answers) < len(questions):
            while waiting and len(running) < workers:
                running.append(waiting.popleft())
                threads.give(running[-1])
            for turn, outcome in threads.outcomes(running, timeout):
                running.remove(turn)
                answer = outcome if isinstance(outcome, Answer) else _failed(turn, outcome, retries)
                if answer is None:
                    waiting.append(_Turn(turn.question, turn.attempt + 1))
                    continue
                answers[turn.question.query_id] = answer
                if answer.ranking.error is not None and len(failed_first) == len(answers) - 1:
                    failed_first.append(answer.ranking.error)
                    if len(failed_first) >= min(HOPELESS, len(questions)):
                        raise CannotDecide(f"none of the first {len(failed_first)} questions was answered: {failed_first[0]}")
                if done is not None:
                    done(answer)
    finally:
        threads.end()
    return [answers[question.query_id] for question in questions]


class _Workers:
    """The threads that search, with the queues to and from them."""

    def __init__(self, timed: bool) -> None:
        self._timed, self._started, self._left_behind = timed, 0, 0
        self._jobs: queue.SimpleQueue[_Turn | None] = queue.SimpleQueue()
        self._results: queue.SimpleQueue[tuple[_Turn, Answer | Exception]] = queue.SimpleQueue()

    def start_one(self) -> None:
        # Daemons: a search that hangs for ever must not keep the program from ending.
        with marked("evaluation"):
            context = copy_context()
        work = (_work, self._jobs, self._results, self._timed)
        threading.Thread(target=context.run, args=work, name="ringtrue-ask", daemon=True).start()
        self._started += 1

    def give(self, turn: _Turn) -> None:
        turn.started = time.monotonic()
        self._jobs.put(turn)

    def outcomes(self, running: Sequence[_Turn], timeout: float) -> list[tuple[_Turn, Answer | Exception]]:
        """Return the next outcome, or TimedOut for every search that hangs; another thread goes on in its place."""
        patience = max(0.0, min(turn.started for turn in running) + timeout - time.monotonic())
        with suppress(queue.Empty):
            found = self._results.get(timeout=patience + 0.01)
            return [] if found[0].given_up else [found]  # or it came after all, too late
        late = [turn for turn in running if time.monotonic() - turn.started >= timeout]
        for turn in late:
            turn.given_up = True
            self._left_behind += 1
            if self._left_behind > MOST_LEFT_BEHIND:
                many = f"{self._left_behind} searches took longer than {timeout:g} s and still hang"
                raise CannotDecide(f"{many}; fix the search, or raise --timeout")
            self.start_one()
        return [(turn, TimedOut(f"took longer than {timeout:g} s")) for turn in late]

    def end(self) -> None:
        for _ in range(self._started):
            self._jobs.put(None)


def _failed(turn: _Turn, problem: Exception, retries: int) -> Answer | None:
    """Return the answer that a question without one gets; None if its trouble may pass, so that it is asked again."""
    wrong_question = isinstance(problem, RingtrueError) and not isinstance(problem, SearchFailed)
    if wrong_question or isinstance(problem, AccessDenied):
        raise problem
    # A connection that has a setting ``retries`` of its own, and says 0, is asked once.
    retries_itself = any(hasattr(one, "retries") for one in with_parts(turn.question.retriever))
    if isinstance(problem, PASSING) and turn.attempt <= retries and not retries_itself:
        return None
    said = str(problem) if isinstance(problem, RingtrueError) else f"{type(problem).__name__}: {problem}"
    tried = f" (tried {turn.attempt} times)" if turn.attempt > 1 else ""
    return Answer(Ranking(turn.question.query_id, (), error=" ".join(said.split()) + tried))


def with_parts(retriever: Any) -> Iterator[Any]:
    """Yield a retriever, the parts that it is made of, their parts …"""
    yield retriever
    for part in getattr(retriever, "parts", ()):
        yield from with_parts(part)


def _work(
    jobs: queue.SimpleQueue[_Turn | None], results: queue.SimpleQueue[tuple[_Turn, Answer | Exception]], timed: bool
) -> None:
    while (turn := jobs.get()) is not None:
        if turn.attempt > 1:
            time.sleep(PAUSE * 2 ** (turn.attempt - 2))
            turn.started = time.monotonic()
        try:
            results.put((turn, _answer(turn.question, timed)))
        except Exception as problem:
            results.put((turn, problem))
        except BaseException as problem:  # a search that wants to end the program ends its own question only
            results.put((turn, RuntimeError(f"the search raised {type(problem).__name__}({problem})")))
        if turn.given_up:
            return  # another thread has taken this one's place


def _answer(question: Question, timed: bool) -> Answer:
    with observing() as seen:
        start = time.perf_counter()
        hits: Sequence[Hit] = question.retriever.search(question.text, **question.options)
        spent = (time.perf_counter() - start) * 1000
    for hit in hits:
        if not hit.doc_id.isascii() and plain(hit.doc_id) != hit.doc_id:
            raise BadAnswer(
                f"the document id {hit.doc_id!r:.60} holds an unpaired surrogate, which UTF-8 cannot store; fix it there"
            )
    return Answer(Ranking(question.query_id, tuple(hits), latency_ms=spent if timed else None), seen.root)
