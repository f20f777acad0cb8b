"""The trigger channel: phrases of documents found in a question, in whole words."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ringtrue.errors import InputError
from ringtrue.records import Document, Stage
from ringtrue.retrieve.builders import Collection
from ringtrue.retrieve.channels.trigger import Trigger, words_of
from ringtrue.retrieve.index import CachedView
from ringtrue.testing.retrievers import RetrieverSuite, raises

PHRASES: dict[str, Any] = {
    "users": ["user id", "account number"],
    "login": ["user", "sign in"],
    "pool": ["pool", "swimming pool", "heated swimming pool"],
    "pool-hours": ["when does the pool open", "pool"],
    "spa": "pool",
    "street": ["Straße"],
    "error": [404],
    "nothing": None,
}


def fill(folder: Path, phrases: dict[str, Any], **facts: dict[str, Any]) -> Collection:
    collection = Collection.create(folder)
    collection.ingest(
        Document(doc_id, "text", metadata=({} if value is None else {"triggers": value}) | facts.get(doc_id, {}))
        for doc_id, value in phrases.items()
    )
    return collection


def found(trigger: Trigger, text: str, **options: Any) -> list[str]:
    return [hit.doc_id for hit in trigger.search(text, **options)]


@pytest.fixture(scope="module")
def trigger(tmp_path_factory: pytest.TempPathFactory) -> Trigger:
    """Phrases of a hotel and of its booking system."""
    folder = tmp_path_factory.mktemp("triggers") / "hotel"
    return Trigger(fill(folder, PHRASES, spa={"city": "Bath"}, pool={"city": "Bern"}))


class TestTrigger(RetrieverSuite):
    @pytest.fixture(autouse=True)
    def _given(self, trigger: Trigger) -> None:
        self.trigger = trigger

    def make(self) -> Trigger:
        return self.trigger


def test_a_phrase_is_found_in_whole_words_only_trap_27(trigger: Trigger) -> None:
    assert found(trigger, "where is my user id stored") == ["users", "login"]
    assert found(trigger, "what is user identity") == ["login"]
    assert found(trigger, "superuser ids") == []
    assert found(trigger, "id user") == ["login"]


@pytest.mark.parametrize(
    "text", ["user_id", "USER-ID?", "user...id", "«User\n ID»", "ｕｓｅｒ　ｉｄ", "us\u00ader id"], ids=ascii
)
def test_case_width_and_what_stands_between_words_do_not_matter(trigger: Trigger, text: str) -> None:
    assert found(trigger, text) == ["users", "login"]


def test_case_is_folded_not_lowered(trigger: Trigger) -> None:
    assert found(trigger, "SUNNY STRASSE 5") == ["street"]


def test_the_longest_phrase_counts_then_all_words_then_the_id(trigger: Trigger) -> None:
    hits = trigger.search("When does the heated swimming pool open, and when does the pool open?")
    assert [(hit.doc_id, hit.score) for hit in hits] == [("pool-hours", 5.0), ("pool", 3.0), ("spa", 1.0)]
    assert found(trigger, "pool") == ["spa", "pool-hours", "pool"]


def test_more_words_in_all_phrases_come_first_among_equals(tmp_path: Path) -> None:
    trigger = Trigger(fill(tmp_path, {"a": ["cold shower", "boiler"], "b": ["cold shower"], "c": ["cold shower", "shower"]}))
    hits = trigger.search("cold shower, is the boiler broken? cold shower, cold shower")
    assert [(hit.doc_id, hit.score) for hit in hits] == [("c", 2.0), ("a", 2.0), ("b", 2.0)]


def test_a_hit_says_that_the_trigger_brought_it(trigger: Trigger) -> None:
    (hit,) = trigger.search("error 404")
    assert (hit.doc_id, hit.chunk, hit.channels, hit.stages) == ("error", None, {"trigger": 1}, (Stage("trigger", 1, 1.0),))


def test_a_scope_admits_only_its_documents(trigger: Trigger) -> None:
    assert found(trigger, "swimming pool", scope={"city": "Bath"}) == ["spa"]
    assert found(trigger, "swimming pool", scope={"city": "Rome"}) == []


def test_a_scope_is_applied_before_the_cut(trigger: Trigger) -> None:
    assert found(trigger, "swimming pool", k=1, scope={"city": "Bath"}) == ["spa"]


def test_it_follows_the_collection_and_other_writers(tmp_path: Path) -> None:
    trigger = Trigger(fill(tmp_path, {"a": ["sauna"]}))
    assert found(trigger, "sauna and steam bath") == ["a"]
    Collection(tmp_path).ingest(
        [Document("a", "text", metadata={"triggers": ["steam bath"]}), Document("b", "text", metadata={"triggers": ["sauna"]})]
    )
    assert found(trigger, "sauna and steam bath") == ["a", "b"]
    Collection(tmp_path).ingest([Document("b", "text", metadata={"triggers": ["sauna"]})], remove_missing=True)
    assert found(trigger, "sauna and steam bath") == ["b"]


def test_nothing_is_read_again_while_nothing_is_written(tmp_path: Path) -> None:
    collection = fill(tmp_path, {"a": ["sauna"]})
    reads = []
    followed = CachedView(collection, lambda: reads.append(1) or len(reads))
    assert [followed(), followed()] == [1, 1]
    collection.ingest([Document("b", "text")])
    assert [followed(), followed()] == [2, 2]


def test_what_cannot_be_read_is_tried_again_and_never_kept(tmp_path: Path) -> None:
    trigger = Trigger(fill(tmp_path, {"a": [{"phrase": "sauna"}]}))
    for _ in range(2):
        with raises(InputError) as messages:
            trigger.search("sauna")
        assert "'a'" in messages[0]
    Collection(tmp_path).ingest([Document("a", "text", metadata={"triggers": ["sauna"]})])
    assert found(trigger, "sauna") == ["a"]


@pytest.mark.parametrize("value", [True, 1.5, {"phrase": "x"}, ["sauna", None], [["sauna"]]], ids=repr)
def test_a_phrase_that_is_no_text_is_an_error_that_names_the_document(tmp_path: Path, value: Any) -> None:
    with raises(InputError) as messages:
        Trigger(fill(tmp_path, {"bad": value})).search("sauna")
    assert "'bad'" in messages[0]


def test_another_field_can_hold_the_phrases(tmp_path: Path) -> None:
    collection = fill(tmp_path, {"a": ["sauna"], "b": None}, b={"trigger_phrases": ["sauna"]})
    assert found(Trigger(collection, field="trigger_phrases"), "the sauna") == ["b"]


def test_a_phrase_without_a_word_is_never_found(tmp_path: Path) -> None:
    trigger = Trigger(fill(tmp_path, {"a": ["sauna", "SAUNA!", "steam bath"], "b": ["sauna", "❤️", "…"], "c": [], "d": None}))
    assert found(trigger, "❤️ … ☺️") == []
    assert found(trigger, "❤️ sauna") == ["b", "a"]


def test_marks_belong_to_the_word(tmp_path: Path) -> None:
    trigger = Trigger(fill(tmp_path, {"ki": ["कि"], "cafe": ["cafe\u0301"]}))
    assert found(trigger, "कि") == ["ki"]
    assert found(trigger, "की") == []
    assert found(trigger, "CAFÉ") == ["cafe"]
    assert found(trigger, "cafe") == []


@given(st.lists(st.sampled_from(["pool", "Spa", "user_id", "Ünder", "4"]), min_size=1, max_size=8))
def test_words_are_the_same_however_they_are_joined(words: list[str]) -> None:
    assert words_of(" ".join(words)) == words_of(", ".join(words).upper()) == words_of("—".join(words))


@given(st.text(max_size=20), st.text(max_size=20), st.text(max_size=20))
@example("", "\u0301a", "")
@example("한", "ᅡ", "")
def test_a_phrase_keeps_its_words_inside_any_question(before: str, phrase: str, after: str) -> None:
    assert words_of(f"{before} | {phrase} | {after}") == words_of(before + " ") + words_of(phrase) + words_of(after)


def naive(phrases: dict[str, list[str]], text: str) -> list[str]:
    """Every phrase against every place of the question."""
    words = f" {' '.join(words_of(text))} "
    keys = []
    for doc_id, own in phrases.items():
        matching = {joined for phrase in own if (joined := " ".join(words_of(phrase))) and f" {joined} " in words}
        if matching:
            lengths = [joined.count(" ") + 1 for joined in matching]
            keys.append((max(lengths), sum(lengths), doc_id))
    return [doc_id for _, _, doc_id in sorted(keys, reverse=True)]


word = st.sampled_from(["pool", "spa", "Pool", "id", "user", "pools"])
text_of_words = st.lists(word, max_size=6).map(" ".join)


@pytest.fixture(scope="module")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection that every example of a property writes anew."""
    return tmp_path_factory.mktemp("naive")


@given(phrases=st.dictionaries(st.sampled_from("abcde"), st.lists(text_of_words, max_size=4), max_size=5), text=text_of_words)
def test_the_lookup_finds_what_a_scan_finds(shared_folder: Path, phrases: dict[str, list[str]], text: str) -> None:
    collection = Collection.create(shared_folder)
    collection.ingest((Document(d, "text", metadata={"triggers": own}) for d, own in phrases.items()), remove_missing=True)
    assert found(Trigger(collection), text) == naive(phrases, text)


def test_time_does_not_grow_with_the_number_of_phrases(tmp_path: Path) -> None:
    collection = fill(tmp_path, {f"d{n}": [f"phrase {n} of group {n % 97} {i}" for i in range(100)] for n in range(1000)})
    trigger = Trigger(collection)
    trigger.search("reads the phrases")
    begin = time.perf_counter()
    for n in range(100):
        assert found(trigger, f"tell me about phrase {n} of group {n} 7, please") == ([f"d{n}"] if n < 97 else [])
    # A scan of 100,000 phrases takes 10 ms and more; a lookup some ten microseconds.
    assert (time.perf_counter() - begin) / 100 < 0.005
