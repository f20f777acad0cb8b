"""Secrets and personal data are taken out before anything is stored."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import asdict, fields
from typing import Any

import pytest

from made_secrets import harmless, planted
from ringtrue.errors import InputError, MissingInput
from ringtrue.log import Redactor
from ringtrue.log.redact import DEPTH
from ringtrue.store import FeedbackEvent, LoggedQuery

NOW = "2026-03-01T12:00:00.000000Z"


def test_at_least_95_percent_of_the_planted_secrets_and_personal_data_are_caught() -> None:
    redactor = Redactor()
    found = planted()
    missed = [query for _, query, secret in found if secret in redactor.text(query)]
    assert len(found) >= 200
    assert len({query for _, query, _ in found}) == len(found)
    assert 1 - len(missed) / len(found) >= 0.95, missed


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_other_random_letters_are_caught_as_well(seed: int) -> None:
    redactor = Redactor()
    found = planted(seed)
    missed = Counter(kind for kind, query, secret in found if secret in redactor.text(query))
    total = Counter(kind for kind, _, _ in found)
    assert sum(missed.values()) <= 0.05 * len(found), missed
    assert all(missed[kind] <= 0.1 * total[kind] for kind in total), missed


def test_false_alarms_on_harmless_queries_are_counted_and_few() -> None:
    redactor = Redactor()
    queries = harmless()
    alarms = {query: redactor.text(query) for query in queries if redactor.text(query) != query}
    assert len(queries) >= 200
    assert len(alarms) <= 0.01 * len(queries), alarms


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("mail ada@example.org now", "mail [email] now"),
        ("card 4111 1111 1111 1111 declined", "card [card] declined"),
        ("card 4111 1111 1111 1112 declined", "card 4111 1111 1111 1112 declined"),
        ("pay GB82 WEST 1234 5698 7654 32 today", "pay [iban] today"),
        ("pay GB83 WEST 1234 5698 7654 32 today", "pay GB83 WEST 1234 5698 7654 32 today"),
        ("ping 192.0.2.7", "ping [ip]"),
        ("firmware 192.0.2.7", "firmware 192.0.2.7"),
        ("isbn 978-3-16-148410-0", "isbn 978-3-16-148410-0"),
        ("password: hunter2 fails", "password: [key] fails"),
        ("password reset", "password reset"),
        ("password hunter2secret fails", "password [key] fails"),
        ("password hunter2, please", "password [key], please"),
        ("password oauth2 grant", "password oauth2 grant"),
        ("bypass oauth2secret", "bypass oauth2secret"),
        ("https://bob:hunter2@example.org/x", "https://[key]@example.org/x"),
        ("call +49 30 1234567 or write", "call [phone] or write"),
        ("ssn 123-45-6789", "ssn [ssn]"),
    ],
)
def test_what_surrounds_a_find_stays(text: str, wanted: str) -> None:
    assert Redactor().text(text) == wanted


def test_redacting_again_changes_nothing() -> None:
    redactor = Redactor()
    for _, query, _ in planted():
        once = redactor.text(query)
        assert redactor.text(once) == once


def test_reasons_flags_and_metadata_are_redacted_at_any_depth() -> None:
    redactor = Redactor()
    query = LoggedQuery(
        "eq_1", "pool", "shop", NOW, fallback="error: no user ada@example.org", flags={"who": {"mail": ["ada@example.org"]}},
        result_ids=("doc@example.org",),
    )  # fmt: skip
    made = redactor.query(query)
    assert made.fallback == "error: no user [email]"
    assert made.flags == {"who": {"mail": ["[email]"]}}
    assert made.result_ids == ("doc@example.org",)  # ids join; they are the catalogue's
    event = FeedbackEvent("ef_1", "click", "s", NOW, metadata={"password": "sesame", "count": 3, "note": "+49 30 1234567"})
    assert redactor.feedback(event).metadata == {"password": "[key]", "count": 3, "note": "[phone]"}


def test_metadata_that_is_no_plain_data_becomes_text_and_what_nests_without_end_is_left_out() -> None:
    class Odd:
        def __str__(self) -> str:
            return "ada@example.org"

    endless: dict[str, object] = {}
    endless["again"] = endless
    event = FeedbackEvent("ef_1", "click", "s", NOW, metadata={"odd": Odd(), "endless": endless})
    made = Redactor().feedback(event).metadata
    assert made["odd"] == "[email]"
    assert str(made["endless"]).count("again") < 10


@pytest.mark.parametrize("cleaner", [Redactor(), Redactor(hash_only=True, salt="pepper")], ids=["plain", "hashed"])
def test_what_lies_in_the_deepest_level_that_is_kept_is_kept(cleaner: Redactor) -> None:
    deepest: Any = {"item_id": "d1", "rank": 3, "on": True, "none": None}
    flags: Any = deepest
    for _ in range(DEPTH - 1):
        flags = {"a": flags}
    kept: Any = cleaner.query(LoggedQuery("eq", "pool", "t", NOW, flags=flags)).flags
    assert kept == flags
    assert cleaner.query(LoggedQuery("eq", "pool", "t", NOW, flags={"a": flags})).flags != {"a": flags}


def test_custom_patterns_and_functions() -> None:
    redactor = Redactor(patterns={"room": r"\bR-\d+\b"}, functions=(lambda text: text.replace("Blofeld", "[villain]"),))
    assert redactor.text("Blofeld in R-214") == "[villain] in [room]"
    with pytest.raises(InputError, match="cannot be read"):
        Redactor(patterns={"broken": "("})
    with pytest.raises(InputError, match="did you mean 'email'"):
        Redactor(kinds=("emial",))


def test_hash_only_keeps_equal_queries_equal_and_unreadable_with_a_key_of_each_project() -> None:
    redactor = Redactor(hash_only=True, hash_users=True, salt="pepper")

    def stored(text: str, project: str = "shop", salt: Redactor = redactor) -> LoggedQuery:
        return salt.query(LoggedQuery("eq", text, "t", NOW, project=project, user_id="ada"))

    assert re.fullmatch(r"h_[0-9a-f]{32}", stored("Quiet  Room").query)
    assert stored("Quiet  Room").query == stored("quiet room").query != stored("quiet rooms").query
    assert stored("quiet room").query != stored("quiet room", "other").query
    assert stored("quiet room").query != stored("quiet room", salt=Redactor(hash_only=True, salt="other")).query
    assert stored("quiet room").user_id == redactor.user("ada", "shop") != "ada"
    assert "pepper" not in repr(redactor)


SECRET = "divorce lawyer for Ada"
KEPT = {"query_id", "tool_name", "created_at", "project", "session_id", "user_id", "trace_id", "prompt_id", "retriever"}
"""Ids, and names that a program gives its parts."""


def test_hash_only_leaves_no_word_of_the_question_in_any_field() -> None:
    redactor = Redactor(hash_only=True, salt="pepper")
    texts = {one.name: SECRET for one in fields(LoggedQuery) if "str" in str(one.type) and one.name not in KEPT}
    texts = {name: text for name, text in texts.items() if name not in {"result_ids", "channel_contributions"}}
    mappings = ("stage_latency_ms", "fusion_weights", "flags")
    assert {"query", "intent", "mode", "fallback", "mode_override", "eval_category", "token_pressure_level"} <= set(texts)
    given: dict[str, Any] = {name: text for name, text in texts.items() if name not in mappings}
    flags = {"rewrite": SECRET, SECRET: 1, "deep": [{"why": SECRET}], "divorce": True, "rerank": "treatment"}
    row = LoggedQuery("eq_1", tool_name="t", created_at=NOW, flags=flags, result_ids=("d 1",), **given)
    made = redactor.query(row)
    assert not re.search("lawyer|Ada", str(asdict(made)))
    assert made.intent == made.query  # equal texts can still be counted
    assert (made.flags["rerank"], made.result_ids) == ("treatment", ("d 1",))
    event = FeedbackEvent(
        "ef_1",
        "click",
        "s",
        NOW,
        item_id="d 1",
        metadata={"query": "divorce", "note": [SECRET], "seconds": 3, "trace_id": "t 1"},
    )
    kept = redactor.feedback(event).metadata
    assert not re.search("divorce|lawyer|Ada", str(kept))
    assert (kept["seconds"], kept["trace_id"]) == (3, "t 1")
    assert redactor.query(made) == made  # what stands for a text is not hashed again
    assert redactor.feedback(redactor.feedback(event)) == redactor.feedback(event)


@pytest.mark.parametrize(
    ("query", "fallback", "wanted"),
    [
        ("divorce lawyer", "error: ValueError: no index for 'divorce lawyer'", r"error: ValueError"),
        ("divorce lawyer", "error: Divorce: no such index", r"error: h_[0-9a-f]{32}"),
        ("divorce lawyer", "error: half of divorce", r"error: h_[0-9a-f]{32}"),
        ("divorce lawyer", "no vector for divorce", r"h_[0-9a-f]{32}"),
    ],
)
def test_hash_only_keeps_the_type_of_an_error_and_nothing_it_says(query: str, fallback: str, wanted: str) -> None:
    made = Redactor(hash_only=True, salt="pepper").query(LoggedQuery("eq", query, "t", NOW, fallback=fallback))
    assert re.fullmatch(wanted, made.fallback or "")


def test_hash_only_keeps_what_an_interleaved_list_needs() -> None:
    from ringtrue.rollout.interleave import Interleaved, as_flag, from_flags

    shown = Interleaved(("guide to divorce", "b"), (-1.0, 1.0))
    row = LoggedQuery("eq", "divorce", "t", NOW, result_ids=shown.items, flags=as_flag("rerank v2", shown))
    made = Redactor(hash_only=True, salt="pepper").query(row)
    assert from_flags("rerank v2", made.flags) == shown


def test_modes_and_categories_are_redacted_as_well() -> None:
    mail = "ada@example.org"
    row = LoggedQuery(
        "eq", "pool", "t", NOW, mode=mail, mode_override=mail, token_pressure_level=mail, eval_category=mail, intent=mail
    )
    made = Redactor().query(row)
    labels = {made.mode, made.mode_override, made.token_pressure_level, made.eval_category, made.intent}
    assert labels == {"[email]"}
    assert Redactor().query(LoggedQuery("eq", "pool", "t", NOW, mode="deep")).mode == "deep"


def test_a_hash_without_a_key_is_refused_since_guesses_could_be_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RINGTRUE_LOG_SALT", raising=False)
    with pytest.raises(MissingInput, match="RINGTRUE_LOG_SALT"):
        Redactor(hash_only=True)
    monkeypatch.setenv("RINGTRUE_LOG_SALT", "pepper")
    assert Redactor(hash_only=True).hashed("a", "p") == Redactor(hash_only=True, salt="pepper").hashed("a", "p")


@pytest.mark.parametrize(
    "text",
    ["+1234567890" * 3000, "a@" * 15_000, "0 " * 15_000, "password " * 4000, "::" * 15_000, "A1" * 15_000, "DE89 " * 6000,
     "-----BEGIN RSA PRIVATE KEY-----" * 1000, "://a:b" * 5000, "1." * 15_000],
)  # fmt: skip
def test_no_text_makes_redaction_slow(text: str) -> None:
    import time

    start = time.process_time()
    Redactor().text(text)
    assert time.process_time() - start < 3.0  # linear takes hundredths; a pattern that backtracks takes minutes
