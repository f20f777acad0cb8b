"""No number before the documents, the ids and the depth are right; exit code 3 with the reason and the cure."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ringtrue.errors import UNDECIDED, CannotDecide, InputError
from ringtrue.records import Document, GoldenSet, Judgment, Query
from ringtrue.retrieve import Collection
from ringtrue.run import evaluate

MEASURES = ["nDCG@5", "R@5"]


def answering(golden: GoldenSet, name: Callable[[str], str] = str) -> Callable[..., list[str]]:
    """A search that finds exactly what is judged, under ids of its own."""
    judged: dict[str, list[str]] = {}
    for judgment in golden.judgments:
        judged.setdefault(golden.query(judgment.query_id).text, []).append(judgment.doc_id)
    rest = [document.doc_id for document in golden.documents]

    def search(text: str, k: int) -> list[str]:
        found = [*judged[text], *(doc_id for doc_id in rest if doc_id not in judged[text])]
        return [name(doc_id) for doc_id in found][:k]

    return search


def refused(*arguments: Any, **options: Any) -> str:
    with pytest.raises(CannotDecide) as problem:
        evaluate(*arguments, measures=MEASURES, cache=False, **options)
    assert problem.value.exit_code == UNDECIDED
    assert str(problem.value).startswith("no number: ")
    return str(problem.value)


def test_where_all_holds_the_result_says_so(golden: GoldenSet, collection: Collection) -> None:
    found = evaluate("bm25", golden, collection=collection, measures=MEASURES)
    assert {one.name: one.status for one in found.setup.preconditions} == {
        "index": "met", "documents": "met", "cut-off": "met", "ids": "met", "depth": "met",
    }  # fmt: skip
    assert found.setup.corpus == collection.content_hash()


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        (lambda doc_id: f"mem:{doc_id}", "^mem:(.+)$"),
        (lambda doc_id: f"{doc_id}#4", r"^(.+?)#\d+$"),
        (lambda doc_id: f"docs/en/{doc_id}.md", r"^docs/en/(.+)\.md$"),
        (lambda doc_id: f"golden:beir:{doc_id}", r"^golden:beir:(.+)$"),
    ],
)
def test_trap_11_ids_of_another_kind_are_no_dead_search(golden: GoldenSet, name: Callable[[str], str], pattern: str) -> None:
    """Chunk ids against document ids, ``mem:12`` against ``12``: 0 % would look like a result."""
    message = refused(answering(golden, name), golden)
    assert "none of the 10 documents in the answers" in message
    found = evaluate(answering(golden, name), golden, measures=MEASURES, ids=pattern)
    assert found.metrics == {"nDCG@5": 1.0, "R@5": 1.0}


@pytest.mark.parametrize(
    "form",
    [
        "mem:{}", "docs/{}.md", "a/b/{}", "golden:beir:{}", "{}#3", "{}-chunk-2", "{}.txt", "00{}", "{}_chunk_3", "{}::3",
        "{}:chunk:0", "kb/{}/3", "docs/{}.md#2", "{}-chunk-3-of-9", "{} (3)", "chunk-7-{}", "{}:0:512", "{}::intro::2",
        "{}_9f3ab27c", "{}-550e8400-e29b-41d4-a716-446655440000",
    ],
)  # fmt: skip
def test_trap_11_the_cure_names_a_pattern_that_works(golden: GoldenSet, form: str) -> None:
    search = answering(golden, form.format)
    message = refused(search, golden)
    pattern = message.split("--id-pattern '")[1].split("'")[0]
    assert evaluate(search, golden, measures=MEASURES, ids=pattern).metrics["R@5"] == 1.0


@pytest.mark.parametrize(
    ("named", "answer"),
    [("docs/{}.md".format, lambda doc_id: doc_id[5:-3]), (str, str.upper)],
    ids=["longer in the set", "another case"],
)
def test_ids_that_only_the_golden_set_can_change_get_no_pattern_for_answers(
    golden: GoldenSet, named: Callable[[str], str], answer: Callable[[str], str]
) -> None:
    golden = replace(
        golden,
        judgments=tuple(replace(one, doc_id=named(one.doc_id)) for one in golden.judgments),
        documents=tuple(replace(one, doc_id=named(one.doc_id)) for one in golden.documents),
    )
    message = refused(answering(golden, answer), golden)
    assert "write the ids in the golden set as the search returns them: '" in message
    assert "--id-pattern" not in message


def test_trap_11_chunk_ids_mixed_with_document_ids_are_seen_too(golden: GoldenSet) -> None:
    """Some answers in documents, some in chunks: the chunks would count as strangers, and the search as worse than it is."""
    search = answering(golden, lambda doc_id: doc_id if doc_id < "h" else f"{doc_id}#0")
    assert "are parts of documents of 'small'" in refused(search, golden)


def test_a_pattern_is_not_offered_if_it_would_change_ids_that_are_right(golden: GoldenSet) -> None:
    numbered = {document.doc_id: f"{document.doc_id}-{n % 2}" for n, document in enumerate(golden.documents)}
    golden = replace(
        golden,
        documents=tuple(replace(one, doc_id=numbered[one.doc_id]) for one in golden.documents),
        judgments=tuple(replace(one, doc_id=numbered[one.doc_id]) for one in golden.judgments),
    )
    some = sorted(numbered.values())[:5]
    search = answering(golden, lambda doc_id: doc_id if doc_id in some else f"{doc_id}-3")
    message = refused(search, golden)
    assert "make the search return document ids only; a pattern for these would also change ids that are correct" in message
    assert "--id-pattern" not in message


def random_chunks(doc_id: str) -> str:
    return f"{doc_id}_{random.Random(doc_id).getrandbits(64):x}"


def test_chunk_ids_that_end_in_random_digits_get_a_pattern_for_all_of_them(golden: GoldenSet) -> None:
    search = answering(golden, random_chunks)
    pattern = refused(search, golden).split("--id-pattern '")[1].split("'")[0]
    assert evaluate(search, golden, measures=["RR"], ids=pattern).metrics == {"RR": 1.0}


def test_a_pattern_for_few_of_the_ids_is_not_offered_and_gives_no_number(golden: GoldenSet) -> None:
    names = {document.doc_id: f"entity-{n}-x" for n, document in enumerate(golden.documents)} | {"pool": "entity-1"}
    judged = tuple(replace(one, doc_id=names[one.doc_id]) for one in golden.judgments)
    golden = replace(golden, documents=(), judgments=judged)
    search = answering(golden, lambda doc_id: f"{doc_id}7")
    assert "map them with --id-pattern 'REGEX'" in refused(search, golden)
    for pattern in (r"^(.+?)-x\d+$", r"^(entity-2-x)7$"):
        with pytest.raises(CannotDecide, match=r"--id-pattern .* changes \d+ of \d+ returned ids, such as 'entity"):
            evaluate(search, golden, measures=["RR"], ids=pattern)


def test_where_no_pattern_fits_the_option_is_named_all_the_same(golden: GoldenSet) -> None:
    ids = {document.doc_id: f"{n:032x}" for n, document in enumerate(golden.documents, 1)}
    message = refused(answering(golden, ids.__getitem__), golden)
    assert "search the documents that the set judges, or map them with --id-pattern 'REGEX' (ids= in Python)" in message
    assert "accept it with --allow ids (allow= in Python)" in message


def test_several_chunks_of_one_document_count_once_at_the_best_rank(golden: GoldenSet) -> None:
    def search(text: str, k: int) -> list[str]:
        return ["spa#1", "pool#1", "pool#2", "towels#1"]

    found = evaluate(search, golden, measures=["P@3", "RR"], ids=r"^(.+?)#\d+$", allow=["depth"])
    assert [hit.doc_id for hit in found.ranking("q1").hits] == ["spa", "pool", "towels"]
    assert found.ranking("q1").hits[1].chunk == "pool#1"
    assert found.scores.per_query["q1"] == {"P@3": 2 / 3, "RR": 0.5}


@pytest.mark.parametrize("expression", ["bm25 >> threshold(min=1)", "bm25 >> top(3)", "rrf(bm25 >> top(2), fts5)"])
def test_trap_12_a_cut_off_above_the_deepest_rank_is_refused(
    golden: GoldenSet, collection: Collection, expression: str
) -> None:
    message = refused(expression, golden, collection=collection)
    assert "while measures look down to rank 5" in message
    assert "--allow cut-off" in message


def test_trap_12_a_cut_off_below_every_measure_is_fine_and_an_accepted_one_is_noted(
    golden: GoldenSet, collection: Collection
) -> None:
    assert evaluate("bm25 >> top(5)", golden, collection=collection, measures=MEASURES).metrics["R@5"] > 0
    found = evaluate("bm25 >> threshold(relative=0.5)", golden, collection=collection, measures=MEASURES, allow=["cut-off"])
    assert any("a threshold is active" in note for note in found.notes)
    assert any(one.name == "cut-off" and one.status == "failed" for one in found.setup.preconditions)


def test_trap_12_answers_that_all_end_at_one_rank_are_refused(golden: GoldenSet) -> None:
    """A token budget or a server-side limit shows in the answers only: R@5 of lists of three is not an R@5."""
    whole = answering(golden)
    message = refused(lambda text, k: whole(text, k)[:3], golden)
    assert "6 of 6 answers end at exactly 3 hits and none is longer, but measures look down to rank 5" in message
    assert "let the search return 5, or measure down to 3" in message


def test_trap_12_a_limit_shows_although_some_answers_are_shorter(golden: GoldenSet) -> None:
    whole = answering(golden)
    message = refused(lambda text, k: whole(text, k)[: 2 if text.startswith("are dogs") else 3], golden)
    assert "5 of 6 answers end at exactly 3 hits and none is longer" in message


def sized(sizes: Sequence[int], *, documents: int = 40) -> tuple[GoldenSet, Callable[..., list[str]]]:
    """A set, and a search whose answers have these lengths."""
    queries = tuple(Query(f"q{n}", f"question {n}") for n in range(len(sizes)))
    there = tuple(Document(f"d{n}", f"text {n}") for n in range(documents))
    golden = GoldenSet("sized", "1.0.0", queries, tuple(Judgment(query.query_id, "d0", 1) for query in queries), there)
    length = {query.text: size for query, size in zip(queries, sizes, strict=True)}
    return golden, lambda text, k: [f"d{n}" for n in range(length[text])][:k]


@pytest.mark.parametrize(
    "sizes",
    [range(1, 13), [1, 2, 3, 4] * 12, [1] * 9 + [2] * 6 + [3] * 4 + [9], [5, 6, 7, 8, 8, 9, 9, 9, 10, 10, 10, 11, 11, 12, 12]],
    ids=["each length once", "each length equally often", "many short ones", "a bell"],
)
def test_answers_of_natural_lengths_pass_although_none_reaches_the_deepest_rank(sizes: Sequence[int]) -> None:
    golden, search = sized(list(sizes))
    found = evaluate(search, golden, measures=["R@20"], cache=False)
    assert found.metrics == {"R@20": 1.0}
    assert {one.name: one.status for one in found.setup.preconditions}["depth"] == "met"


@pytest.mark.parametrize("sizes", [range(1, 21), [*range(1, 11), *[30] * 6], [30] * 12], ids=["half", "six of sixteen", "all"])
def test_a_search_capped_at_10_is_refused_while_measures_look_down_to_rank_20(sizes: Sequence[int]) -> None:
    golden, search = sized([min(size, 10) for size in sizes])
    with pytest.raises(CannotDecide, match=r"exactly 10 hits .*; let the search return 20, or measure down to 10"):
        evaluate(search, golden, measures=["R@20"], cache=False)
    assert evaluate(search, golden, measures=["R@10"], cache=False).metrics == {"R@10": 1.0}


def test_answers_that_hold_every_document_there_is_are_not_suspected_of_a_limit() -> None:
    golden, search = sized([8] * 12, documents=8)
    assert evaluate(search, golden, measures=["R@20"], cache=False).metrics == {"R@20": 1.0}


def test_trap_13_golden_ids_from_another_database_are_refused(golden: GoldenSet, collection: Collection) -> None:
    other = replace(golden, documents=(), judgments=tuple(replace(one, doc_id=f"{one.doc_id}-old") for one in golden.judgments))
    message = refused("bm25", other, collection=collection)
    assert "7 of 7 judged documents are not in" in message
    assert "'pool-old'" in message
    own = replace(other, documents=tuple(replace(one, doc_id=f"{one.doc_id}-old") for one in golden.documents))
    cure = "to search the set's own documents, leave out --in and folder under [eval] in ringtrue.toml; otherwise index these"
    assert cure in refused("bm25", own, collection=collection)


def test_trap_13_one_missing_document_is_enough(golden: GoldenSet, collection: Collection) -> None:
    more = replace(golden, judgments=(*golden.judgments, Judgment("q1", "sauna-plan", 0)))
    assert "1 of 8 judged documents are not in" in refused("bm25", more, collection=collection)


def test_a_document_that_changed_since_it_was_indexed_is_refused(golden: GoldenSet, collection: Collection) -> None:
    changed = replace(golden, documents=(Document("pool", "closed for repairs"), *golden.documents[1:]))
    assert "1 documents in" in refused("bm25", changed, collection=collection)


def test_trap_14_an_unfinished_index_is_refused(golden: GoldenSet, tmp_path: Path) -> None:
    half = Collection.create(tmp_path / "half")

    def documents() -> Any:
        yield from golden.documents
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        half.ingest(documents())
    half.ingest([])  # what came before the interruption is there; finish nothing
    with half.connect() as connection:
        connection.execute("INSERT OR REPLACE INTO facts VALUES ('ingesting', 'true')")
    assert "the last ingest did not finish" in refused("bm25", golden, collection=half)


def test_trap_14_a_half_embedded_index_is_refused(
    golden: GoldenSet, collection: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ringtrue.retrieve.channels.bm25 import Bm25

    monkeypatch.setattr(Bm25, "coverage", lambda self: (4, 10), raising=False)
    assert "holds 4 of 10 passages" in refused("bm25", golden, collection=collection)


def test_a_system_that_can_be_asked_for_its_documents_is_asked(golden: GoldenSet) -> None:
    class Mine:
        def search(self, text: str, *, k: int = 10) -> list[str]:
            return ["pool"]

        def known(self, doc_ids: Sequence[str]) -> list[str]:
            return [doc_id for doc_id in doc_ids if doc_id != "dogs"]

    assert "1 of 7 judged documents are not in the index, such as 'dogs'" in refused(Mine(), golden)


def test_a_plain_function_cannot_be_looked_into_and_the_result_says_so(golden: GoldenSet) -> None:
    found = evaluate(answering(golden), golden, measures=MEASURES)
    assert {one.name: one.status for one in found.setup.preconditions}["documents"] == "not checked"
    said = {one.name: one.detail for one in found.setup.preconditions if one.status == "not checked"}
    assert said["documents"] == "the system cannot be asked which documents it has"


def test_a_wrong_name_to_allow_is_bad_input(golden: GoldenSet) -> None:
    with pytest.raises(InputError, match="there is no precondition 'cutoff' to allow; use 'cut-off'"):
        evaluate("bm25", golden, allow=["cutoff"])


def test_a_system_with_ids_of_its_own_is_asked_for_those(golden: GoldenSet) -> None:
    """After `golden ingest` the ids there are namespaced: judged ids are turned into them before asking."""
    asked: list[str] = []

    class Mine:
        def search(self, text: str, *, k: int = 10) -> list[str]:
            return [f"golden:small:{document.doc_id}" for document in golden.documents][:k]

        def known(self, doc_ids: Sequence[str]) -> list[str]:
            asked.extend(doc_ids)
            return list(doc_ids)

    found = evaluate(Mine(), golden, measures=MEASURES, ids=r"^golden:small:(.+)$")
    assert asked[0] == "golden:small:pool"
    assert {one.name: one.status for one in found.setup.preconditions}["documents"] == "met"
    found = evaluate(Mine(), golden, measures=MEASURES, ids=r"^golden:\w+:(.+)$")
    assert {one.name: one.status for one in found.setup.preconditions}["documents"] == "not checked"


def test_judged_documents_that_the_set_itself_lacks_are_refused_for_any_search(golden: GoldenSet) -> None:
    """Nothing can find them; they would count as lost by a search that cannot be looked into."""
    more = replace(golden, judgments=(*golden.judgments, Judgment("q1", "sauna-plan", 3)))
    assert "1 of 8 judged documents are none of 'small', such as 'sauna-plan'" in refused(answering(golden), more)


def test_ids_of_an_earlier_ingest_are_recognised(golden: GoldenSet) -> None:
    class Mine:
        def search(self, text: str, *, k: int = 10) -> list[str]:
            return [f"golden:small:{document.doc_id}" for document in golden.documents][:k]

        def known(self, doc_ids: Sequence[str]) -> list[str]:
            return [doc_id for doc_id in doc_ids if doc_id.startswith("golden:small:")]

    assert "--id-pattern '^golden:small:(.+)$'" in refused(Mine(), golden)


def test_a_scope_that_no_query_has_is_bad_input(golden: GoldenSet, collection: Collection) -> None:
    with pytest.raises(InputError, match="no query of 'small' has the field 'city' to be scoped by"):
        evaluate("bm25", golden, collection=collection, scope="city")


def test_no_hit_at_all_is_no_number(golden: GoldenSet) -> None:
    assert "none of the 6 answers has a single hit" in refused(lambda text, k: [], golden)


@pytest.mark.parametrize("form", ["{}|0", "{}~1", "v2|{}"])
def test_trap_11_any_sign_between_document_and_chunk_is_seen(golden: GoldenSet, form: str) -> None:
    search = answering(golden, lambda doc_id: form.format(doc_id) if doc_id > "d" else doc_id)
    pattern = refused(search, golden).split("--id-pattern '")[1].split("'")[0]
    assert evaluate(search, golden, measures=MEASURES, ids=pattern).metrics["R@5"] == 1.0


def test_what_a_function_cuts_is_out_of_sight(golden: GoldenSet) -> None:
    found = evaluate(answering(golden), golden, measures=MEASURES)
    assert {one.name: one.status for one in found.setup.preconditions}["cut-off"] == "not checked"


def test_each_route_is_asked_for_its_own_documents_only(golden: GoldenSet) -> None:
    class Half:
        def __init__(self, mine: set[str]) -> None:
            self.mine = mine

        def search(self, text: str, *, k: int = 10) -> list[str]:
            return sorted(self.mine)

        def known(self, doc_ids: Sequence[str]) -> list[str]:
            return [doc_id for doc_id in doc_ids if doc_id in self.mine]

    queries = tuple(replace(q, metadata={"corpus": "water" if q.query_id < "q3" else "house"}) for q in golden.queries)
    routed = replace(golden, queries=queries, slices=())
    water, house = Half({"pool", "spa", "towels"}), Half({"breakfast", "parking", "dogs", "refund"})
    assert evaluate({"water": water, "house": house}, routed, measures=["RR"]).metrics["RR"] > 0


def test_a_query_that_nobody_judged_has_no_score(golden: GoldenSet) -> None:
    some = replace(golden, judgments=tuple(one for one in golden.judgments if one.query_id != "q2"))
    found = evaluate(answering(golden), some, measures=["P@1"])
    assert "q2" not in found.scores.per_query
    assert found.metrics["P@1"] == 1.0
    assert any("1 queries have no judgment" in note for note in found.notes)
    with pytest.raises(CannotDecide, match="judges none of the queries"):
        evaluate(answering(golden), replace(golden, judgments=()), measures=["P@1"])
