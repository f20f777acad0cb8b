"""A golden set's documents go into a system, are waited for, and come out again."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from made import golden_set
from ringtrue.errors import BadAnswer, InputError, TimedOut, Unreachable
from ringtrue.golden import load
from ringtrue.records import Document, Hit
from ringtrue.retrieve.connectors.writing import Mark, Planted
from ringtrue.run import PartlyPlanted, plant, planted, remove_planted
from ringtrue.run.planting import BATCH, id_pattern, plantings

SET = golden_set(queries=5, documents=200)


@dataclass
class Memory:
    """A system in memory: documents become searchable ``lag`` looks after they were written."""

    name: str = "memory"
    lag: int = 0
    documents: dict[str, Planted | str] = field(default_factory=lambda: {"theirs": "a text of theirs"})
    looks: int = 0
    writes: list[list[str]] = field(default_factory=list)
    before_write: Callable[[Sequence[Planted]], None] = lambda documents: None

    def write(self, documents: Sequence[Planted]) -> None:
        self.before_write(documents)
        self.writes.append([document.id for document in documents])
        self.documents.update({document.id: document for document in documents})
        self.looks = 0

    def remove(self, ids: Sequence[str], *, tenant: str | None = None) -> set[str]:
        ours = {key for key in ids if isinstance(found := self.documents.get(key), Planted) and found.tenant == tenant}
        for key in ours:
            del self.documents[key]
        return ours

    def held(self, ids: Sequence[str]) -> dict[str, Mark]:
        there = {key: self.documents[key] for key in ids if key in self.documents}
        return {key: Mark(found.source_hash, found.tenant) for key, found in there.items() if isinstance(found, Planted)}

    def known(self, ids: Sequence[str]) -> set[str]:
        self.looks += 1
        return set(ids) & set(self.documents) if self.looks > self.lag else set()

    def search(self, text: str, *, k: int = 10, scope: Any = None) -> list[Hit]:
        found = [key for key, value in self.documents.items() if isinstance(value, Planted) and value.title == text]
        return [Hit(key) for key in found][:k]


@dataclass
class OnlySearching:
    """A system that can be written and searched, and tells nothing else."""

    inside: Memory = field(default_factory=Memory)
    name: str = "mute"

    def write(self, documents: Sequence[Planted]) -> None:
        self.inside.write(documents)

    def remove(self, ids: Sequence[str], *, tenant: str | None = None) -> set[str]:
        return self.inside.remove(ids, tenant=tenant)

    def search(self, text: str, *, k: int = 10, scope: Any = None) -> list[Hit]:
        self.inside.looks += 1
        return self.inside.search(text, k=k) if self.inside.looks > self.inside.lag else []


class Clock:
    """Time that passes only by sleeping."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("ringtrue.run.planting.time", made)
    return made


def refusing(*refused: str) -> Callable[[Sequence[Planted]], None]:
    def before(documents: Sequence[Planted]) -> None:
        for document in documents:
            if document.id.rpartition(":")[2] in refused:
                raise BadAnswer(f"memory cannot take '{document.id}'; mend it")

    return before


def test_documents_get_ids_of_their_own_with_hash_and_tenant() -> None:
    hotel = load("hotel")
    first = plantings(hotel, tenant="acme")[0]
    assert first.id == f"golden:hotel:{hotel.documents[0].doc_id}"
    assert (first.tenant, len(first.source_hash)) == ("acme", 32)
    assert plantings(hotel, prefix="nightly")[0].id.startswith("nightly:hotel:")


@pytest.mark.parametrize("change", [{"text": "Other."}, {"title": "Other"}, {"metadata": {"lang": "de"}}, {"tags": ("new",)}])
def test_the_source_hash_changes_with_whatever_is_written(change: dict[str, Any]) -> None:
    document = Document("d", "Text.", "Title", {"lang": "en"})
    one, other = (plantings(replace(SET, documents=(item,)))[0].source_hash for item in (document, replace(document, **change)))
    assert one != other


def test_the_pattern_turns_ids_there_into_judged_ids() -> None:
    odd = replace(SET, id="a.b-c (1)")
    planted_id = plantings(odd)[0].id
    found = re.search(id_pattern(odd), planted_id)
    assert found is not None
    assert found[1] == odd.documents[0].doc_id
    assert re.search(id_pattern(odd), planted_id.replace("a.b", "axb")) is None
    assert id_pattern(replace(SET, id="hotel-2")) == "^golden:hotel-2:(.+)$"


def test_it_writes_in_batches_and_tells_how_far_it_is() -> None:
    system, steps = Memory(), []
    done = plant(system, SET, progress=steps.append)
    assert (done.system, done.documents, done.written, done.searchable) == ("memory", 200, 200, 200)
    assert [len(part) for part in system.writes] == [64, 64, 64, 8]
    assert sum(steps) == 200


def test_it_waits_until_every_document_is_known(clock: Clock) -> None:
    done = plant(Memory(lag=4), SET)
    assert done.searchable == 200
    assert clock.now == 2.0


def test_it_gives_up_after_the_timeout_and_names_how_many_are_missing(clock: Clock) -> None:
    with pytest.raises(TimedOut, match=r"^memory: 200 of 200 documents are not known to it 3 s after writing, .*--wait"):
        plant(Memory(lag=100), SET, timeout=3)
    assert clock.now == 3.0


def test_a_document_that_is_stored_but_found_by_no_search_is_not_searchable(clock: Clock) -> None:
    """Trap 14: an index that knows documents and does not find them must not be measured."""
    system = Memory()
    system.search = lambda text, *, k=10, scope=None: []  # type: ignore[method-assign]
    with pytest.raises(TimedOut, match="5 of 200 documents are not found by their own words"):
        plant(system, SET, timeout=1)


def test_where_only_a_search_can_tell_every_document_is_searched_for(clock: Clock) -> None:
    system = OnlySearching(Memory(lag=30))
    done = plant(system, SET)
    assert done.searchable == 200
    assert system.inside.looks >= 200
    assert plant(system, SET).written == 200


def test_a_second_run_writes_nothing_and_a_changed_document_alone() -> None:
    system = Memory()
    plant(system, SET)
    assert plant(system, SET).unchanged == 200
    changed = replace(SET, documents=(replace(SET.documents[0], text="Other."), *SET.documents[1:]))
    done = plant(system, changed)
    assert (done.written, done.unchanged) == (1, 199)


def test_refused_documents_are_listed_and_the_others_are_there() -> None:
    system = Memory(before_write=refusing("d003", "d070", "d199"))
    with pytest.raises(PartlyPlanted) as problem:
        plant(system, SET)
    assert sorted(problem.value.failed) == ["golden:made:d003", "golden:made:d070", "golden:made:d199"]
    said = str(problem.value)
    assert "took 197 of 200 documents and refused 'golden:made:d003'" in said
    assert "'golden:made:d199'" in said
    assert len(system.documents) == 198
    system.before_write = lambda documents: None
    assert plant(system, SET).written == 3


def test_what_refuses_every_document_is_said_once_as_it_is() -> None:
    def before(documents: Sequence[Planted]) -> None:
        raise InputError("memory has no column 'body'; check plant=")

    with pytest.raises(InputError, match=r"^memory has no column 'body'; check plant=$"):
        plant(Memory(before_write=before), SET)


@pytest.mark.parametrize("problem", [KeyboardInterrupt(), Unreachable("memory is gone; start it")])
def test_a_run_that_ends_in_the_middle_is_mended_by_another(problem: BaseException) -> None:
    system = Memory()

    def before(documents: Sequence[Planted]) -> None:
        if len(system.writes) == 2:
            raise problem

    system.before_write = before
    with pytest.raises(type(problem)) as seen:
        plant(system, SET)
    if isinstance(problem, Unreachable):
        assert "128 of 200 documents were written; run again to go on" in str(seen.value)
    assert len(system.documents) == 1 + 2 * BATCH
    system.before_write = lambda documents: None
    done = plant(system, SET)
    assert (done.written, done.unchanged) == (200 - 2 * BATCH, 2 * BATCH)


def test_a_block_leaves_the_system_as_it_was_also_after_an_error() -> None:
    system = Memory()
    with planted(system, SET, tenant="acme") as done:
        assert done.written == 200
    assert set(system.documents) == {"theirs"}
    with pytest.raises(ZeroDivisionError), planted(system, SET):
        1 / 0  # noqa: B018
    assert set(system.documents) == {"theirs"}


def test_a_block_that_cannot_be_filled_is_emptied_too() -> None:
    system = Memory(before_write=refusing("d199"))
    with pytest.raises(PartlyPlanted), planted(system, SET):
        pass
    assert set(system.documents) == {"theirs"}


def test_trap_36_what_was_kept_before_a_block_stays_after_it() -> None:
    system = Memory()
    plant(system, replace(SET, documents=SET.documents[:50]))
    with planted(system, SET) as done:
        assert (done.written, done.unchanged) == (150, 50)
    assert len(system.documents) == 51


def test_an_error_of_the_block_is_not_hidden_by_one_of_the_cleaning() -> None:
    system = Memory()

    def gone(ids: Sequence[str], *, tenant: str | None = None) -> set[str]:
        raise Unreachable("memory is gone; start it")

    system.remove = gone  # type: ignore[method-assign]
    with pytest.raises(ZeroDivisionError) as problem, planted(system, SET):
        1 / 0  # noqa: B018
    assert problem.value.__notes__ == ["and the planted documents could not be removed: memory is gone; start it"]


def test_only_the_tenants_own_are_removed() -> None:
    system = Memory()
    plant(system, SET, tenant="acme")
    assert remove_planted(system, SET) == 0
    assert remove_planted(system, SET, tenant="acme") == 200


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"prefix": "two words"}, "prefix 'two words'"),
        ({"prefix": "a:b"}, "prefix 'a:b'"),
        ({"tenant": " "}, "tenant is blank"),
    ],
)
def test_names_that_cannot_be_are_refused(options: dict[str, str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        plant(Memory(), SET, **options)


def test_a_set_without_documents_and_a_retriever_that_only_answers_are_refused() -> None:
    with pytest.raises(InputError, match="brings no documents to ingest"):
        plant(Memory(), replace(SET, documents=()))
    with pytest.raises(InputError, match="function cannot be written, it only answers"):
        plant(lambda text, k: [], SET)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with an FTS5 table, and the settings that connect to it."""
    file = tmp_path / "shop.sqlite"
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("CREATE VIRTUAL TABLE pages USING fts5(id UNINDEXED, company UNINDEXED, hash UNINDEXED, title, body)")
        database.execute("INSERT INTO pages VALUES ('p1', NULL, NULL, 'Imprint', 'Who we are.')")
    (tmp_path / "ringtrue.toml").write_text(
        '[connections.shop]\nkind = "sqlite"\nfile = "shop.sqlite"\ntable = "pages"\n'
        'plant = {title = "{title}", body = "{text}", company = "{tenant}", hash = "{source_hash}"}\n'
        '[connections.old]\nkind = "run"\npath = "old.run"\n'
    )
    monkeypatch.chdir(tmp_path)
    return file


def ids_in(file: Path) -> set[str]:
    with closing(sqlite3.connect(file)) as database:
        return {row[0] for row in database.execute("SELECT id FROM pages")}


def test_the_command_ingests_keeps_and_removes(shop: Path, ringtrue: Any) -> None:
    count = len(load("hotel").documents)
    done = ringtrue("golden", "ingest", "hotel", "--into", "connect('shop')", "--tenant", "acme", "--json")
    assert done.code == 0, done.err
    wanted = {"written": count, "unchanged": 0, "searchable": count, "removed": 0, "tenant": "acme", "system": "shop"}
    assert wanted.items() <= done.json.items()
    assert done.json["id_pattern"] == "^golden:hotel:(.+)$"
    assert len(ids_in(shop)) == count + 1
    again = ringtrue("golden", "ingest", "hotel", "--into", "connect('shop')", "--tenant", "acme")
    assert f"shop: 0 documents written, {count} unchanged, {count} searchable" in again.out
    assert "--id-pattern '^golden:hotel:(.+)$'" in again.out
    assert again.out.splitlines()[-1] == "and remove them with this command and --remove"
    other = ringtrue("golden", "ingest", "hotel", "--into", "connect('shop')", "--remove", "--json")
    assert other.json["removed"] == 0
    gone = ringtrue("golden", "ingest", "hotel", "--into", "connect('shop')", "--tenant", "acme", "--remove", "--json")
    assert gone.json["removed"] == count
    assert ids_in(shop) == {"p1"}


def test_the_ingested_documents_are_what_a_search_returns(shop: Path, ringtrue: Any) -> None:
    ringtrue("golden", "ingest", "hotel", "--into", "connect('shop')")
    found = ringtrue("search", load("hotel").documents[0].title, "--retriever", "connect('shop')", "--json")
    pattern = re.compile(id_pattern(load("hotel")))
    judged = [match[1] for hit in found.json["hits"] if (match := pattern.search(hit["doc_id"]))]
    assert load("hotel").documents[0].doc_id in judged


@pytest.mark.parametrize(
    ("into", "said"),
    [
        ("bm25", "is not a connected system; write it like"),
        ("connect('shop') >> threshold(0.1)", "is not a connected system"),
        ("connect('sop')", "did you mean 'shop'"),
        ("connect('old')", "old cannot be written, it only answers"),
    ],
)
def test_what_cannot_be_written_ends_with_2_and_one_line(shop: Path, ringtrue: Any, into: str, said: str) -> None:
    (shop.parent / "old.run").write_text("q1 Q0 d1 1 2.0 x\n")
    done = ringtrue("golden", "ingest", "hotel", "--into", into)
    assert done.code == 2
    assert said in done.err
    assert len(done.err.strip().splitlines()) == 1


def test_documents_that_do_not_show_up_in_time_end_with_3(shop: Path, ringtrue: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from ringtrue.retrieve.connectors.sqlite import Sqlite

    monkeypatch.setattr(Sqlite, "resolve", lambda self, doc_ids: set())
    done = ringtrue("golden", "ingest", "hotel", "--into", "connect('shop')", "--wait", "0")
    assert done.code == 3
    assert "documents are not known to it 0 s after writing" in done.err
