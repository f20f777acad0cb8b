"""Round trips lose nothing that a format can hold, what it cannot hold is refused, and no bytes crash a reader."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import ringtrue.formats
from ringtrue.errors import BAD_INPUT, InputError
from ringtrue.formats import KINDS, read_qrels, read_run, trec, write_qrels, write_run
from ringtrue.records import Qrels, Run

UNFIT = {
    "trec": re.compile(r"[ \t\r\n\f\v\0]|\A[#\ufeff]"),
    "tsv": re.compile(r"[\t\r\n\0]"),
    "csv": re.compile(r"\0"),
}
"""What an id may not hold in a format; the other formats hold every id."""

quick = settings(max_examples=25, suppress_health_check=list(HealthCheck))
AWKWARD = [
    "a b", " x", "x ", "a\tb", "a\nb", "\nx", "x\n", "a\rb", "x\r", "a\r\nb", "a\0b", "#x", "x#", "\ufeffx", "x\u2028y",
    "\x85z", "z\x85", '"', '""', '"x', "'", ",", ";", "\\", "a: b", "- x", "x:", "yes", "010", "1_0", "null", "~", "<<",
    "1e5", "2024-01-01", "12:30", "{", "[x]", "&a", "*a", "!b", "%", "@", "`", "| ", "> ", "? x", "NaN", "é", "e\u0301", "🙂",
    "\u00a0x", "query_id", "\x1b[0m", "\x7f", "\ufffe", "\x1cx", "\u200b", "x" * 200, "word " * 60, "=", "...", "---",
]  # fmt: skip
awkward = st.sampled_from(AWKWARD)
ids = st.one_of(
    st.from_regex(r"[A-Za-z0-9_.:/-]{1,12}", fullmatch=True), awkward, st.text(min_size=1, max_size=8)
).filter(lambda text: bool(text.strip()))  # fmt: skip
plain_ids = st.from_regex(r"[A-Za-z0-9_.:/é日-]{1,8}", fullmatch=True)
grades = st.one_of(st.integers(-2, 4), st.integers(-(10**18) + 1, 10**18 - 1))
numbers = st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([0.0, -0.0, 1.0, 5e-324, 1e16, 0.1]))
judgments = st.dictionaries(st.tuples(ids, ids), grades, min_size=1, max_size=8)
answers = st.lists(st.tuples(ids, ids, numbers), min_size=1, max_size=10)
rankings = st.dictionaries(ids, st.lists(ids, max_size=5), min_size=1, max_size=4)


def exact(run: Run) -> list[tuple[str, str, str]]:
    return [(query_id, doc_id, score.hex()) for query_id, doc_id, score in run]


def written(write: Callable[..., None], value: Any, path: Path, kind: str) -> str | None:
    """Return None when the value was written, else the complaint, checked for what every complaint needs."""
    path.unlink(missing_ok=True)
    try:
        write(value, path, kind=kind)
    except InputError as problem:
        message = str(problem)
        assert message.splitlines() == [message]
        assert "JSON" in message, "a refusal says what to use instead"
        assert not path.exists()
        return message
    return None


def can_hold(kind: str, names: list[str]) -> bool:
    return kind not in UNFIT or not any(UNFIT[kind].search(name) for name in names)


@pytest.mark.parametrize("kind", KINDS)
@quick
@given(rows=judgments)
def test_judgments_survive_every_format_that_can_hold_them(rows: dict[tuple[str, str], int], kind: str, tmp_path: Path) -> None:
    qrels = Qrels.of((query_id, doc_id, grade) for (query_id, doc_id), grade in rows.items())
    path = tmp_path / "x"
    refusal = written(write_qrels, qrels, path, kind)
    assert (refusal is None) == can_hold(kind, [name for pair in rows for name in pair]), refusal
    if refusal is None:
        read = read_qrels(path, kind=kind)
        assert read.to_dict() == qrels.to_dict()
        assert read.query_ids == qrels.query_ids


@pytest.mark.parametrize("kind", KINDS)
@quick
@given(rows=answers)
def test_scored_runs_survive_every_format_that_can_hold_them(
    rows: list[tuple[str, str, float]], kind: str, tmp_path: Path
) -> None:
    run = Run.of(rows)
    path = tmp_path / "x"
    repeated = len({row[:2] for row in rows}) < len(rows)
    refusal = written(write_run, run, path, kind)
    fits = can_hold(kind, [name for row in rows for name in row[:2]]) and not (repeated and kind in ("json", "yaml"))
    assert (refusal is None) == fits, refusal
    if refusal is None:
        read = read_run(path, kind=kind)
        assert not read.ordered
        assert exact(read) == exact(run)


@pytest.mark.parametrize("kind", KINDS)
@quick
@given(lists=rankings)
def test_ordered_runs_survive_every_format_that_can_hold_them(lists: dict[str, list[str]], kind: str, tmp_path: Path) -> None:
    run = Run.from_rankings(lists)
    path = tmp_path / "x"
    refusal = written(write_run, run, path, kind)
    names = [*lists, *(doc_id for docs in lists.values() for doc_id in docs)]
    says_empty = kind in ("json", "yaml", "jsonl") or all(lists.values())
    assert (refusal is None) == (says_empty and can_hold(kind, names)), refusal
    if refusal is None:
        read = read_run(path, kind=kind)
        assert {query_id: docs for query_id, docs in lists.items() if docs} == {
            query_id: [doc_id for query, doc_id, _ in read if query == query_id] for query_id in read.query_ids
        }
        assert read.answered == {query_id for query_id, docs in lists.items() if not docs}


@quick
@given(rows=st.lists(st.tuples(plain_ids, plain_ids, numbers), min_size=1, max_size=12))
def test_written_trec_runs_read_alike_on_both_roads(rows: list[tuple[str, str, float]], tmp_path: Path) -> None:
    path = tmp_path / "r.run"
    write_run(Run.of(rows), path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ringtrue.formats, "BULK", 1)
        assert exact(read_run(path)) == exact(trec.read_run(path)) == exact(Run.of(rows))


@quick
@given(rows=judgments)
def test_conversion_through_all_formats_ends_where_it_began(rows: dict[tuple[str, str], int], tmp_path: Path) -> None:
    qrels = first = Qrels.of((query_id, doc_id, grade) for (query_id, doc_id), grade in rows.items())
    for kind in KINDS:
        if written(write_qrels, qrels, tmp_path / "x", kind) is None:
            qrels = read_qrels(tmp_path / "x", kind=kind)
    assert qrels.to_dict() == first.to_dict()


@pytest.mark.parametrize("kind", KINDS)
def test_awkward_ids_survive_or_are_refused_one_by_one(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    fit = [name for name in AWKWARD if can_hold(kind, [name])]
    assert len(fit) > 30
    qrels = Qrels.of((query_id, doc_id, 1) for query_id in fit for doc_id in fit)
    assert written(write_qrels, qrels, path, kind) is None
    assert list(read_qrels(path, kind=kind)) == list(qrels)
    run = Run.from_rankings(dict.fromkeys(fit, fit))
    assert written(write_run, run, path, kind) is None
    assert [row[:2] for row in read_run(path, kind=kind)] == [row[:2] for row in run]
    for name in set(AWKWARD) - set(fit):
        assert written(write_qrels, Qrels.of([("q", name, 1)]), path, kind) is not None
        assert written(write_run, Run.of([(name, "d", 1.0)]), path, kind) is not None


READERS: list[Callable[..., object]] = [read_qrels, read_run]
FRAGMENTS = [
    b"q1", b" ", b"\t", b"\n", b"\r", b"0", b"1", b"Q0", b"d1", b"0.5", b"tag", b"#", b",", b";", b'"', b"'", b"{", b"}",
    b"[", b"]", b":", b": ", b"- ", b"null", b"NaN", b"true", b"query_id", b"doc_id", b"grade", b"score", b"rank", b"\xff",
    b"\xc3\xa9", b"\0", b"\x07", b"\xef\xbb\xbf", b"&a ", b"*a", b"!!int ", b"? ", b"|", b"%", b"2024-13-01", b"010",
    b"\\ud800", b"1" * 30, b"\x1f\x8b", b"---\n", b"q1 0 d1 1\n", b"q1 Q0 d1 1 0.5 tag\n", b"query_id,doc_id,grade\n",
    b"q1,d1,1\n", b'{"q1": {"d1": 1}}',
]  # fmt: skip
contents = st.one_of(st.lists(st.sampled_from(FRAGMENTS), max_size=30).map(b"".join), st.binary(max_size=60))


def assert_read_or_refused(path: Path, kind: str) -> None:
    for read in READERS:
        try:
            found = read(path, kind=kind)
        except InputError as refusal:
            problem = refusal
        else:
            assert isinstance(found, Qrels | Run)
            continue
        assert problem.exit_code == BAD_INPUT
        assert str(problem).startswith(str(path))
        assert str(problem).splitlines() == [str(problem)]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "parquet"])
@settings(quick, max_examples=100)
@given(content=contents)
@example(content=b"- !!int x")
@example(content=b"q1: \x07")
@example(content=b"? [a]\n: 1")
@example(content=b'["\\ud800"]')
def test_no_bytes_crash_a_reader(content: bytes, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(content)
    assert_read_or_refused(path, kind)


words = st.one_of(st.text(max_size=3), st.sampled_from(["query_id", "doc_id", "grade", "score", "rank"]))
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), words),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(words, inner, max_size=4)),
    max_leaves=12,
)


@pytest.mark.parametrize("kind", ["json", "jsonl", "yaml"])
@settings(quick, max_examples=100)
@given(value=values)
def test_no_shape_of_document_crashes_a_reader(value: Any, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text(yaml.safe_dump(value) if kind == "yaml" else json.dumps(value))
    assert_read_or_refused(path, kind)
