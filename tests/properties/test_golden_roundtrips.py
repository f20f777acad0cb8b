"""Properties of golden sets: nothing is lost silently, hashes see changes, splits are fair, near doubles are found."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ringtrue.errors import InputError
from ringtrue.golden import (
    FORMATS,
    content_hash,
    diff,
    known_item,
    load,
    near_duplicates,
    save,
    shipped,
    split,
    validate,
)
from ringtrue.golden.formats import read
from ringtrue.golden.likeness import jaccard, normalise, shared_run, words
from ringtrue.golden.version import canonical
from ringtrue.records import Document, GoldenSet, Judgment, Query

RICH = ("golden-dataset", "test-set", "agent-memory")
SLOW = settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])

any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
tricky = st.sampled_from(
    ["", " ", "a\tb", "x\ny", "\u2028", "\x85", "<b>&amp;", "'\"", "null", "1", "=", "- a", "#", "{", "\r\n", "é", "ـة"]
)
text = any_text | tricky
plain_id = st.text("abcdefgh0123456789-_.", min_size=1, max_size=6)
odd_id = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1, max_size=5).filter(str.strip)
keys = (
    st.sampled_from(
        [
            "query_type",
            "category",
            "note",
            "id",
            "query",
            "text",
            "metadata",
            "source",
            "grade",
            "querry",
            "listed2",
            "é",
            "1",
        ]
    )
    | any_text
)
scalars = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | text
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(any_text, inner, max_size=2), max_leaves=3
)
metadata = st.dictionaries(keys, values, max_size=3)


@st.composite
def golden_sets(draw: st.DrawFn, ids: st.SearchStrategy[str] = plain_id | odd_id) -> GoldenSet:
    """Draw any set that is consistent in its ids, with everything the model can hold."""
    doc_ids = draw(st.lists(ids, min_size=1, max_size=4, unique=True))
    query_ids = draw(st.lists(ids, min_size=1, max_size=3, unique=True))
    tags = st.lists(st.text("abc", min_size=1, max_size=3), max_size=2).map(tuple)
    pairs = [(query, doc) for query in query_ids for doc in doc_ids]
    judged = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=6))
    return GoldenSet(
        id=draw(ids),
        version=draw(st.sampled_from(["1.0.0", "0.3.1"])),
        queries=tuple(Query(query, draw(text), draw(metadata), draw(st.booleans())) for query in query_ids),
        judgments=tuple(
            Judgment(query, doc, draw(st.integers(0, 3)), draw(st.sampled_from([None, "chair", "bootstrap"])), draw(metadata))
            for query, doc in sorted(judged, key=pairs.index)
        ),
        documents=tuple(Document(doc, draw(text), draw(text), draw(metadata), draw(tags)) for doc in doc_ids),
        description=draw(text),
        created_at=draw(st.none() | st.just("2026-11-15")),
        profile=draw(st.sampled_from(["general", "known-item", "memory", "test-set"])),
        relevance_threshold=draw(st.integers(1, 3)),
        scale=draw(st.sampled_from([(0, 3), (-1, 4)])),
        provenance=draw(text),
        scope=draw(st.none() | st.just("tenant")),
        slices=draw(st.sampled_from([(), ("query_type",)])),
        equivalence_classes=draw(st.sampled_from([(), (tuple(doc_ids),)])),
        metadata=draw(metadata),
    )


def parts(golden: GoldenSet) -> tuple[object, ...]:
    """Return everything a set says, apart from the order of its rows, made independently of what ``save`` compares."""
    header = {name: getattr(golden, name) for name in GoldenSet.__dataclass_fields__}
    del header["queries"], header["documents"], header["judgments"]
    return (
        canonical(header),
        {query.query_id: (query.text, canonical(query.metadata), query.negative) for query in golden.queries},
        {doc.doc_id: (doc.text, doc.title, canonical(doc.metadata), doc.tags) for doc in golden.documents},
        {(j.query_id, j.doc_id): (j.grade, j.source, canonical(j.metadata)) for j in golden.judgments},
    )


def same(a: GoldenSet, b: GoldenSet) -> bool:
    """Return whether two sets say the same."""
    return parts(a) == parts(b)


def path_in(folder: str, name: str, golden: GoldenSet) -> Path:
    safe = golden.id if golden.id.isalnum() else "set"
    return Path(folder) / (safe + FORMATS[name].suffixes[0])


@pytest.mark.parametrize("name", RICH)
@given(golden=golden_sets())
@SLOW
def test_rich_formats_bring_everything_back(name: str, golden: GoldenSet) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = path_in(folder, name, golden)
        assert save(golden, path, format=name) == ()
        assert same(read(path), golden)
        assert [query.query_id for query in read(path).queries] == [query.query_id for query in golden.queries]


@pytest.mark.parametrize("name", FORMATS)
@given(golden=golden_sets())
@SLOW
def test_no_format_loses_anything_silently(name: str, golden: GoldenSet) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = path_in(folder, name, golden)
        try:
            lost = save(golden, path, format=name)
        except InputError:
            assert not list(Path(folder).iterdir()), "a refused set leaves nothing behind"
            return
        assert same(read(path), golden) or lost
        assert not (same(read(path), golden) and lost)


@pytest.mark.parametrize("name", FORMATS)
@given(golden=golden_sets(ids=plain_id))
@SLOW
def test_what_a_format_holds_it_holds_for_good(name: str, golden: GoldenSet) -> None:
    with tempfile.TemporaryDirectory() as folder:
        first, second = path_in(folder, name, golden), Path(folder) / "again" / path_in(folder, name, golden).name
        try:
            save(golden, first, format=name)
        except InputError:
            return
        kept = read(first)
        assert save(kept, second, format=name) == ()
        assert same(read(second), kept)


@pytest.mark.parametrize("name", shipped())
def test_shipped_sets_survive_the_rich_formats(name: str, tmp_path: Path) -> None:
    golden = load(name)
    for form in ("golden-dataset", "agent-memory"):
        path = tmp_path / f"{form}{FORMATS[form].suffixes[0]}"
        assert save(golden, path, format=form) == ()
        assert content_hash(load(path)) == content_hash(golden)


@given(golden_sets())
@SLOW
def test_diff_with_itself_is_empty_and_hashes_agree(golden: GoldenSet) -> None:
    turned = replace(golden, queries=golden.queries[::-1], judgments=golden.judgments[::-1], documents=golden.documents[::-1])
    assert content_hash(turned) == content_hash(golden)
    assert diff(golden, turned).suggested == "none"


@given(golden_sets(), golden_sets())
@SLOW
def test_diff_sees_whatever_the_hash_sees(old: GoldenSet, new: GoldenSet) -> None:
    moved = diff(old, new).suggested in ("major", "minor")
    assert moved == (content_hash(old) != content_hash(new))


@given(golden_sets())
@SLOW
def test_validation_never_fails_on_a_readable_set(golden: GoldenSet) -> None:
    report = validate(golden)
    assert all(problem.message and problem.cure for problem in report.problems)


@given(
    st.dictionaries(st.text("abcdefgh", min_size=1, max_size=4), st.sampled_from("xyz"), min_size=1, max_size=60),
    st.integers(0, 3),
    st.floats(0.05, 0.6),
)
def test_split_is_complete_disjoint_and_stratified(kinds: dict[str, str], seed: int, share: float) -> None:
    queries = tuple(Query(name, name, {"query_type": kind}) for name, kind in kinds.items())
    tuning, held_out = split(GoldenSet("s", "1.0.0", queries, ()), seed=seed, held_out=share)
    sides = [query.query_id for part in (tuning, held_out) for query in part.queries]
    assert sorted(sides) == sorted(kinds)
    for kind in set(kinds.values()):
        size = list(kinds.values()).count(kind)
        out = sum(query.metadata["query_type"] == kind for query in held_out.queries)
        assert abs(out - size * share) < 1 or (size >= 5 and out == 1)
        assert out >= 1 or size < 5


@given(
    st.lists(st.lists(st.sampled_from("abcdefghijkl"), max_size=14).map(" ".join), max_size=12),
    st.sampled_from([0.5, 0.8, 0.9, 1.0]),
)
@example(["a b c d e f g h i", "a b c d e f g h i j"], 0.9)
def test_near_duplicates_are_those_that_comparing_all_with_all_finds(texts: list[str], threshold: float) -> None:
    sets = [frozenset(normalise(item).split()) for item in texts]
    expected = [
        (i, j, jaccard(sets[i], sets[j]))
        for i, j in combinations(range(len(texts)), 2)
        if jaccard(sets[i], sets[j]) >= threshold
    ]
    assert near_duplicates(texts, threshold=threshold) == expected


@given(st.lists(st.sampled_from("abc"), max_size=8), st.lists(st.sampled_from("abc"), max_size=12))
def test_trap_18_longest_run_equals_brute_force(asked: list[str], told: list[str]) -> None:
    runs = [asked[i:j] for i in range(len(asked)) for j in range(i + 1, len(asked) + 1)]
    inside = [run for run in runs if any(told[k : k + len(run)] == run for k in range(len(told)))]
    found = shared_run(" ".join(asked), " ".join(told))
    assert len(found) == max(map(len, inside), default=0)
    assert not found or found in inside
    assert words(" ".join(asked)) == asked


@given(st.lists(st.tuples(text, text), max_size=6))
def test_g7a_bootstrap_is_idempotent(titles: list[tuple[str, str]]) -> None:
    documents = [Document(f"d{n}", body, title) for n, (title, body) in enumerate(titles)]
    first = known_item(documents)
    assert known_item(documents, existing=first.golden).golden == first.golden
    found = {judgment.doc_id for judgment in first.golden.judgments}
    assert found | set(first.unnamed) == {document.doc_id for document in documents}
