"""``ringtrue ingest`` and ``ringtrue search`` as contracts: outputs, JSON keys, exit codes, one-line errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of documents, in the current folder of the command."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "pool.md").write_text("# The pool\n\nIt opens at seven. Towels lie at the desk.\n", encoding="utf-8")
    (folder / "ferry.txt").write_text("The last boat leaves at eleven.", encoding="utf-8")
    (folder / "rooms.jsonl").write_text(
        "\n".join(json.dumps({"_id": f"room-{n}", "text": f"Room {n} has a balcony", "floor": n % 2}) for n in range(4)),
        encoding="utf-8",
    )
    (folder / "photo.jpg").write_bytes(b"\xff\xd8")
    return folder


def test_ingest_and_search_need_no_options(ringtrue, notes: Path) -> None:
    done = ringtrue("ingest", notes)
    assert done.code == 0
    assert ".ringtrue/documents: 6 documents (6 added, 0 changed, 0 unchanged, 0 removed)" in done.out
    assert "vectors for 6 of 6 passages" in done.out
    assert "photo.jpg" in done.err
    found = ringtrue("search", "when can I swim")
    assert found.code == 0
    assert "pool.md" in found.out.splitlines()[1]


def test_ingest_again_changes_nothing_and_says_so(ringtrue, notes: Path) -> None:
    ringtrue("ingest", notes, "--retriever", "bm25")
    (notes / "ferry.txt").write_text("The last boat leaves at ten.", encoding="utf-8")
    again = ringtrue("ingest", notes, "--retriever", "bm25", "--json").json
    assert {name: again[name] for name in ("added", "changed", "unchanged", "removed")} == {
        "added": 0, "changed": 1, "unchanged": 5, "removed": 0,
    }  # fmt: skip
    (notes / "ferry.txt").unlink()
    assert ringtrue("ingest", notes, "--retriever", "bm25", "--remove-missing", "--json").json["removed"] == 1


def test_search_json_carries_the_provenance_of_every_hit(ringtrue, notes: Path) -> None:
    ringtrue("ingest", notes)
    found = ringtrue("search", "boat", "-k", "2", "--json").json
    assert set(found) == {"query", "retriever", "k", "hits"}
    first = found["hits"][0]
    assert set(first) == {"doc_id", "score", "chunk", "channels", "confidence", "stages"}
    assert first["doc_id"] == "ferry.txt"
    assert first["channels"] == {"bm25": 1, "dense": 1}
    assert [(stage["name"], stage["rank"]) for stage in first["stages"]] == [("bm25", 1), ("dense", 1), ("weighted", 1)]


def test_search_explain_shows_every_stage(ringtrue, notes: Path) -> None:
    ringtrue("ingest", notes)
    said = ringtrue("search", "balcony", "--explain", "--retriever", "rrf(bm25, dense) >> top(2)", "-k", "2").out
    assert "where every hit came from" in said
    assert all(name in said for name in ("bm25", "dense", "rrf", "top", "passage room-"))


def test_search_within_a_scope(ringtrue, notes: Path) -> None:
    ringtrue("ingest", notes)
    found = ringtrue("search", "balcony", "--scope", "floor=1", "--json").json["hits"]
    assert {hit["doc_id"] for hit in found} == {"room-1", "room-3"}


def test_a_shipped_set_becomes_a_run_that_can_be_scored(ringtrue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert ringtrue("ingest", "hotel", "--retriever", "bm25").code == 0
    done = ringtrue("search", "--queries", "hotel", "--run", "bm25.run", "--retriever", "bm25", "-k", "100")
    assert done.code == 0, done.err
    assert "72 queries answered by bm25" in done.out
    assert ringtrue("score", "hotel", "bm25.run", "nDCG@10", "--json").json["aggregate"]["nDCG@10"] > 0.7


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["search", "x"], "ringtrue ingest"),
        (["search"], "either a question or --queries"),
        (["search", "x", "--queries", "hotel"], "either a question or --queries"),
        (["search", "--queries", "hotel"], "--run"),
        (["search", "x", "--scope", "city"], "city=Bath"),
        (["search", "x", "--retriever", "bm52"], "'bm25'"),
        (["search", "x", "--retriever", "connect('shop')"], "connections.shop"),
        (["ingest", "no-such-folder"], "no-such-folder"),
        (["ingest", "hotel", "--retriever", "denes"], "'dense'"),
        (["ingest", "hotel", "--chunk", "fixd"], "'fixed'"),
        (["ingest"], "PATH"),
    ],
)
def test_mistakes_end_with_2_and_one_line(
    ringtrue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = ringtrue(*arguments)
    assert outcome.code == 2
    assert says in outcome.err
    assert len(outcome.err.strip().splitlines()) == 1
    assert not (tmp_path / ".ringtrue").exists(), "a mistake left something behind"


def test_a_connection_is_searched_like_anything_else(ringtrue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "answers").mkdir()
    (tmp_path / "answers" / "old.run").write_text("q1 Q0 a 1 3.0 s\nq1 Q0 b 2 1.0 s\n", encoding="utf-8")
    (tmp_path / "ringtrue.toml").write_text('[connections.old]\nkind = "run"\npath = "answers/old.run"\n', encoding="utf-8")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")  # paths in the file are meant from where the file lies
    found = ringtrue("search", "q1", "--retriever", "connect('old')", "--json")
    assert [hit["doc_id"] for hit in found.json["hits"]] == ["a", "b"]
    unknown = ringtrue("search", "q2", "--retriever", "connect('old')")
    assert unknown.code == 3
    assert len(unknown.err.strip().splitlines()) == 1


def test_settings_of_a_connection_are_checked(ringtrue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for block, says in (
        ('kind = "htpp"', "'http'"),
        ('kind = "run"', "'path'"),
        ('kind = "run"\npath = "x"\nqeuries = "y"', "'queries'"),
        ('url = "x"', "kind"),
    ):
        (tmp_path / "ringtrue.toml").write_text(f"[connections.mine]\n{block}\n", encoding="utf-8")
        outcome = ringtrue("search", "x", "--retriever", "connect('mine')")
        assert (outcome.code, says in outcome.err) == (2, True), outcome.err
