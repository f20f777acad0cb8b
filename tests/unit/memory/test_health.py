"""The figures of the journal: counted from events as the hook writes them."""

from __future__ import annotations

from ringtrue.memory.health import health, health_of
from ringtrue.memory.hook.journal import record


def prompt(outcome: str, *ids: str, prompt_id: str = "", session: str = "s", at: float = 1.0, ms: float = 10.0):
    injected = [{"id": name, "rank": rank, "score": 1.0} for rank, name in enumerate(ids, 1)]
    joint = {"prompt_id": prompt_id} if prompt_id else {}
    return {"event": "prompt", "at": at, "session_id": session, "outcome": outcome, "injected": injected, "ms": ms, **joint}


def read(name: str, *, prompt_id: str = "", session: str = "s"):
    return {"event": "read", "at": 2.0, "session_id": session, "id": name, **({"prompt_id": prompt_id} if prompt_id else {})}


def quoted(name: str, *, prompt_id: str = "", session: str = "s"):
    return {
        "event": "reference",
        "at": 2.0,
        "session_id": session,
        "prompt_id": prompt_id,
        "referenced": [{"id": name, "rank": 1}],
    }


def test_without_a_journal_no_rate_is_made_up(tmp_path) -> None:
    found = health(str(tmp_path), now=100.0)
    assert (found.prompts, found.silent_rate, found.read_after_injection_rate, found.false_inject_rate) == (0, None, None, None)
    assert (found.ms_p50, found.last_prompt_at) == (None, None)


def test_rates_are_shares_of_the_prompts_that_were_looked_up() -> None:
    found = health_of(
        [
            prompt("injected", "a", "b", prompt_id="1"),
            read("b", prompt_id="1"),
            prompt("injected", "c", prompt_id="2"),
            quoted("c", prompt_id="2"),
            prompt("injected", "a", prompt_id="3"),
            prompt("silent", prompt_id="4"),
            prompt("empty"),
            prompt("skipped"),
        ]
    )
    assert (found.prompts, found.searched, found.injected, found.injections) == (6, 4, 3, 4)
    assert found.silent_rate == 0.25
    assert found.read_after_injection_rate == 1 / 3
    assert found.reference_rate == 1 / 3
    assert found.unused_rate == 1 / 3
    assert found.shown == {"a": 2, "b": 1, "c": 1}
    assert found.read == {"b": 1}


def test_a_read_is_joined_on_its_prompt_and_else_on_the_last_of_its_session() -> None:
    other = [prompt("injected", "a", prompt_id="1"), prompt("injected", "b", prompt_id="2"), read("a", prompt_id="2")]
    assert health_of(other).read_after_injection_rate == 0.0
    unnamed = [prompt("injected", "a", session="x"), prompt("injected", "b", session="y"), read("a", session="x")]
    assert health_of(unnamed).read_after_injection_rate == 0.5


def test_without_any_report_of_reads_what_was_unused_is_unknown() -> None:
    assert health_of([prompt("injected", "a")]).unused_rate is None


def test_rows_of_silence_and_of_empty_prompts_are_counted_from_the_last() -> None:
    found = health_of(
        [prompt("injected", "a"), prompt("silent"), prompt("skipped"), prompt("silent"), prompt("empty"), prompt("empty")]
    )
    assert (found.silent_in_a_row, found.empty_in_a_row) == (2, 2)
    assert health_of([prompt("silent"), prompt("injected", "a")]).silent_in_a_row == 0


def test_failures_and_times_are_kept() -> None:
    error = {"event": "error", "at": 3.0, "kind": "error", "message": "boom"}
    found = health_of([prompt("silent", ms=ms) for ms in range(1, 101)] + [error, {**error, "kind": "timeout"}])
    assert (found.errors, found.timeouts, found.last_error) == (1, 1, "boom")
    assert (found.ms_p50, found.ms_p95) == (51.0, 96.0)


def test_only_the_window_counts_and_foreign_lines_do_no_harm(tmp_path) -> None:
    root = str(tmp_path)
    record(root, prompt("injected", "a", at=86_400.0 * 10))
    record(root, prompt("silent", at=86_400.0 * 50))
    (journal,) = (tmp_path / ".ringtrue" / "journal").glob("*02.jsonl")
    with journal.open("a") as file:
        file.write('{"event": "prompt", "at": 5e6, "injected": "x"}\n{"torn')
    found = health(root, now=86_400.0 * 51, days=30)
    assert (found.injected, found.silent) == (0, 1)


def test_an_injection_is_false_only_where_somebody_said_so(tmp_path) -> None:
    root = str(tmp_path)
    for number, name in enumerate(("a", "b", "c"), 1):
        record(
            root,
            {**prompt("injected", name, prompt_id=str(number)), "at": float(number), "query": f"question {number}", "ms": 1.0},
        )
    record(root, {"event": "read", "at": 4.0, "session_id": "s", "prompt_id": "1", "id": "a"})
    record(root, {"event": "validate", "at": 5.0, "session_id": "s", "id": "b", "useful": False})
    found = health(root, now=100.0)
    assert found.unused_rate == 2 / 3
    assert (found.judged, found.false_inject_rate) == (2, 0.5)
