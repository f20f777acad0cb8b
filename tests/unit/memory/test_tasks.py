"""Tasks and validations in the journal."""

from __future__ import annotations

from pathlib import Path

import pytest

from made_memories import memory
from ringtrue.errors import InputError
from ringtrue.feedback import TaskOutcome, session_summaries, stored_outcomes
from ringtrue.memory.hook.journal import record
from ringtrue.memory.signals import bring_journal
from ringtrue.memory.tasks import State, outcomes, postflight, preflight, to_validate, validate, validations
from ringtrue.store import LoggedQuery, Store

NOW = 1_800_000_000.0


def begin(root: Path, task: str = "t", session: str = "s", knowledge: float = 0.2, uncertainty: float = 0.8) -> bool:
    return preflight(str(root), session_id=session, task_id=task, state=State(knowledge, uncertainty), now=NOW)


def end(root: Path, task: str = "t", session: str = "s", knowledge: float = 0.7, uncertainty: float = 0.4) -> TaskOutcome:
    return postflight(str(root), session_id=session, task_id=task, state=State(knowledge, uncertainty), now=NOW + 60)


def test_the_outcome_is_the_difference_of_the_two_states(tmp_path: Path) -> None:
    assert begin(tmp_path) is False
    assert end(tmp_path) == TaskOutcome("s", "t", 0.5, 0.4, 0.45)


def test_a_task_that_taught_nothing_or_unlearned_is_shown_so(tmp_path: Path) -> None:
    begin(tmp_path, knowledge=0.6, uncertainty=0.3)
    found = end(tmp_path, knowledge=0.5, uncertainty=0.5)
    assert (found.knowledge_delta, found.uncertainty_reduction, found.learning_index) == (-0.1, -0.2, -0.15)


def test_the_last_beginning_counts_and_says_that_it_is_one(tmp_path: Path) -> None:
    begin(tmp_path, knowledge=0.1)
    assert begin(tmp_path, knowledge=0.6) is True
    assert end(tmp_path).knowledge_delta == 0.1


def test_tasks_of_other_sessions_are_other_tasks(tmp_path: Path) -> None:
    begin(tmp_path, session="one", knowledge=0.0)
    begin(tmp_path, session="two", knowledge=0.5)
    assert end(tmp_path, session="one").knowledge_delta == 0.7


def test_a_task_without_beginning_is_refused_with_the_nearest_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no preflight; call task_preflight when a task begins"):
        end(tmp_path)
    begin(tmp_path, task="login-form")
    with pytest.raises(InputError, match="'login-from' of session 's' has no preflight; did you mean 'login-form'"):
        end(tmp_path, task="login-from")


def test_a_task_ends_once(tmp_path: Path) -> None:
    begin(tmp_path)
    end(tmp_path)
    with pytest.raises(InputError, match="has ended already; its outcome stands"):
        end(tmp_path)
    with pytest.raises(InputError, match="give the next task another task_id"):
        begin(tmp_path)
    assert len(outcomes(str(tmp_path))) == 1


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), True, "0.5"])
def test_a_state_outside_0_to_1_is_refused(value: object) -> None:
    with pytest.raises(InputError, match=r"knowledge is .*; write a number from 0 to 1"):
        State(value, 0.5)  # type: ignore[arg-type]


def test_a_session_has_one_stored_outcome_the_mean_of_its_tasks_and_joins_its_searches(tmp_path: Path) -> None:
    begin(tmp_path, task="a", knowledge=0.1)
    begin(tmp_path, task="b", knowledge=0.5)
    end(tmp_path, task="a")
    end(tmp_path, task="b")
    with Store.open(tmp_path / "store.sqlite") as store:
        bring_journal(str(tmp_path), store)
        (found,) = stored_outcomes(store)
    assert (found.task_id, found.knowledge_delta) == ("a, b", 0.4)
    search = LoggedQuery("eq_1", "why jwt", "memory_search", "2027-01-15T08:00:00Z", session_id="s", result_ids=("jwt",))
    (summary,) = session_summaries([search], [], outcomes=[found])
    assert summary.outcome == found


def say(root: Path, verdicts: dict[str, bool], *, session: str, now: float = NOW, confidence: float | None = None):
    memories = [memory(name, confidence=confidence) for name in ("a", "b", "c")]
    return validate(str(root), verdicts, memories=memories, session_id=session, now=now)


def test_useful_adds_010_not_useful_takes_005_from_what_the_file_says(tmp_path: Path) -> None:
    found = say(tmp_path, {"a": True, "b": False}, session="s", confidence=0.7)
    assert (found["a"].value, found["b"].value) == (0.8, 0.65)


def test_confidence_stays_within_0_and_1_and_five_voices_make_it_eligible(tmp_path: Path) -> None:
    for number in range(6):
        found = say(tmp_path, {"a": True, "b": False}, session=f"s{number}", now=NOW + number, confidence=0.8)
    assert found["a"].value == 1.0
    assert found["a"].promotion_eligible
    for number in range(30):
        found = say(tmp_path, {"b": False}, session=f"t{number}", now=NOW + 10 + number, confidence=0.8)
    assert found["b"].value == 0.0
    assert not found["b"].promotion_eligible


def test_a_session_has_one_vote_its_last(tmp_path: Path) -> None:
    for number in range(5):
        say(tmp_path, {"a": True}, session="s", now=NOW + number)
    assert say(tmp_path, {"a": False}, session="s", now=NOW + 9)["a"].value == 0.45


def test_an_unknown_memory_stops_the_whole_batch(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no memory 'zz'"):
        say(tmp_path, {"a": True, "zz": True}, session="s")
    assert validations(str(tmp_path)) == []


def test_validations_come_into_the_store_as_agents_feedback_once_each(tmp_path: Path) -> None:
    say(tmp_path, {"a": True}, session="s")
    say(tmp_path, {"a": False}, session="s", now=NOW + 1)
    events = validations(str(tmp_path))
    assert [event.event_type for event in events] == ["validate_useful", "validate_not_useful"]
    assert {event.actor for event in events} == {"agent"}
    assert len({event.event_id for event in events}) == 2
    assert validations(str(tmp_path)) == events
    assert validations(str(tmp_path), since=NOW + 1) == events[1:]


def test_what_was_read_and_not_judged_is_asked_for_at_the_end(tmp_path: Path) -> None:
    for name, session in (("a", "s"), ("b", "s"), ("c", "other"), ("b", "s")):
        record(str(tmp_path), {"at": NOW, "event": "read", "id": name, "session_id": session})
    say(tmp_path, {"a": True}, session="s")
    assert to_validate(str(tmp_path), session_id="s") == ["b"]


def test_a_journal_that_cannot_be_written_is_an_error_and_no_silent_loss(tmp_path: Path) -> None:
    (tmp_path / ".ringtrue").write_text("a file in the way")
    with pytest.raises(InputError, match="the journal cannot be written"):
        begin(tmp_path)
