"""``ringtrue ingest`` and ``ringtrue search`` as contracts: outputs, JSON keys, exit codes, one-line errors."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from ringtrue.golden.loading import SETS
from ringtrue.retrieve import Collection


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
    assert "notes/pool.md" in found.out.splitlines()[1]


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
    assert first["doc_id"] == "notes/ferry.txt"
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


def test_files_of_one_name_in_two_folders_stay_two_documents(ringtrue, notes: Path) -> None:
    for folder in ("a", "b"):
        Path(folder).mkdir()
        Path(folder, "readme.md").write_text(f"The {folder} side of the lake.", encoding="utf-8")
        assert ringtrue("ingest", f"{folder}/readme.md", "-r", "bm25", "--json").json["added"] == 1
    found = ringtrue("search", "lake side", "-r", "bm25", "--json").json["hits"]
    assert {hit["doc_id"] for hit in found} == {"a/readme.md", "b/readme.md"}


def test_a_stray_yaml_or_queries_file_makes_no_golden_set_of_a_folder(ringtrue, notes: Path) -> None:
    (notes / "mkdocs.yml").write_text("site_name: x\nnav: [pool.md]\n", encoding="utf-8")
    assert ringtrue("ingest", notes, "-r", "", "--json").json["added"] == 6
    (notes / "queries.jsonl").write_text('{"_id": "q1", "text": "when can I swim"}\n', encoding="utf-8")
    done = ringtrue("ingest", notes, "-r", "", "--json").json
    assert (done["added"], done["unchanged"]) == (1, 6)
    assert any("mkdocs.yml" in item for item in done["skipped"])


def test_a_beir_folder_gives_its_corpus_and_not_its_queries(ringtrue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lake" / "qrels").mkdir(parents=True)
    (tmp_path / "lake" / "corpus.jsonl").write_text('{"_id": "d1", "title": "", "text": "boats"}\n', encoding="utf-8")
    (tmp_path / "lake" / "queries.jsonl").write_text('{"_id": "q1", "text": "a boat"}\n', encoding="utf-8")
    (tmp_path / "lake" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n", encoding="utf-8")
    assert ringtrue("ingest", "lake", "-r", "", "--json").json["documents"] == 1


def test_golden_sets_in_files_give_their_documents_where_they_bring_any(
    ringtrue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hotel.json").write_bytes((SETS / "hotel" / "golden-dataset.json").read_bytes())
    whole = ringtrue("ingest", "hotel.json", "-r", "", "--json").json
    assert whole["documents"] == ringtrue("ingest", "hotel", "-r", "", "--json").json["documents"] > 10
    (tmp_path / "shop.yaml").write_text(
        "id: shop\nversion: 1.0.0\nqueries:\n  - {query_id: q1, query_text: x, relevant_docs: [{doc_id: a, grade: 1}]}\n",
        encoding="utf-8",
    )
    bare = ringtrue("ingest", "shop.yaml", "-r", "")
    assert (bare.code, "brings no documents" in bare.err) == (2, True), bare.err
    (tmp_path / "faq.json").write_text('[{"id": "a", "text": "b", "context": "c"}]', encoding="utf-8")
    assert ringtrue("ingest", "faq.json", "-r", "", "--json").json["added"] == 1


def test_what_lies_in_the_current_folder_comes_before_a_shipped_name(ringtrue, notes: Path) -> None:
    notes.rename("hotel")
    done = ringtrue("ingest", "hotel", "-r", "")
    assert "6 documents" in done.out
    assert "the shipped set of that name is not" in done.err


def test_files_of_a_folder_that_cannot_be_read_are_skipped_with_the_reason(ringtrue, notes: Path) -> None:
    (notes / "old.txt").write_bytes(b"caf\xe9")
    done = ringtrue("ingest", notes, "-r", "")
    assert (done.code, "6 documents" in done.out) == (0, True)
    assert f"skipped {notes / 'old.txt'}: line 1: byte 0xe9 at offset 3 is not UTF-8" in done.err
    named = ringtrue("ingest", notes / "old.txt", "-r", "")
    assert (named.code, "is not UTF-8" in named.err) == (2, True)


def test_nothing_is_removed_while_a_file_cannot_be_read(ringtrue, notes: Path) -> None:
    ringtrue("ingest", notes, "-r", "")
    (notes / "ferry.txt").write_bytes(b"\xff")
    refused = ringtrue("ingest", notes, "-r", "", "--remove-missing")
    assert (refused.code, "nothing was removed" in refused.err) == (2, True), refused.err
    (notes / "ferry.txt").write_bytes(b"")
    assert ringtrue("ingest", notes, "-r", "", "--remove-missing", "--json").json["removed"] == 1


def test_documents_without_title_and_text_are_counted(ringtrue, notes: Path) -> None:
    (notes / "rooms.jsonl").write_text('{"_id": "x", "text": " "}\n{"_id": "y", "text": ""}\n', encoding="utf-8")
    assert "2 documents have no title and no text" in (ringtrue("ingest", notes, "-r", "")).err
    assert ringtrue("ingest", notes, "-r", "", "--json").json["blank"] == 2


def test_an_empty_collection_is_missing_input(ringtrue, notes: Path) -> None:
    Collection.create(".ringtrue/documents")
    outcome = ringtrue("search", "pool", "-r", "bm25")
    assert outcome.code == 2
    assert "holds no documents; run `ringtrue ingest" in outcome.err


def test_a_search_says_that_the_last_ingest_did_not_finish(ringtrue, notes: Path) -> None:
    ringtrue("ingest", notes, "-r", "bm25")
    assert ringtrue("search", "pool", "-r", "bm25").err == ""
    (notes / "rooms.jsonl").write_text("{", encoding="utf-8")
    assert ringtrue("ingest", notes, "-r", "bm25").code == 2
    outcome = ringtrue("search", "pool", "-r", "bm25")
    assert (outcome.code, "pool.md" in outcome.out) == (0, True)
    assert "the last ingest did not finish; run it again" in outcome.err


def test_trap_13_the_documents_of_another_set_are_not_searched(ringtrue, notes: Path) -> None:
    ringtrue("ingest", notes, "-r", "bm25")
    outcome = ringtrue("search", "--queries", "hotel", "--run", "x.run", "-r", "bm25")
    assert outcome.code == 3
    assert "documents that 'hotel' judges" in outcome.err
    assert "6 others, such as 'notes/ferry.txt'; ingest the set's documents, or name their folder with --in" in outcome.err
    assert not Path("x.run").exists()


def small_set(*, judged: str = "room-1") -> Path:
    """Write a set of two queries, of which one asks for what no document says."""
    path = Path("small.yaml")
    path.write_text(
        "id: small\nversion: 1.0.0\nqueries:\n"
        f"  - {{query_id: q1, query_text: balcony, relevant_docs: [{{doc_id: {judged}, grade: 1}}, "
        "{doc_id: notes/pool.md, grade: 1}]}\n"
        "  - {query_id: q2, query_text: zzzz, relevant_docs: [{doc_id: notes/pool.md, grade: 1}]}\n",
        encoding="utf-8",
    )
    return path


def test_judged_documents_that_are_not_there_are_counted(ringtrue, notes: Path) -> None:
    ringtrue("ingest", notes, "-r", "bm25")
    said = ringtrue("search", "--queries", small_set(judged="room-9"), "--run", "x.run", "-r", "bm25")
    assert said.code == 0
    assert "1 of 2 documents that 'small' judges are not in .ringtrue/documents, such as 'room-9'" in said.err


def test_a_run_file_keeps_scores_and_says_what_it_cannot_hold(ringtrue, notes: Path) -> None:
    ringtrue("ingest", notes, "-r", "bm25")
    hits = ringtrue("search", "balcony", "-r", "bm25", "--json").json["hits"]
    done = ringtrue("search", "--queries", small_set(), "--run", "x.run", "-r", "bm25", "--json")
    assert done.json == {
        "run": "x.run", "queries": 2, "retriever": "bm25(language='english', tags=1, title=3)", "unanswered": ["q2"],
    }  # fmt: skip
    assert "1 of 2 queries found nothing, and trec has no line for that; `ringtrue score -c` counts them as 0" in done.err
    lines = [line.split() for line in Path("x.run").read_text(encoding="utf-8").splitlines()]
    assert [(line[0], line[2], float(line[4])) for line in lines] == [("q1", hit["doc_id"], hit["score"]) for hit in hits]
    assert ringtrue("search", "--queries", "small.yaml", "--run", "x.json", "-r", "bm25").code == 0
    assert json.loads(Path("x.json").read_text(encoding="utf-8")) == {
        "q1": {hit["doc_id"]: hit["score"] for hit in hits}, "q2": {},
    }  # fmt: skip


def test_scores_that_contradict_the_order_become_ranks_and_are_told(ringtrue, notes: Path) -> None:
    (notes / "answers.py").write_text(
        "import sys, json\n"
        "for line in sys.stdin:\n"
        "    print(json.dumps({'hits': [{'doc_id': 'b', 'score': 1}, {'doc_id': 'a', 'score': 2}]}), flush=True)\n",
        encoding="utf-8",
    )
    settings = {"kind": "command", "command": [sys.executable, str(notes / "answers.py")]}
    Path("ringtrue.toml").write_text(
        "[connections.odd]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in settings.items()), encoding="utf-8"
    )
    said = ringtrue("search", "--queries", small_set(), "--run", "x.run", "-r", "connect('odd')")
    assert said.code == 0, said.err
    assert "2 of 2 queries have ranks in place of scores in trec, because their scores would be sorted" in said.err
    assert [line.split()[2:5] for line in Path("x.run").read_text(encoding="utf-8").splitlines()][:2] == [
        ["b", "1", "-1.0"],
        ["a", "2", "-2.0"],
    ]


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("nowhere/x.run", "nowhere/x.run: cannot be written; name a file in a folder that exists"),
        ("notes", "notes: cannot be written"),
        ("x.parquet.gz", "without .gz"),
        ("x.run", "'odd name' cannot stand in a TREC file"),
    ],
)
def test_what_a_run_file_cannot_be_is_said_before_asking(
    ringtrue, notes: Path, monkeypatch: pytest.MonkeyPatch, target: str, says: str
) -> None:
    with (notes / "rooms.jsonl").open("a", encoding="utf-8") as file:
        file.write('\n{"_id": "odd name", "text": "never asked for"}')
    ringtrue("ingest", notes, "-r", "bm25")
    monkeypatch.setattr("ringtrue.retrieve.answer_all", lambda *_, **__: pytest.fail("it was asked"))
    outcome = ringtrue("search", "--queries", small_set(), "--run", target, "-r", "bm25")
    assert (outcome.code, says in outcome.err) == (2, True), outcome.err
    assert not Path("x.run").exists()


def test_a_connected_system_with_a_blank_in_an_id_is_told_at_the_first(ringtrue, notes: Path) -> None:
    Path("old.jsonl").write_text('{"query_id": "q1", "doc_id": "a b", "score": 1}\n', encoding="utf-8")
    Path("ringtrue.toml").write_text('[connections.old]\nkind = "run"\npath = "old.jsonl"\n', encoding="utf-8")
    small_set()
    text = Path("small.yaml").read_text(encoding="utf-8").replace("query_text: balcony", "query_text: q1")
    Path("small.yaml").write_text(text.split("  - {query_id: q2")[0], encoding="utf-8")
    outcome = ringtrue("search", "--queries", "small.yaml", "--run", "x.run", "-r", "connect('old')")
    assert (outcome.code, "'a b' cannot stand in a TREC file" in outcome.err) == (2, True), outcome.err
    assert not Path("x.run").exists()
    assert ringtrue("search", "--queries", "small.yaml", "--run", "x.json", "-r", "connect('old')").code == 0


def test_small_scores_keep_their_digits_in_tables(ringtrue, notes: Path) -> None:
    Path("old.run").write_text("q1 Q0 a 1 0.000012345678 s\nq1 Q0 b 2 1e-6 s\n", encoding="utf-8")
    Path("ringtrue.toml").write_text('[connections.old]\nkind = "run"\npath = "old.run"\n', encoding="utf-8")
    said = ringtrue("search", "q1", "-r", "connect('old')", "--explain").out
    assert said.count("1.235e-05") == said.count("1e-06") == 2
    assert "0.0000" not in said


def test_a_misspelt_table_of_connections_is_told_its_name(ringtrue, notes: Path) -> None:
    Path("ringtrue.toml").write_text('[conections.sok]\nkind = "run"\n', encoding="utf-8")
    said = ringtrue("search", "x").err
    assert "'conections'" in said
    assert "did you mean 'connections'" in said
    assert "completion" not in said


@pytest.mark.parametrize("command", ["ingest", "search", "sweep"])
def test_every_example_of_the_help_stands_on_its_own_line(ringtrue, command: str) -> None:
    lines = ringtrue(command, "--help").out.splitlines()
    examples = [line for line in lines if "Example:" in line]
    assert examples
    assert all(line.strip().startswith("Example: ringtrue ") and line.count("Example:") == 1 for line in examples)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["search", "x"], "ringtrue ingest"),
        (["search"], "give one query, with --explain if you like, or --queries with --run"),
        (["search", "x", "--queries", "hotel"], "give one query, with --explain if you like, or --queries with --run"),
        (["search", "--queries", "hotel"], "--run"),
        (["search", "x", "--scope", "city"], "city=Bath"),
        (["search", "x", "--scope", "lang=en", "--scope", "lang=de"], "'lang' twice ('en' and 'de')"),
        (["search", "--queries", "hotel", "--run", "x.run", "--explain"], "--explain"),
        (["search", "x", "--retriever", "bm52"], "'bm25'"),
        (["search", "x", "--retriever", "connect('shop')"], "connections.shop"),
        (["ingest", "no-such-folder"], "no-such-folder: there is no such file or folder"),
        (["ingest", "hotle"], "hotle: there is no such file or folder"),
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
