"""The fast road for large run files gives what the strict reader gives, bit for bit, or leaves the file to it."""

from __future__ import annotations

import gzip
import random
import re
import tempfile
from pathlib import Path

import numpy as np
import pytest

import ringtrue.formats
from ringtrue.errors import InputError
from ringtrue.formats import bulk, read_run, trec
from ringtrue.formats.bulk import SpanIds
from ringtrue.measures import score
from ringtrue.records import Qrels, Run

MEASURES = ["nDCG@10", "AP", "RR", "P@5", "R@100", "Bpref", "Judged@10"]


@pytest.fixture(autouse=True)
def every_size_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ringtrue.formats, "BULK", 8)


def generated(
    seed: int, *, queries: int = 12, returned: int = 40, separator: str = " ", levels: int | None = None, wide: bool = False,
    repeats: bool = False, interleaved: bool = False, exponents: bool = False,
) -> list[str]:  # fmt: skip
    """Return the lines of a run."""
    dice = random.Random(seed)
    marks = ["", "é", "日", "🙂", "e\u0301", '"', "'", "\\", "#", ",", "NULL"] if wide else ["", "_", "-"]
    lines = []
    for number in dice.sample(range(100, 999), queries):
        pool = [f"d{dice.choice(marks)}{n}" for n in range(returned * 2)]
        shown = dice.choices(pool, k=returned) if repeats else dice.sample(pool, returned)
        for rank, doc_id in enumerate(shown, 1):
            value = dice.gauss(0, 10) if levels is None else dice.randrange(levels) / 4
            text = f"{value:.{dice.randint(0, 17)}e}" if exponents else repr(value)
            lines.append(
                separator.join([f"q{dice.choice(marks) if wide else ''}{number}", "Q0", doc_id, str(rank), text, "bm25"])
            )
    if interleaved:
        dice.shuffle(lines)
    return lines


def judgments(lines: list[str]) -> Qrels:
    dice = random.Random(7)
    pairs = {tuple(re.split(r"[ \t]+", line)[0:3:2]) for line in lines}
    chosen = dice.sample(sorted(pairs), len(pairs) // 3 + 1)
    return Qrels.of([(query_id, doc_id, dice.randrange(-1, 4)) for query_id, doc_id in chosen] + [("absent", "d1", 1)])


def assert_same(fast: Run, strict: Run) -> None:
    rows = np.arange(len(strict))
    assert len(fast) == len(strict)
    assert fast.name == strict.name
    assert fast.ordered == strict.ordered
    assert fast.query_ids == strict.query_ids
    assert fast.query.tolist() == strict.query.tolist()
    assert fast.score.dtype == strict.score.dtype
    assert fast.score.tobytes() == strict.score.tobytes()
    assert fast.docs.take(rows) == strict.docs.take(rows)
    assert fast.order.tolist() == strict.order.tolist()
    assert fast.rankings() == strict.rankings()
    assert list(fast) == list(strict)


def assert_keys_join(run: Run) -> None:
    queries = [run.query_ids[index] for index in run.query.tolist()]
    documents = run.docs.take(np.arange(len(run)))
    keys = run.docs.pair_keys(run.query_ids, run.query)
    assert keys.dtype == np.uint64
    assert run.docs.keys_of(queries, documents).tolist() == keys.tolist()
    key_of = dict(zip(zip(queries, documents, strict=True), keys.tolist(), strict=True))
    assert len(set(key_of.values())) == len(key_of), "different pairs have different keys"
    assert len(set(keys.tolist())) == len(key_of), "equal pairs have equal keys"


SHAPES = {
    "plain": {},
    "tabs": {"separator": "\t"},
    "ties": {"levels": 3},
    "repeats": {"repeats": True, "levels": 20},
    "repeats-and-ties": {"repeats": True, "levels": 2, "interleaved": True},
    "interleaved": {"interleaved": True},
    "exponents": {"exponents": True},
    "other-scripts": {"wide": True},
    "other-scripts-and-ties": {"wide": True, "levels": 3, "separator": "\t", "interleaved": True, "repeats": True},
    "one-query": {"queries": 1},
    "one-line": {"queries": 1, "returned": 1},
    "one-document-a-query": {"queries": 200, "returned": 1, "interleaved": True},
}


@pytest.mark.parametrize("ending", ["\n", "\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize("last", [True, False], ids=["closed", "open"])
@pytest.mark.parametrize("shape", SHAPES)
def test_fast_road_equals_strict_reader(shape: str, last: bool, ending: str, tmp_path: Path) -> None:
    lines = generated(11, **SHAPES[shape])  # type: ignore[arg-type]
    path = tmp_path / "r.run"
    path.write_bytes((ending.join(lines) + (ending if last else "")).encode())
    fast, strict = read_run(path), trec.read_run(path)
    assert_same(fast, strict)
    if last or ending == "\n":
        assert isinstance(fast.docs, SpanIds), "the fast road was not taken"
        assert_keys_join(fast)
    qrels = judgments(lines)
    one, other = score(fast, qrels, MEASURES), score(strict, qrels, MEASURES)
    assert one.values.tobytes() == other.values.tobytes()
    assert one.counted == other.counted
    assert one.judged.tobytes() == other.judged.tobytes()


@pytest.mark.parametrize("block", [1, 2, 3, 7, 64])
def test_borders_between_blocks_change_nothing(block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r.run"
    path.write_bytes("\r\n".join(generated(3, queries=3, returned=5, wide=True)).encode() + b"\r\n")
    monkeypatch.setattr(bulk, "_BLOCK", block)
    fast = read_run(path)
    assert isinstance(fast.docs, SpanIds)
    assert_same(fast, trec.read_run(path))


@pytest.mark.parametrize(
    "text", ["1", "-1.5", "+2.25", ".5", "5.", "1e5", "1E-5", "-0", "1e-999", "0.1", "00012", "9" * 40, "1" * 400 + "e-390"]
)
def test_numbers_mean_the_same_on_both_roads(text: str, tmp_path: Path) -> None:
    path = tmp_path / "r.run"
    path.write_text(f"q1 Q0 d1 1 {text} t\nq1 Q0 d2 2 0.3 t\n")
    assert_same(read_run(path), trec.read_run(path))


PLAIN = "q1 Q0 d1 1 9.5 t\n"
HANDED_OVER = {
    "comment": f"# made on Monday\n{PLAIN}",
    "comment-of-six-fields": f"{PLAIN}# q d 1 2 t\n",
    "comment-mark-joined": f"{PLAIN}#q1 Q0 d2 1 2 t\n",
    "double-blank": f"{PLAIN}q1 Q0  d2 2 9 t\n",
    "leading-blank": f"{PLAIN} q1 Q0 d2 2 9 t\n",
    "trailing-blank": f"{PLAIN}q1 Q0 d2 2 9 t \n",
    "trailing-blank-at-the-end": f"{PLAIN}q1 Q0 d2 2 9 t ",
    "blank-line": f"{PLAIN}\nq1 Q0 d2 2 9 t\n",
    "blank-line-first": f"\n{PLAIN}",
    "blank-line-last": f"{PLAIN}\n",
    "line-of-blanks": f"{PLAIN}     \n",
    "seventh-column": f"{PLAIN}q1 Q0 d2 2 9 t extra\n",
    "seventh-column-everywhere": PLAIN.replace(" t", " t extra"),
    "tab-among-blanks": f"{PLAIN}q1\tQ0 d2 2 9 t\n",
    "blank-among-tabs": PLAIN.replace(" ", "\t") + "q1\tQ0\td2 2\t9\tt\n",
    "blank-in-a-query-among-tabs": "q 1\tQ0\td1\t1\t9.5\tt\n",
    "tab-in-the-tag": f"{PLAIN}q1 Q0 d2 2 9 t\tx\n",
    "mixed-line-ends": f"{PLAIN}q1 Q0 d2 2 9 t\r\n",
    "lone-carriage-return": f"{PLAIN}q1 Q0 d2\r 2 9 t\n",
    "old-mac": "q1 Q0 d1 1 9.5 t\rq1 Q0 d2 2 9 t\r",
    "line-feed-carriage-return": "q1 Q0 d1 1 9.5 t\n\rq1 Q0 d2 2 9 t\n\r",
    "byte-order-mark": f"\ufeff{PLAIN}",
    "nan": f"{PLAIN}q1 Q0 d2 2 nan t\n",
    "infinite": f"{PLAIN}q1 Q0 d2 2 -Infinity t\n",
    "overflow": f"{PLAIN}q1 Q0 d2 2 1e999 t\n",
    "underscore": f"{PLAIN}q1 Q0 d2 2 1_0 t\n",
    "two-signs": f"{PLAIN}q1 Q0 d2 2 +-1 t\n",
    "text-score": f"{PLAIN}q1 Q0 d2 2 best t\n",
    "no-score": f"{PLAIN}q1 Q0 d2 2  t\n",
    "no-document": f"{PLAIN}q1 Q0  2 9 t\n",
    "no-iteration": f"{PLAIN}q1  d2 2 9 t\n",
    "no-rank": f"{PLAIN}q1 Q0 d2  9 t\n",
    "no-tag": f"{PLAIN}q1 Q0 d2 2 9 \n",
    "no-query": f"{PLAIN} Q0 d2 2 9 t\n",
    "damaged-line": f"{PLAIN}q1 Q0 d2\n",
    "cut-last-line": f"{PLAIN}q1 Q0 d2 2",
    "qrels": "q1 0 d1 1\n",
    "nul": f"{PLAIN}q1 Q0 d\x002 2 9 t\n",
    "control-character": f"{PLAIN}q1 Q0 d\x1f2 2 9 t\n",
    "form-feed": f"{PLAIN}q1 Q0 d2 2 9 t\f\n",
    "no-break-space": f"{PLAIN}q1 Q0 d\u00a02 2 9 t\n",
    "id-of-wide-blanks": f"{PLAIN}q1 Q0 \u3000 2 9 t\n",
    "latin-1-document": PLAIN.encode() + b"q1 Q0 d\xe9 2 9 t\n",
    "latin-1-rank": PLAIN.encode() + b"q1 Q0 d2 \xe9 9 t\n" + PLAIN.encode(),
    "latin-1-tag": PLAIN.encode() + b"q1 Q0 d2 2 9 t\xe9\n",
    "cut-character": PLAIN.encode() + b"q1 Q0 d2 2 9 t\xc3",
    "utf-16": PLAIN.encode("utf-16"),
    "picture": b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" * 9,
    "csv": "query_id,doc_id,score\nq1,d1,1\n",
}


def outcome(path: Path, *, strict: bool) -> object:
    try:
        run = trec.read_run(path) if strict else read_run(path)
    except InputError as problem:
        return str(problem)
    return run.name, run.query_ids, list(run), run.score.tobytes()


@pytest.mark.parametrize("name", HANDED_OVER)
def test_unusual_files_are_handed_to_the_strict_reader(name: str, tmp_path: Path) -> None:
    content = HANDED_OVER[name]
    path = tmp_path / "r.run"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    assert bulk.read_run(path) is None
    assert outcome(path, strict=False) == outcome(path, strict=True)


def test_any_damage_to_a_file_ends_alike_on_both_roads(tmp_path: Path) -> None:
    dice = random.Random(20240501)
    odd = [
        b" ",
        b"  ",
        b"\t",
        b"\n",
        b"\r",
        b"\r\n",
        b"\0",
        b"#",
        b"\xff",
        b"\xc2\xa0",
        "é".encode(),
        b"_",
        b"+-",
        b"e",
        b".",
        b'"',
        b"nan",
    ]
    path = tmp_path / "r.run"
    taken = 0
    for number in range(200):
        lines = generated(number, queries=2, returned=3, separator=dice.choice(" \t"), wide=dice.random() < 0.3)
        content = bytearray(dice.choice(["\n", "\r\n"]).join([*lines, ""]).encode())
        for _ in range(dice.randint(1, 2)):
            at = dice.randrange(len(content))
            content[at : at + dice.randint(0, 2)] = dice.choice(odd)
        path.write_bytes(content)
        got = outcome(path, strict=False)
        assert got == outcome(path, strict=True), bytes(content)
        taken += not isinstance(got, str)
    assert 20 < taken < 180, "some damage leaves a readable file, some does not"


@pytest.mark.parametrize("name", ["r.run.gz", "r.run"])
def test_packed_runs_take_the_fast_road_and_leave_no_file_behind(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = tmp_path / "spool"
    spool.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(spool))
    plain, packed = tmp_path / "plain.run", tmp_path / name
    plain.write_text("\n".join(generated(5)) + "\n")
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    run = read_run(packed)
    assert isinstance(run.docs, SpanIds)
    assert list(spool.iterdir()) == []
    assert_same(run, trec.read_run(plain))


def test_packed_run_that_is_unusual_is_named_by_its_own_name(tmp_path: Path) -> None:
    path = tmp_path / "r.run.gz"
    path.write_bytes(gzip.compress(f"{PLAIN}q1 Q0 d2 2 best t\n".encode()))
    with pytest.raises(InputError) as caught:
        read_run(path)
    assert str(caught.value).startswith(f"{path}:2: field 'score': 'best'")


def test_file_name_is_no_pattern_and_folder_no_column(tmp_path: Path) -> None:
    (tmp_path / "run1.run").write_text("wrong Q0 d1 1 1 t\n")
    for path in (tmp_path / "run[1].run", tmp_path / "*.run", tmp_path / "s=3" / "r.run", tmp_path / "it's.run"):
        path.parent.mkdir(exist_ok=True)
        path.write_text("q1 Q0 d1 1 0.5 t\n")
        run = read_run(path)
        assert isinstance(run.docs, SpanIds), path
        assert list(run) == [("q1", "d1", 0.5)], path
        assert_keys_join(run)


def test_small_files_stay_with_the_strict_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r.run"
    path.write_text(PLAIN * 10)
    monkeypatch.setattr(ringtrue.formats, "BULK", len(PLAIN) * 10 + 1)
    assert not isinstance(read_run(path).docs, SpanIds)
    monkeypatch.setattr(ringtrue.formats, "BULK", len(PLAIN) * 10)
    assert isinstance(read_run(path).docs, SpanIds)


def test_keys_of_no_pairs(tmp_path: Path) -> None:
    path = tmp_path / "r.run"
    path.write_text(PLAIN)
    assert read_run(path).docs.keys_of([], []).tolist() == []


def test_ten_readings_are_identical_bit_for_bit(tmp_path: Path) -> None:
    # More than the 32 MiB that one DuckDB thread reads at a time, so that threads really race.
    filler = "x" * 180
    rng = np.random.default_rng(3)
    values = rng.integers(0, 5000, (180, 1000)) / 64
    path = tmp_path / "large.run"
    with path.open("w") as file:
        for query, scores in enumerate(values.tolist()):
            file.writelines(f"q{query} Q0 {filler}{(query * 31 + n) % 1500} {n} {s} t\n" for n, s in enumerate(scores))
    assert path.stat().st_size > 33 << 20
    qrels = Qrels.of((f"q{query}", f"{filler}{n}", n % 4) for query in range(180) for n in range(0, 1500, 50))
    seen = set()
    for _ in range(10):
        run = read_run(path)
        assert isinstance(run.docs, SpanIds)
        scores = score(run, qrels, MEASURES)
        keys = run.docs.pair_keys(run.query_ids, run.query).tobytes()
        aggregate = tuple(value.hex() for value in scores.aggregate.values())
        seen.add((run.query_ids, run.query.tobytes(), run.score.tobytes(), keys, scores.values.tobytes(), aggregate))
    assert len(seen) == 1
    assert run.score.tobytes() == values.tobytes()
    assert run.query_ids == tuple(f"q{query}" for query in range(180))
