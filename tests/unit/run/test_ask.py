"""Asking many questions: order, retries, time-outs, errors, and a stopwatch around the retriever alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from ringtrue.errors import AccessDenied, CannotDecide, InputError, TimedOut, Unreachable
from ringtrue.records import Hit
from ringtrue.retrieve import Staged, as_retriever
from ringtrue.retrieve.connectors.base import Connector
from ringtrue.run.ask import Question, ask_all


def questions(search: Callable[..., Any], texts: Sequence[str]) -> list[Question]:
    retriever = as_retriever(search, name="mine")
    return [Question(f"q{number}", text, retriever, {"k": 5}) for number, text in enumerate(texts)]


def test_answers_come_in_the_order_of_the_questions_whoever_was_first() -> None:
    def search(text: str, k: int) -> list[str]:
        time.sleep(0.03 if text == "slow" else 0)
        return [text]

    answers = ask_all(questions(search, ["slow", "a", "b", "c"]), workers=4)
    assert [answer.ranking.query_id for answer in answers] == ["q0", "q1", "q2", "q3"]
    assert [answer.ranking.hits[0].doc_id for answer in answers] == ["slow", "a", "b", "c"]


def test_latency_is_the_search_alone_not_the_waiting_for_a_worker() -> None:
    """Forty questions of 10 ms on one worker take 400 ms; each one's latency is still about 10."""

    def search(text: str, k: int) -> list[str]:
        time.sleep(0.01)
        return [text]

    answers = ask_all(questions(search, [str(n) for n in range(40)]), workers=1)
    latencies = sorted(answer.ranking.latency_ms or 0 for answer in answers)
    assert latencies[0] >= 10
    assert latencies[20] < 100  # waiting would have made it 200


def test_as_many_questions_run_at_once_as_workers_are_allowed() -> None:
    together = threading.Barrier(3, timeout=60)

    def search(text: str, k: int) -> list[str]:
        together.wait()  # passes only when three are here
        return [text]

    answers = ask_all(questions(search, ["a", "b", "c"]), workers=3)
    assert all(answer.ranking.error is None for answer in answers)


def test_an_error_is_listed_and_never_an_empty_answer() -> None:
    def search(text: str, k: int) -> list[str]:
        if text == "bad":
            raise ValueError("no such\nindex")
        return [text]

    answers = ask_all(questions(search, ["good", "bad", "good"]))
    assert answers[1].ranking.error == "ValueError: no such index"
    assert answers[1].ranking.latency_ms is None
    assert [answer.ranking.error for answer in (answers[0], answers[2])] == [None, None]


@pytest.mark.parametrize("problem", [Unreachable("gone"), TimedOut("slow"), ConnectionResetError("reset"), TimeoutError()])
def test_trouble_that_may_pass_is_tried_again_a_bounded_number_of_times(problem: Exception) -> None:
    asked: list[str] = []

    def search(text: str, k: int) -> list[str]:
        asked.append(text)
        if text == "once" and asked.count("once") == 1:
            raise problem
        if text == "always":
            raise problem
        return [text]

    answers = ask_all(questions(search, ["fine", "once", "always"]), retries=2)
    assert answers[1].ranking.error is None
    assert answers[2].ranking.error is not None
    assert "tried 3 times" in answers[2].ranking.error
    assert (asked.count("once"), asked.count("always")) == (2, 3)


@pytest.mark.parametrize(("retries", "attempts", "said"), [(0, 1, "gone"), (1, 2, "gone (tried 2 times)")])
def test_a_connection_is_tried_as_often_as_its_own_setting_says(retries: int, attempts: int, said: str) -> None:
    asked: list[str] = []

    class Flaky(Connector):
        def ask(self, text: str, *, k: int, scope: Any) -> list[str]:
            asked.append(text)
            if text == "down":
                raise Unreachable("gone")
            return [text]

    for retriever in (Flaky(retries=retries), Staged(Flaky(retries=retries), [])):
        asked.clear()
        both = [Question(text, text, retriever, {"k": 3}) for text in ("fine", "down")]
        answers = ask_all(both, retries=1)
        assert (answers[1].ranking.error, asked.count("down")) == (said, attempts)


def test_an_error_of_the_program_is_not_tried_again() -> None:
    asked: list[str] = []

    def search(text: str, k: int) -> list[str]:
        asked.append(text)
        if text == "bad":
            raise KeyError("column")
        return [text]

    ask_all(questions(search, ["fine", "bad"]), retries=5)
    assert asked.count("bad") == 1


def test_a_search_that_hangs_costs_its_own_question_only() -> None:
    release = threading.Event()

    def search(text: str, k: int) -> list[str]:
        if text == "hangs":
            release.wait(60)
        return [text]

    try:
        answers = ask_all(questions(search, ["a", "hangs", "b", "c"]), timeout=1.5, retries=0)
    finally:
        release.set()
    assert answers[1].ranking.error == "took longer than 1.5 s"
    assert [answer.ranking.hits[0].doc_id for answer in (answers[0], *answers[2:])] == ["a", "b", "c"]


def test_too_many_hanging_searches_end_the_asking() -> None:
    release = threading.Event()

    def search(text: str, k: int) -> list[str]:
        if text == "hangs":
            release.wait(60)
        return [text]

    try:
        with pytest.raises(CannotDecide, match=r"9 searches took longer than 0\.3 s and still hang"):
            ask_all(questions(search, ["a"] + ["hangs"] * 12), timeout=0.3, retries=0, workers=4)
    finally:
        release.set()


def test_where_nothing_is_answered_asking_ends_early_with_the_first_error() -> None:
    asked: list[str] = []

    def search(text: str, k: int) -> list[str]:
        asked.append(text)
        raise RuntimeError("the index is closed")

    with pytest.raises(CannotDecide, match="none of the first 5 questions was answered: RuntimeError: the index is closed"):
        ask_all(questions(search, [str(n) for n in range(50)]))
    assert len(asked) < 10


def test_refused_credentials_end_the_asking_at_once() -> None:
    asked: list[str] = []

    def search(text: str, k: int) -> list[str]:
        asked.append(text)
        if len(asked) > 3:
            raise AccessDenied("mine: refused the credentials")
        return [text]

    with pytest.raises(AccessDenied):
        ask_all(questions(search, [str(n) for n in range(50)]))
    assert len(asked) == 4


def test_a_wrong_question_is_said_once_and_not_fifty_times() -> None:
    def search(text: str, k: int) -> list[Hit]:
        return []

    wrong = [Question("q", "a", as_retriever(search, name="mine"), {"k": 5, "scope": {"city": "Bath"}})]
    with pytest.raises(InputError, match="mine takes no scope"):
        ask_all(wrong)


def test_a_search_that_wants_to_end_the_program_ends_its_own_question() -> None:
    def search(text: str, k: int) -> list[str]:
        if text == "bad":
            raise SystemExit(0)
        return [text]

    answers = ask_all(questions(search, ["good", "bad", "good"]))
    assert answers[1].ranking.error == "RuntimeError: the search raised SystemExit(0)"


def test_an_id_that_no_file_can_hold_is_that_answers_error() -> None:
    answers = ask_all(questions(lambda text, k: ["a\ud800" if text == "bad" else "a"], ["good", "bad"]))
    assert "an unpaired surrogate" in (answers[1].ranking.error or "")
