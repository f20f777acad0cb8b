from __future__ import annotations

import sqlite3
from contextlib import closing

from hypothesis import given, settings
from hypothesis import strategies as st

from ringtrue.recall.words import STOP_WORDS, match_expression, query_words


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


def test_a3_a_part_of_a_word_finds_the_word() -> None:
    assert found("auth", "authentication by token", "author", "oath") == ["authentication by token", "author"]
    assert found("caching", "cached for an hour") == ["cached for an hour"]


def test_a3_a_verb_in_y_and_its_noun_find_each_other_though_their_stems_differ() -> None:
    texts = "we deploy at noon", "deployments at noon", "the depot at noon"
    for word in ("deploy", "deployed", "deployment", "deployments"):
        assert found(word, *texts)[:1] == ["we deploy at noon"], word
    assert found("deploy", *texts) == found("deployment", *texts) == list(texts[:2])
    assert found("pay", "payments fail") == ["payments fail"]


def test_trap_27_a_compound_is_an_exact_phrase_and_never_the_beginning_of_another() -> None:
    texts = "user_id is a uuid", "user identity is checked", "the id of a user", "user-id header"
    assert found("user_id", *texts) == ["user_id is a uuid", "user-id header"]
    assert "*" not in str(match_expression("user_id and max-age and app.config", 15))


def test_a3_two_letters_and_numbers_stand_for_themselves() -> None:
    assert found("id", "identity", "the id") == ["the id"]
    assert found("port 500", "5000 lines", "error 500") == ["error 500"]


def test_a3_reserved_words_are_words() -> None:
    assert match_expression("NEAR(redis, cache) NOT AND OR", 15) == '"near"* OR "redis"* OR "cache"*'
    assert found("near", "nearby", "far") == ["nearby"]


def test_a3_stop_words_short_words_repeats_and_the_limit() -> None:
    assert query_words("What's the x of Redis, redis and the cache's TTL? Don't guess", 15) == [
        "redis",
        "cache",
        "ttl",
        "guess",
    ]
    assert query_words("alpha beta gamma delta", 2) == ["alpha", "beta"]
    assert match_expression("what is it about, then?", 15) is None
    assert {"and", "or", "not"} <= STOP_WORDS


def test_a3_words_of_other_languages_are_found_however_they_were_typed() -> None:
    assert found("Gro\u0308ße", "Die Größe der Warteschlange") == ["Die Größe der Warteschlange"]
    assert found("pokémon", "Pokemon cards") == ["Pokemon cards"]


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=200))
def test_a8_no_text_makes_an_expression_that_fts5_refuses(text: str) -> None:
    assert found(text, "") == [], "an error would pass through"
