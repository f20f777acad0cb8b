from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringtrue.memory.hook.evidence import MemoryWords, words_of
from ringtrue.memory.hook.index import Index
from ringtrue.memory.hook.memory import Memory
from ringtrue.memory.hook.settings import Settings
from ringtrue.memory.hook.words import LONGEST, STOP_WORDS, beginning, cut, match_expression, query_words, refers_back


def table(*texts: str) -> sqlite3.Connection:
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE memory USING fts5(body, tokenize='porter unicode61')")
    db.executemany("INSERT INTO memory VALUES (?)", [(text,) for text in texts])
    return db


def found(prompt: str, *texts: str) -> list[str]:
    expression = match_expression(prompt, 15)
    if expression is None:
        return []
    with closing(table(*texts)) as db:
        return [row[0] for row in db.execute("SELECT * FROM memory WHERE memory MATCH ?", (expression,))]


def test_a_part_of_a_word_finds_the_word() -> None:
    assert found("auth", "authentication by token", "author", "oath") == ["authentication by token", "author"]
    assert found("caching", "cached for an hour") == ["cached for an hour"]


def test_a_verb_in_y_and_its_noun_find_each_other_though_their_stems_differ() -> None:
    texts = "we deploy at noon", "deployments at noon", "the depot at noon"
    for word in ("deploy", "deployed", "deployment", "deployments"):
        assert found(word, *texts)[:1] == ["we deploy at noon"], word
    assert found("deploy", *texts) == found("deployment", *texts) == list(texts[:2])
    assert found("pay", "payments fail") == ["payments fail"]


def test_trap_27_a_compound_is_an_exact_phrase_and_never_the_beginning_of_another() -> None:
    texts = "user_id is a uuid", "user identity is checked", "the id of a user", "user-id header"
    assert found("user_id", *texts) == ["user_id is a uuid", "user-id header"]
    assert "*" not in str(match_expression("user_id and max-age and app.config", 15))


def test_two_letters_and_numbers_stand_for_themselves() -> None:
    assert found("id", "identity", "the id") == ["the id"]
    assert found("port 500", "5000 lines", "error 500") == ["error 500"]


def test_reserved_words_are_words() -> None:
    assert match_expression("NEAR(redis, cache) NOT AND OR", 15) == '"near"* OR "redis"* OR "cache"*'
    assert found("near", "nearby", "far") == ["nearby"]


def test_stop_words_short_words_repeats_and_the_limit() -> None:
    assert query_words("What's the x of Redis, redis and the cache's TTL? Don't guess", 15) == [
        "redis",
        "cache",
        "ttl",
        "guess",
    ]
    assert query_words("kafka redis celery terraform", 2) == ["kafka", "terraform"]
    assert match_expression("what is it about, then?", 15) is None
    assert {"and", "or", "not"} <= STOP_WORDS


def test_words_of_other_languages_are_found_however_they_were_typed() -> None:
    assert found("Gro\u0308ße", "Die Größe der Warteschlange") == ["Die Größe der Warteschlange"]
    assert found("pokémon", "Pokemon cards") == ["Pokemon cards"]


@settings(max_examples=60)
@given(st.text(max_size=200))
def test_no_text_makes_an_expression_that_fts5_refuses(text: str) -> None:
    assert found(text, "") == [], "an error would pass through"


def test_of_more_words_than_the_limit_the_telling_ones_are_taken_in_their_order() -> None:
    preamble = "The people of the city came home and the day was long. " * 3
    assert query_words(f"{preamble} why not kafka for webhook retries?", 3) == ["kafka", "webhook", "retries"]
    numbers = " ".join(str(number) for number in range(100, 300))
    assert query_words(f"{numbers} kafka {numbers} timeout", 2) == ["kafka", "timeout"]


def test_a_text_of_any_length_is_looked_at_at_both_ends() -> None:
    long = "kafka " + "noise " * 100_000 + "terraform"
    assert len(cut(long)) <= LONGEST
    assert query_words(long, 15) == ["kafka", "noise", "terraform"]
    assert cut("x" * (2 * LONGEST)).count("x") > LONGEST // 2
    assert cut(" " * 50_000) == "\n"
    assert cut(cut(long)) == cut(long)


def test_a_beginning_has_no_more_words_than_the_limit() -> None:
    assert beginning("is it safe?\nthe terraform lock of the app folder", 3) == "is it safe?\nthe terraform lock of the"
    assert beginning("terraform terraform terraform", 1) == "terraform terraform terraform"


@pytest.mark.parametrize(
    ("query", "text"), [("429s", "status 429"), ("429", "many 429s"), ("email", "an E-mail"), ("e-mail", "one email")]
)
def test_numbers_in_the_plural_and_letters_with_a_hyphen_are_the_same_word(query: str, text: str) -> None:
    memories = [
        Memory(id="it", category="decision", title=text, body=""),
        Memory(id="no", category="decision", title="x", body=""),
    ]
    assert [one.memory.id for one in Index(memories, Settings()).search(query, k=5, now=0.0)] == ["it"]
    assert MemoryWords(memories[0], 2000).counts(words_of(query, 15)[0]) == 1.0


@pytest.mark.parametrize(
    ("text", "back"),
    [
        ("and how do we fix it?", True),
        ("do the same for staging", True),
        ("is it safe there?", True),
        ("write one about spring", False),
        ("is there a joke about bees", False),
        ("run the test suite", False),
    ],
)
def test_a_text_refers_back_by_a_word_that_stands_for_another(text: str, back: bool) -> None:
    assert refers_back(text) is back
