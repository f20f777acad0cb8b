"""What other systems logged comes in (OpenTelemetry, OpenInference, UBI), and what was logged goes out."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ringtrue.errors import InputError
from ringtrue.log import Redactor, export_rows, import_files, log_figures, queries_of
from ringtrue.store import QUERY_LIST, FeedbackEvent, LoggedQuery, Store, timestamp

START = 1_772_366_400_000_000_000  # 2026-03-01T12:00:00Z
AT = "2026-03-01T12:00:00.000000Z"
OWN: dict[str, Any] = {"query_id": "q", "query": "x", "tool_name": "t", "created_at": AT}
CLICK: dict[str, Any] = {"event_id": "e", "event_type": "click", "session_id": "s", "created_at": AT}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "store.sqlite") as opened:
        yield opened


def lines(path: Path, *records: Any) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def attribute(key: str, value: Any) -> dict[str, Any]:
    kind = {str: "stringValue", bool: "boolValue", int: "intValue", float: "doubleValue"}[type(value)]
    return {"key": key, "value": {kind: str(value) if kind == "intValue" else value}}


def otlp(**changes: Any) -> dict[str, Any]:
    attributes = {
        "openinference.span.kind": "RETRIEVER", "input.value": "pool of ada@example.org", "session.id": "s1", "user.id": "u1",
        "retrieval.documents.0.document.id": "a", "retrieval.documents.0.document.score": 0.75,
        "retrieval.documents.1.document.id": 17, "retrieval.documents.1.document.score": 0.5,
        "retrieval.documents.1.document.content": "A long text.",
        "retrieval.documents.10.document.id": "z", "retrieval.documents.10.document.score": 0.25,
        "retrieval.documents.2.document.id": "c", "retrieval.documents.2.document.score": 0.25,
    }  # fmt: skip
    attributes |= changes.pop("attributes", {})
    return {
        "traceId": "5b8aa5a2d2c872e8321cf37308d69df2", "spanId": "051581bf3cb55c13", "name": "VectorStore.search",
        "startTimeUnixNano": str(START), "endTimeUnixNano": str(START + 25_000_000), "status": {},
        "attributes": [attribute(key, value) for key, value in attributes.items() if value is not None],
    } | changes  # fmt: skip


def export(*spans: dict[str, Any], service: str = "shop") -> dict[str, Any]:
    return {
        "resourceSpans": [{
            "resource": {"attributes": [attribute("service.name", service)]},
            "scopeSpans": [{"scope": {}, "spans": list(spans)}],
        }]
    }  # fmt: skip


def test_otlp_exports_become_queries_and_importing_again_adds_nothing(store: Store, tmp_path: Path) -> None:
    other = otlp(spanId="0000000000000001", attributes={"openinference.span.kind": "LLM"})
    file = lines(tmp_path / "traces.jsonl", export(otlp(), other), export(otlp(spanId="0000000000000002")))
    first = import_files(store, [file], cleaner=Redactor(), project="p")
    again = import_files(store, [file], cleaner=Redactor(), project="p")
    assert (first.queries, first.new_queries, dict(first.skipped)) == (2, 2, {"llm": 1})
    assert (again.queries, again.new_queries) == (2, 0)
    row = store.queries(project="p")[0]
    assert row.query_id.startswith("eq_20260301120000000000_")
    assert row.query == "pool of [email]"
    assert (row.result_ids, row.scores) == (("a", "17", "c", "z"), (0.75, 0.5, 0.25, 0.25))
    assert (row.session_id, row.user_id, row.tool_name, row.created_at) == ("s1", "u1", "shop", AT)
    assert (row.total_latency_ms, row.trace_id) == (25.0, "5b8aa5a2d2c872e8321cf37308d69df2")
    assert row.quality_proxy_score is not None


@pytest.mark.parametrize("nested", [True, False])
def test_spans_as_phoenix_and_the_console_exporter_write_them(store: Store, tmp_path: Path, nested: bool) -> None:
    documents = [{"document": {"id": "a", "score": 0.9}}, {"document": {"id": "b", "score": 0.1}}]
    attributes: dict[str, Any] = (
        {"openinference": {"span": {"kind": "RETRIEVER"}}, "input": {"value": "pool"}, "retrieval": {"documents": documents}}
        if nested
        else {
            "openinference.span.kind": "RETRIEVER", "input.value": "pool",
            **{
                f"retrieval.documents.{number}.document.{key}": value
                for number, one in enumerate(documents)
                for key, value in one["document"].items()
            },
        }
    )  # fmt: skip
    span = {
        "name": "retrieve", "context": {"trace_id": "0xabc", "span_id": "0xdef"}, "attributes": attributes,
        "start_time": "2026-03-01T12:00:00.000000Z", "end_time": "2026-03-01T12:00:00.012500Z",
        "status": {"status_code": "ERROR", "description": "half of the index"} if nested else {"status_code": "OK"},
    }  # fmt: skip
    import_files(store, [lines(tmp_path / "spans.jsonl", span)], cleaner=Redactor())
    (row,) = store.queries()
    assert (row.query, row.result_ids, row.scores, row.total_latency_ms) == ("pool", ("a", "b"), (0.9, 0.1), 12.5)
    assert row.trace_id == "abc"
    assert row.fallback == ("error: half of the index" if nested else None)


@pytest.mark.parametrize("structured", [True, False])
def test_spans_of_the_genai_conventions(store: Store, tmp_path: Path, structured: bool) -> None:
    documents = [{"id": "a", "score": 0.9}, {"id": "b", "score": 0.1}]
    span = {
        "name": "retrieval", "context": {"trace_id": "1", "span_id": "2"}, "start_time": AT, "end_time": AT,
        "attributes": {
            "gen_ai.operation.name": "retrieval", "gen_ai.retrieval.query.text": "pool",
            "gen_ai.retrieval.documents": documents if structured else json.dumps(documents),
        },
    }  # fmt: skip
    import_files(store, [lines(tmp_path / "spans.jsonl", span)], cleaner=Redactor())
    assert [(row.query, row.result_ids, row.scores) for row in store.queries()] == [("pool", ("a", "b"), (0.9, 0.1))]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"traceId": None}, r"spans\.jsonl:2: field 'traceId': it is missing"),
        ({"endTimeUnixNano": str(START - 5_000_000)}, r":2: field 'endTimeUnixNano': the span ends before it starts"),
        ({"endTimeUnixNano": str(10**30)}, r":2: field 'endTimeUnixNano': it is '1000.*; write a time like"),
        ({"startTimeUnixNano": None, "start_time": "0001-01-01T00:00:00+14:00"}, r":2: field 'start_time': it is '0001"),
        ({"startTimeUnixNano": "noon"}, r":2: field 'startTimeUnixNano': it is 'noon'; write a time like"),
        ({"attributes": {"input.value": None}}, r":2: field 'attributes.input.value': the retriever span has no query"),
        ({"attributes": {"retrieval.documents.0.document.id": None}}, r"documents\.0\.document\.id': it is missing"),
        ({"attributes": {"retrieval.documents.0.document.score": "high"}}, r"document\.score': it is 'high'; write a number"),
    ],
)
def test_a_wrong_span_is_named_with_line_and_field_and_nothing_is_written(
    store: Store, tmp_path: Path, change: dict[str, Any], says: str
) -> None:
    file = lines(tmp_path / "spans.jsonl", otlp(), otlp(spanId="2", **change))
    with pytest.raises(InputError, match=says):
        import_files(store, [file], cleaner=Redactor())
    assert store.queries() == []


QUERY = {
    "application": "chorus", "query_id": "7ae52966", "client_id": "c1", "user_query": "laptop", "query_response_id": "r1",
    "query_response_hit_ids": ["12", "7", "3"], "timestamp": "2026-03-01T12:00:00Z", "query_attributes": {},
}  # fmt: skip
EVENT = {
    "application": "chorus", "action_name": "add_to_cart", "query_id": "7ae52966", "client_id": "c1", "session_id": "s9",
    "timestamp": "2026-03-01T12:00:09Z", "message_type": "CONVERSION",
    "event_attributes": {"object": {"object_id": "7", "object_id_field": "sku"}, "position": {"ordinal": 2}},
}  # fmt: skip


def test_ubi_queries_and_events_come_in_joined_and_once(store: Store, tmp_path: Path) -> None:
    queries = lines(
        tmp_path / "ubi_queries.jsonl", QUERY, {"_index": "ubi_queries", "_id": "x", "_source": QUERY | {"query_id": "8"}}
    )
    events = lines(
        tmp_path / "ubi_events.jsonl", EVENT, {"_id": "e1", "_source": EVENT}, {"_id": "e2", "_source": EVENT},
        EVENT | {"action_name": "product_hover"}, EVENT | {"action_name": "sample_order", "timestamp": 1_772_366_409_500},
    )  # fmt: skip
    actions: Any = {"add_to_cart": "selection", "sample_order": "selection"}
    found = import_files(store, [queries, events], cleaner=Redactor(), actions=actions)
    assert (found.queries, found.feedback, dict(found.skipped)) == (2, 4, {"product_hover": 1})
    again = import_files(store, [queries, events], cleaner=Redactor(), actions=actions)
    assert (again.new_queries, again.new_feedback) == (0, 0)
    row = store.queries(query_ids=["7ae52966"])[0]
    assert (row.query, row.result_ids, row.tool_name, row.user_id) == ("laptop", ("12", "7", "3"), "chorus", "c1")
    event = store.feedback()[0]
    assert (event.event_type, event.query_id, event.item_id, event.rank_in_results) == ("selection", "7ae52966", "7", 2)
    assert (event.session_id, event.actor, event.metadata) == ("s9", "person", {"action": "add_to_cart"})
    assert len(store.feedback()) == 4


def test_the_time_of_a_ubi_dwell_counts_as_seconds_and_that_of_a_click_does_not(store: Store, tmp_path: Path) -> None:
    from ringtrue.feedback import derive_judgments

    def event(action: str, item: str, rank: int, **stayed: Any) -> dict[str, Any]:
        attributes = {"object": {"object_id": item}, "position": {"ordinal": rank}, **stayed}
        return EVENT | {"action_name": action, "event_attributes": attributes}

    events = (
        event("dwell", "12", 1, dwell_time=41.5), event("watch", "7", 2, dwell_seconds=12),
        event("click", "3", 3, dwell_time=90), event("click", "3", 3, dwell_time="soon"),
    )  # fmt: skip
    import_files(store, [lines(tmp_path / "q.jsonl", QUERY), lines(tmp_path / "e.jsonl", *events)], cleaner=Redactor())
    kept = sorted((one.event_type, one.item_id, tuple(one.metadata.items())[1:]) for one in store.feedback())
    assert kept == [
        ("click", "3", ()), ("click", "3", (("dwell_time", 90),)), ("dwell", "12", (("seconds", 41.5),)),
        ("dwell", "7", (("seconds", 12),)),
    ]  # fmt: skip
    found = derive_judgments(store.queries(), store.feedback(), now="2026-03-02T00:00:00Z")
    assert {one.item_id for one in found.judgments if one.relevance >= 2} == {"12", "3"}  # 12 s are not a satisfied visit


@pytest.mark.parametrize(
    ("record", "says"),
    [
        (
            EVENT | {"action_name": "dwell", "event_attributes": {"dwell_time": -1}},
            r"field 'event_attributes.dwell_time': it is -1; write seconds from 0",
        ),
        (QUERY | {"query_id": None}, r":1: field 'query_id': it is missing; write a text"),
        (QUERY | {"timestamp": "noon"}, r"field 'timestamp': it is 'noon'; write a time like"),
        (QUERY | {"query_response_hit_ids": "12"}, r"field 'query_response_hit_ids': it is '12'; write a list"),
        (EVENT | {"event_attributes": {"position": {"ordinal": 0}}}, r"field 'event_attributes.position.ordinal': it is 0"),
        (EVENT | {"event_attributes": {"object": "7"}}, r"field 'event_attributes.object': it is '7'"),
        (EVENT | {"client_id": None, "session_id": None}, r"field 'client_id': the event has neither"),
    ],
)
def test_a_wrong_ubi_line_is_named_with_line_and_field(store: Store, tmp_path: Path, record: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        import_files(store, [lines(tmp_path / "ubi.jsonl", record)], cleaner=Redactor())


def test_a_line_of_no_known_kind_is_refused(store: Store, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a span, a UBI record, a query or a Ringtrue record"):
        import_files(store, [lines(tmp_path / "x.jsonl", {"a": 1, "b": 2})], cleaner=Redactor())


def rows(count: int = 5) -> list[LoggedQuery]:
    return [
        LoggedQuery(
            f"eq_{number}", 'a "quoted", pool\n', "shop", f"2026-03-01T12:00:0{number}.000000Z", session_id="s",
            result_ids=("a", "b"), scores=(1.0, 0.5), channel_contributions={"bm25": ("a",)},
            total_latency_ms=1.5 if number else None, flags={"x": [1]},
        )
        for number in range(count)
    ]  # fmt: skip


def test_what_is_exported_as_lines_comes_in_again_as_it_was(store: Store, tmp_path: Path) -> None:
    events = [FeedbackEvent("ef_1", "click", "s", AT, query_id="eq_1", item_id="a", rank_in_results=1, metadata={"x": 1})]
    assert export_rows(rows(), tmp_path / "out" / "queries.jsonl") == 5
    assert export_rows(events, tmp_path / "feedback.jsonl") == 1
    found = import_files(store, [tmp_path / "out" / "queries.jsonl", tmp_path / "feedback.jsonl"], cleaner=Redactor(kinds=()))
    assert (found.new_queries, found.new_feedback) == (5, 1)
    assert list(queries_of(store)) == rows()
    assert store.feedback() == events


def test_export_to_csv_and_parquet(tmp_path: Path) -> None:
    import duckdb

    export_rows(rows(), tmp_path / "q.csv")
    with (tmp_path / "q.csv").open(encoding="utf-8", newline="") as file:
        read = list(csv.DictReader(file))
    assert [row["query_id"] for row in read] == [f"eq_{number}" for number in range(5)]
    assert read[0]["query"] == 'a "quoted", pool\n'
    assert json.loads(read[0]["result_ids"]) == ["a", "b"]
    export_rows(rows(), tmp_path / "q's.parquet")
    found = duckdb.connect().execute(
        "SELECT query_id, total_latency_ms, result_count, degraded, json(flags) FROM read_parquet(?)",
        [str(tmp_path / "q's.parquet")],
    ).fetchall()  # fmt: skip
    assert found[0] == ("eq_0", None, 2, False, '{"x":[1]}')
    assert found[1][1] == 1.5
    assert export_rows([], tmp_path / "none.csv") == 0
    with pytest.raises(InputError, match="end the name with"):
        export_rows(rows(), tmp_path / "q.xlsx")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"query_id": "q", "query": "x", "tool_name": "t"}, "field 'created_at': it is missing"),
        ({"query_id": "q", "query": 7, "tool_name": "t", "created_at": AT}, "field 'query': it is 7; write a text"),
        ({"query_id": "q", "query": "x", "tool_name": "t", "created_at": "noon"}, "field 'created_at': it is 'noon'"),
        ({"query_id": "q", "query": "x", "tool_nmae": "t", "created_at": AT}, "field 'tool_nmae': a query has no such field"),
        (
            {"query_id": "q", "query": "x", "tool_name": "t", "created_at": AT, "scores": [None]},
            r"field 'scores\[0\]': it is None; write a number",
        ),
        ({"event_id": "e", "event_type": "hop", "session_id": "s", "created_at": AT}, "field 'event_type': it is 'hop'"),
        ({"record": "song", "query_id": "q"}, "field 'record': there is no record 'song'"),
        (OWN | {"extraction_count": 2**31}, "field 'extraction_count': it is 2147483648; write a whole number from 0 to"),
        (OWN | {"extraction_count": 2**70}, "field 'extraction_count': it is 1180591620717411303424; write"),
        (OWN | {"total_latency_ms": -5}, "field 'total_latency_ms': it is -5.0; write milliseconds from 0"),
        (OWN | {"total_latency_ms": 10**400}, "field 'total_latency_ms': it is 10000"),
        (OWN | {"scores": [10**400]}, r"field 'scores\[0\]': it is 1000.*; write a number"),
        (OWN | {"stage_latency_ms": {"a": "fast"}}, "field 'stage_latency_ms.a': it is 'fast'; write a number"),
        (OWN | {"channel_contributions": {"a": 7}}, "field 'channel_contributions.a': it is 7; write a list"),
        (OWN | {"stages": [{"name": "a", "input": "x", "output": 1, "ms": 1}]}, r"field 'stages\[0\].input': it is 'x'"),
        (OWN | {"created_at": "9999-12-31T23:59:59-14:00"}, "field 'created_at': it is '9999-12-31T23:59:59-14:00'"),
        (OWN | {"created_at": "0001-01-01T00:00:00+14:00"}, "field 'created_at': it is '0001-01-01T00:00:00\\+14:00'"),
        (CLICK | {"rank_in_results": -7}, "field 'rank_in_results': it is -7; write a rank from 1 on, or -1"),
        (CLICK | {"rank_in_results": 0}, "field 'rank_in_results': it is 0; write a rank from 1 on, or -1"),
        (CLICK | {"rank_in_results": 2**31}, "field 'rank_in_results': it is 2147483648"),
    ],
)
def test_a_wrong_line_of_our_own_is_named_with_line_and_field(store: Store, tmp_path: Path, data: Any, says: str) -> None:
    with pytest.raises(InputError, match=rf"own\.jsonl:1: {says}"):
        import_files(store, [lines(tmp_path / "own.jsonl", data)], cleaner=Redactor())


@pytest.mark.parametrize("number", [str(2**70), "1" + 5000 * "0", "-1"], ids=["large", "endless", "negative"])
def test_the_command_says_where_a_value_stands_that_no_database_holds(
    ringtrue: Callable[..., Any], tmp_path: Path, number: str
) -> None:
    file = tmp_path / "own.jsonl"
    file.write_text(json.dumps(OWN)[:-1] + f', "extraction_count": {number}}}\n', encoding="utf-8")
    done = ringtrue("log", "import", file, f"--store={tmp_path / 'log.sqlite'}")
    assert done.code == 2
    assert "own.jsonl:1" in done.err
    assert "internal" not in done.err


# ── the command ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_command_imports_shows_counts_and_exports(ringtrue: Callable[..., Any], tmp_path: Path) -> None:
    place = f"--store={tmp_path / 'log.sqlite'}"
    file = lines(
        tmp_path / "traces.jsonl", export(otlp(), otlp(spanId="2", attributes={"retrieval.documents.0.document.id": "b"}))
    )
    assert ringtrue("log", "tail", place).code == 2
    done = ringtrue("log", "import", file, place)
    assert (done.code, done.out) == (0, "2 new searches of 2, 0 new events of 0\n")
    assert ringtrue("log", "import", file, place, "--json").json["new_queries"] == 0
    shown = ringtrue("log", "tail", place, "-n", "1")
    assert "pool of [email]" in shown.out
    assert len(ringtrue("log", "tail", place, "--json").json["searches"]) == 2
    told = ringtrue("log", "stats", place, "--since", "2026-03-01", "--until", "2026-03-02", "--json").json
    assert told["total"]["searches"] == 2
    assert told["total"]["latency_ms"] == {"p50": 25.0, "p95": 25.0, "p99": 25.0}
    assert told["total"]["zero_result_rate"] == 0.0
    assert told["missing"] == {"lost": 0, "dropped": 0, "refused": 0, "reasons": {}}
    assert "missing from the log: 0" in ringtrue("log", "stats", place, "--since", "2026-03-01").out
    assert ringtrue("log", "export", tmp_path / "out.parquet", place, "--json").json["rows"] == 2
    assert ringtrue("log", "prune", place, "--dry-run", "--json").code == 0


def test_one_search_is_counted_in_the_singular(ringtrue: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "one.txt"
    file.write_text("late checkout\n", encoding="utf-8")
    done = ringtrue("log", "import", file, f"--store={tmp_path / 'log.sqlite'}")
    assert done.out == "1 new search of 1, 0 new events of 0\n"


def test_stats_name_their_time_and_the_searches_outside_it(ringtrue: Callable[..., Any], tmp_path: Path) -> None:
    now, place = datetime.now(UTC), f"--store={tmp_path / 'log.sqlite'}"
    with Store.open(tmp_path / "log.sqlite") as store:
        days = {"q1": ("shop", 1), "q2": ("shop", 40), "q3": ("web", 41)}
        store.add_queries(
            [LoggedQuery(key, "pool", tool, timestamp(now - timedelta(days=n))) for key, (tool, n) in days.items()]
        )
    assert "last 7 days: 1 of 3 searches; --since takes a longer time\n" in ringtrue("log", "stats", place).out
    assert "last 7 days: 1 of 2 searches;" in ringtrue("log", "stats", place, "--tool", "shop").out
    assert "last 60 days: 3 of 3 searches\n" in ringtrue("log", "stats", place, "--since", "60d").out
    ends = ("--since", "2026-03-01", "--until", "2026-03-02T12:00Z")
    assert "from 2026-03-01 00:00 to 2026-03-02 12:00 UTC: 0 of 3 searches;" in ringtrue("log", "stats", place, *ends).out


def test_stats_of_nothing_are_unknown_not_zero(ringtrue: Callable[..., Any], tmp_path: Path) -> None:
    with Store.open(tmp_path / "log.sqlite"):
        pass
    told = ringtrue("log", "stats", f"--store={tmp_path / 'log.sqlite'}", "--json").json
    assert (told["total"]["searches"], told["total"]["zero_result_rate"], told["total"]["proxy"]) == (0, None, None)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["log", "stats", "--since", "yesterday"], "cannot read the time 'yesterday'"),
        (["log", "import", "x.jsonl", "--from", "span"], "did you mean 'spans'"),
        (["log", "import", "x.jsonl", "--action", "hop"], "write ACTION=KIND"),
        (["log", "import", "nowhere.jsonl"], "nowhere.jsonl"),
        (["log", "export", "x.jsonl", "--what", "querys"], "did you mean 'queries'"),
    ],
)
def test_wrong_input_ends_with_2_and_one_line(
    ringtrue: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], says: str
) -> None:
    monkeypatch.setenv("RINGTRUE_STORE", str(tmp_path / "log.sqlite"))
    monkeypatch.chdir(tmp_path)
    outcome = ringtrue(*arguments)
    assert outcome.code == 2
    assert says in outcome.err
    assert len(outcome.err.splitlines()) == 1


LISTS = {
    "list.csv": 'query,count,time\nlate checkout,2,2026-03-01T12:00:00Z\n"pool, indoors",1,2026-03-02\n',
    "semicolons.csv": "query;count;time\nlate checkout;2;2026-03-01T12:00:00Z\npool, indoors;;2026-03-02\n".replace(
        ";;", ";1;"
    ),
    "list.jsonl": '{"query": "late checkout", "count": 2, "time": "2026-03-01T12:00:00Z"}\n'
    '{"query": "pool, indoors", "time": "2026-03-02"}\n',
    "list.json": '[{"query": "late checkout", "count": 2, "time": "2026-03-01T12:00:00Z"},\n'
    ' {"query": "pool, indoors", "time": "2026-03-02"}]\n',
}


@pytest.mark.parametrize("name", LISTS)
def test_a_plain_list_of_queries_becomes_searches_once(store: Store, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(LISTS[name], encoding="utf-8")
    first = import_files(store, [path], cleaner=Redactor(), project="p")
    again = import_files(store, [path], cleaner=Redactor(), project="p")
    assert (first.new_queries, again.queries, again.new_queries, first.notes) == (3, 3, 0, ())
    found = [(row.query, row.created_at, row.tool_name) for row in store.queries(project="p")]
    assert found == [("late checkout", AT, QUERY_LIST)] * 2 + [("pool, indoors", "2026-03-02T00:00:00.000000Z", QUERY_LIST)]


def test_lines_of_text_are_queries_and_the_import_gives_them_its_time(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "asked.txt"
    path.write_text("late checkout\n\nbill of ada@example.org\nlate checkout\n", encoding="utf-8")
    found = import_files(store, [path], cleaner=Redactor(), now=datetime(2026, 3, 1, 12, tzinfo=UTC))
    assert found.notes == ("3 searches have no time in the file; the time of the import is used",)
    rows = store.queries()
    assert sorted(row.query for row in rows) == ["bill of [email]", "late checkout", "late checkout"]
    assert {row.created_at for row in rows} == {AT}
    later = import_files(store, [path], cleaner=Redactor(), now=datetime(2026, 4, 1, tzinfo=UTC))
    assert later.new_queries == 0
    path.write_text("late checkout\n", encoding="utf-8")
    assert import_files(store, [path], cleaner=Redactor()).new_queries == 1, "another list without times is another one"


def test_columns_of_a_list_have_names_and_those_not_used_are_said(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "top.csv"
    path.write_text("term,hits,country\npool,3,AT\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"top\.csv:2: there is no column 'query'; .* --columns query=NAME"):
        import_files(store, [path], cleaner=Redactor())
    found = import_files(store, [path], cleaner=Redactor(), columns={"query": "term", "count": "hits"})
    assert (found.new_queries, found.notes[0]) == (3, "ignored columns: country")
    assert not any("clicks" in note for note in found.notes)
    path.write_text("query,session,results,clicked\npool,s1,a b,b\n", encoding="utf-8")
    assert "a click event_id, event_type" in import_files(store, [path], cleaner=Redactor()).notes[1]


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("pool,many,", r":3: field 'count': 'many' is not a count"),
        ("pool,0,", r":3: field 'count': 0 is not a count"),
        ("pool,1,noon", r":3: field 'time': it is 'noon'; write a time"),
        (",1,", r":3: field 'query': '' is not a query"),
        ("pool,999999999,", r":2: the list counts 1,000,000,001 searches; leave out the counts, or import parts of at most"),
    ],
)
def test_a_wrong_row_of_a_list_is_named_and_nothing_is_written(store: Store, tmp_path: Path, row: str, says: str) -> None:
    path = tmp_path / "list.csv"
    path.write_text(f"query,count,time\nsauna,2,2026-03-01\n{row}\n", encoding="utf-8")
    with pytest.raises(InputError, match=says):
        import_files(store, [path], cleaner=Redactor())
    assert store.queries() == []


@pytest.mark.parametrize("time", ["1772366400", "1772366400.0", "1772366400000", "2026-03-01T13:00:00+01:00"])
def test_the_time_of_a_listed_query_may_be_counted_since_1970(store: Store, tmp_path: Path, time: str) -> None:
    path = tmp_path / "list.csv"
    path.write_text(f"query,time\nsauna,{time}\n", encoding="utf-8")
    import_files(store, [path], cleaner=Redactor())
    assert [row.created_at for row in store.queries()] == ["2026-03-01T12:00:00.000000Z"]


def test_a_day_written_as_digits_is_a_day(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "list.csv"
    path.write_text("query,time\nsauna,20260301\n", encoding="utf-8")
    import_files(store, [path], cleaner=Redactor())
    assert [row.created_at for row in store.queries()] == ["2026-03-01T00:00:00.000000Z"]


def test_searches_of_a_plain_list_are_no_empty_answers(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "asked.txt"
    path.write_text("late checkout\npool\n", encoding="utf-8")
    import_files(store, [path], cleaner=Redactor(), now=datetime(2026, 3, 1, 12, tzinfo=UTC))
    store.add_queries([LoggedQuery("q1", "sauna", "shop", AT), LoggedQuery("q2", "pool", "shop", AT, result_ids=("a",))])
    figures = log_figures(store.queries())
    assert (figures.total.searches, figures.total.zero_result_rate) == (4, 0.5)
    (bucket,) = store.log_volume(since="2026-03-01", until="2026-03-02", step="day")
    assert (bucket.searches, bucket.empty) == (4, 1)
    assert [row.query_id for row in store.queries(trouble=True)] == ["q1"]


SPANS = [
    {
        "name": "search", "kind": "SpanKind.INTERNAL", "parent_id": None, "events": [], "links": [],
        "context": {"trace_id": "0xaa", "span_id": f"0xb{number}", "trace_state": "[]"},
        "start_time": "2026-03-01T12:00:00.000000Z", "end_time": "2026-03-01T12:00:00.012500Z",
        "status": {"status_code": "UNSET"},
        "attributes": {
            "openinference.span.kind": "RETRIEVER", "input.value": "pool", "retrieval.documents.0.document.id": number,
        },
    }
    for number in (1, 2)
]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    ["\n".join(json.dumps(span, indent=4) for span in SPANS), json.dumps(SPANS, indent=4), json.dumps(SPANS)],
    ids=["the console exporter", "an indented list", "a list on one line"],
)
def test_spans_over_several_lines_and_lists_of_spans_are_imported(store: Store, tmp_path: Path, text: str) -> None:
    path = tmp_path / "spans.txt.json"
    path.write_text(text, encoding="utf-8")
    assert import_files(store, [path], cleaner=Redactor()).new_queries == 2
    assert sorted(row.result_ids for row in store.queries()) == [("1",), ("2",)]


def test_a_span_over_several_lines_that_is_wrong_is_named_by_its_first_line(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "console.json"
    path.write_text(
        json.dumps(SPANS[0], indent=1) + "\n" + json.dumps(SPANS[1] | {"attributes": 7}, indent=1), encoding="utf-8"
    )
    line = json.dumps(SPANS[0], indent=1).count("\n") + 2
    with pytest.raises(InputError, match=rf"console\.json:{line}: field 'attributes': it is 7"):
        import_files(store, [path], cleaner=Redactor())
