"""Sessions of the MCP server: nothing is sent twice, and the saving is counted."""

from __future__ import annotations

from made_memories import memory
from ringtrue.memory.hook.memory import changed
from ringtrue.memory.tool_context import MOST_USED, Session, Sessions


def test_a_text_that_was_sent_is_known_until_it_changes_or_is_forgotten() -> None:
    session, one = Session("s"), memory("a", "A", "text", updated_at="2026-01-01T00:00:00Z")
    assert not session.has(one, "text")
    session.send(one, "text")
    assert session.has(one, "text")
    assert not session.has(changed(one, updated_at="2026-01-02T00:00:00Z"), "text")
    assert not session.has(one, "other text")
    session.forget()
    assert not session.has(one, "text")


def test_what_was_saved_stays_counted_when_the_texts_are_forgotten() -> None:
    session = Session("s")
    session.spare(40)
    session.forget()
    session.spare(2)
    assert session.saved == 42


def test_the_latest_uses_count_and_none_twice() -> None:
    session = Session("s")
    for number in range(MOST_USED + 5):
        session.use(f"m-{number}")
    session.use("m-10")
    used = session.used()
    assert len(used) == MOST_USED
    assert used[-1] == "m-10"
    assert used.count("m-10") == 1
    assert "m-0" not in used


def test_a_session_begins_again_for_another_id_and_never_without_one() -> None:
    sessions = Sessions()
    assert sessions.of("a") is sessions.of("a") is not sessions.of("b")
    assert sessions.of("") is None


def test_the_session_not_heard_of_for_longest_is_dropped() -> None:
    sessions = Sessions(most=2)
    first = sessions.of("a")
    sessions.of("b")
    assert sessions.of("a") is first
    sessions.of("c")
    assert len(sessions) == 2
    assert sessions.of("a") is first


def test_the_saving_of_all_sessions_is_added_up() -> None:
    sessions = Sessions()
    for name, tokens in (("a", 5), ("b", 7)):
        session = sessions.of(name)
        assert session is not None
        session.spare(tokens)
    assert sessions.saved() == 12
