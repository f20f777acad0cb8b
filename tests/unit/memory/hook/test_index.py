from __future__ import annotations

import math
import sqlite3
from typing import Any

import pytest

from made_memories import memory
from ringtrue.memory.hook import index as index_module
from ringtrue.memory.hook.index import Index, about, shown_until
from ringtrue.memory.hook.memory import CATEGORIES, Memory, MemoryFault
from ringtrue.memory.hook.settings import Settings

NOW = 1_790_000_000.0  # 2026-09-21
FILLER = [memory(f"filler-{number}", f"Nothing of note {number}", "words that no prompt asks for") for number in range(20)]


def ids(memories: list[Memory], text: str, settings: Settings | None = None, **options: Any) -> list[str]:
    options = {"k": 10, "now": NOW, **options}
    return [found.memory.id for found in Index(memories, settings or Settings()).search(text, **options)]


def test_a_word_counts_most_in_the_title_then_in_the_tags_then_in_the_body() -> None:
    same = "alpha beta gamma"
    three = [
        memory("in-body", same, "ledger"),
        memory("in-tags", same, "other", tags=("ledger",)),
        memory("in-title", "ledger beta gamma", "other"),
    ]
    assert ids([*three, *FILLER], "ledger") == ["in-title", "in-tags", "in-body"]
    assert ids([*three, *FILLER], "ledger", Settings(column_weights=(1.0, 1.0, 50.0)))[0] == "in-body"


def test_scores_are_those_of_fts5_turned_positive() -> None:
    memories = [memory("a", "ledger export", "one"), memory("b", "export", "ledger two"), *FILLER]
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE t USING fts5(title, tags, body, tokenize='porter unicode61')")
    db.executemany("INSERT INTO t VALUES (?, ?, ?)", [(one.title, "", one.body) for one in memories])
    query = "SELECT bm25(t, 5.0, 3.0, 1.0) FROM t WHERE t MATCH '\"ledger\"*' ORDER BY 1"
    expected = [-row[0] for row in db.execute(query)]
    db.close()
    found = Index(memories, Settings()).search("ledger", k=5, now=NOW)
    assert [one.score for one in found] == expected
    assert [one.rank for one in found] == [1, 2]
    assert all(one.score > 0 for one in found)


def test_trap_25_with_one_or_two_memories_a_match_still_has_a_positive_score() -> None:
    (found,) = Index([memory("jwt", "Sessions are JWT")], Settings()).search("jwt sessions", k=3, now=NOW)
    assert 0 < found.score < 1e-3


def test_equal_scores_are_ordered_by_category_then_by_id() -> None:
    equal = [memory(f"{name}-{category}", "ledger", "same", category=category) for category in CATEGORIES for name in "ba"]
    expected = [f"{name}-{category}" for category in CATEGORIES for name in "ab"]
    assert ids(equal, "ledger", k=20) == expected
    assert ids(equal, "ledger", k=3) == expected[:3]
    assert ids(equal[::-1], "ledger", k=3) == expected[:3], "the order in which they come does not matter"
    assert ids(equal, "ledger", k=3, strategy="title_tags") == expected[:3]


def test_retention_is_a_filter_by_category_and_no_decay() -> None:
    def summary(name: str, when: str) -> Memory:
        return memory(name, "ledger", "same", category="session_summary", updated_at=when)

    fresh, old = summary("fresh", "2026-07-01T00:00:00Z"), summary("old", "2026-06-01T00:00:00Z")
    undated, ancient = summary("undated", "last summer"), memory("ancient", "ledger", "same", updated_at="2001-01-01")
    assert ids([fresh, old, undated, ancient], "ledger") == ["ancient", "fresh", "undated"]
    assert ids([fresh, old], "ledger", strategy="title_tags") == ["fresh"]
    assert ids([fresh, old], "ledger", Settings(retention_days={"session_summary": 0})) == ["fresh", "old"]
    assert ids([fresh, ancient], "ledger", Settings(retention_days={"decision": 10})) == ["fresh"]
    found = Index([summary("a", "2026-07-01"), summary("b", "2026-09-20")], Settings()).search("ledger", k=2, now=NOW)
    assert found[0].score == found[1].score


def test_a_memory_is_shown_to_the_end_of_its_last_day() -> None:
    one = memory("a", category="session_summary", updated_at="1970-01-01T01:00:00+01:00")
    assert shown_until(one, Settings()) == 90 * 86_400
    assert ids([one], "a1 session a", Settings(), now=90 * 86_400.0 + 1) == []


def test_trap_30_a_retired_memory_is_not_in_the_list_however_long_it_is() -> None:
    gone = [
        memory(f"{status}-{n}", "ledger ledger ledger", status=status) for status in ("retired", "archived") for n in range(30)
    ]
    memories = [*gone, *(memory(f"active-{n}", "something", "about the ledger") for n in range(5))]
    for strategy in ("fts5_bm25", "title_tags"):
        for k in (1, 5, 200):
            found = ids(memories, "ledger", k=k, strategy=strategy)
            assert found == [f"active-{n}" for n in range(min(k, 5))]
    assert len(Index(memories, Settings())) == 5


def test_trap_30_memories_past_their_retention_do_not_use_up_places() -> None:
    old = [memory(f"old-{n}", "ledger", category="session_summary", updated_at="2020-01-01") for n in range(50)]
    assert ids([*old, memory("new", "other", "the ledger")], "ledger", k=1) == ["new"]


def test_the_body_counts_to_its_limit() -> None:
    long = memory("long", "title", "x " * 1000 + "ledger")
    assert ids([long], "ledger") == []
    assert ids([long], "ledger", Settings(body_max_chars=3000)) == ["long"]


def test_only_so_many_words_are_asked() -> None:
    text = " ".join(f"word{number}" for number in range(8)) + " ledger " + " ".join(f"more{number}" for number in range(8))
    assert ids([memory("a", "ledger")], text) == []
    assert ids([memory("a", "ledger")], text, limit=Settings().search.query_max_tokens) == ["a"]


def test_related_files_gain_only_where_that_is_switched_on() -> None:
    memories = [
        memory("best", "ledger ledger", "ledger"),
        memory("near", "other", "ledger", related_files=("src/ledger.py", "docs/")),
        *FILLER,
    ]
    session = ["/projects/app/src/ledger.py"]
    assert ids(memories, "ledger", session=session) == ["best", "near"]
    on = Settings(related_files_boost=True)
    plain, raised = (Index(memories, on).search("ledger", k=5, now=NOW, session=paths) for paths in ([], session))
    scores = {found.memory.id: found.score for found in plain}
    assert {found.memory.id: found.score for found in raised} == {"best": scores["best"], "near": scores["near"] + 2.0}
    assert ids(memories, "ledger", on, session=[*session, *"abcde"]) == ["best", "near"], "five uses are looked back on"
    assert about(memories[1], ["/projects/docs/a.md"])
    assert not about(memories[1], ["/projects/xsrc/ledger.py", "/projects/src/ledger.pyi"])


def test_the_older_points_answer_where_fts5_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    memories = [
        memory("title", "ledger export", "x"),
        memory("tag", "other", "x", tags=("ledger",)),
        memory("body", "other", "ledger export nightly timeouts"),
        memory("part", "ledgers", "x"),
        memory("none", "other", "x"),
    ]
    expected = ["title", "tag", "body", "part"]
    assert ids(memories, "ledger export nightly timeouts", strategy="title_tags") == ["title", "body", "tag", "part"]
    assert ids(memories, "ledger", strategy="title_tags") == ["tag", "title", "body", "part"]
    monkeypatch.setattr(index_module, "tables", lambda db, more="": False)
    index = Index(memories, Settings())
    assert sorted(found.memory.id for found in index.search("ledger", k=9, now=NOW)) == sorted(expected)


def test_body_matches_give_three_points_at_most() -> None:
    found = Index([memory("a", "other", "one1 two2 three3 four4 five5")], Settings())
    assert found.search("one1 two2 three3 four4 five5", k=1, now=NOW, strategy="title_tags")[0].score == 3.0


def test_a_strategy_that_is_not_here_is_told() -> None:
    with pytest.raises(MemoryFault, match="'hybrid' is not one of this index"):
        Index([memory("a", "ledger")], Settings()).search("ledger", k=5, now=NOW, strategy="hybrid")


@pytest.mark.parametrize("text", ["", "   ", "the and of", "a", '"', "* ( )", "NOT", "\ud800", "\x00"])
def test_a_text_without_words_finds_nothing(text: str) -> None:
    assert ids([memory("a", "ledger")], text) == []


def test_odd_characters_in_a_memory_do_not_stop_the_others() -> None:
    odd = memory("odd-\ud800", "lone \ud800 surrogate ledger", "nul \x00 ledger")
    found = Index([odd, memory("b", "ledger")], Settings()).search("ledger", k=5, now=NOW)
    assert {one.memory.id for one in found} == {"odd-\ud800", "b"}
    assert all(math.isfinite(one.score) for one in found)


REDIS = memory("redis", "Redis is full", "raise the limit", trigger_phrases=("OOM command not allowed", "ship it"))


@pytest.mark.parametrize("strategy", ["fts5_bm25", "title_tags"])
@pytest.mark.parametrize(
    "text",
    [
        "ResponseError: OOM command not allowed when used",
        "oom COMMAND, not_allowed",
        "the ledger of commands allowed: looks good, ship it",
        "line 7 in handler\n" * 4000 + "redis.ResponseError: OOM command not allowed",
    ],
    ids=["in a line", "other signs", "stop words", "after a paste"],
)
def test_a_memory_that_is_called_by_its_phrase_comes_first(text: str, strategy: str) -> None:
    others = [memory("ledger", "Ledger of commands allowed", "ledger handler line", tags=("commands",)), *FILLER]
    found = Index([*others, REDIS], Settings()).search(text, k=10, now=NOW, strategy=strategy)
    assert found[0].memory.id == "redis"
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
    short = Index([*others, REDIS], Settings()).search(text, k=1, now=NOW, strategy=strategy)
    assert [(one.memory.id, one.score) for one in short] == [(one.memory.id, one.score) for one in found[:1]]


def test_words_of_a_phrase_are_found_as_those_of_tags_are() -> None:
    assert ids([*FILLER, REDIS], "what does OOM mean?") == ["redis"]
    assert ids([*FILLER, memory("x", "Nothing", "here", trigger_phrases=("it is",))], "it is what it is") == []


def test_trap_30_a_phrase_calls_nothing_that_is_retired_or_past_its_retention() -> None:
    retired = memory("gone", "Gone", "by", trigger_phrases=("ship it",), status="retired")
    old = memory("old", "Old", "by", category="session_summary", updated_at="2020-01-01", trigger_phrases=("ship it",))
    assert ids([retired, old], "looks good, ship it") == []


def test_without_fts5_phrases_call_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "build", lambda *_: None)
    assert ids([*FILLER, REDIS], "looks good, ship it") == ["redis"]
