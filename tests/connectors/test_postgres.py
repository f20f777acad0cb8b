"""PostgreSQL full text search and pgvector against a real server."""

from __future__ import annotations

import datetime
import pickle
import socket
import ssl
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from connectors.conftest import PostgresServer
from connectors.faults import LOOPBACK, PROMPT, Proxy, free_port, halfway, proxy, silent
from ringtrue.errors import AccessDenied, BadAnswer, InputError, MissingInput, TimedOut, Unreachable
from ringtrue.extras import install_command
from ringtrue.retrieve import build
from ringtrue.retrieve.connectors import connect
from ringtrue.retrieve.connectors.postgres import Pgvector, Postgres
from ringtrue.retrieve.encode import encoder
from ringtrue.testing.retrievers import ConnectorSuite, raises

psycopg = pytest.importorskip("psycopg", reason="PostgreSQL IS NOT TESTED: pip install 'psycopg[binary]'")

READER, PASSWORD = "quiet_reader", "geheim-7731"
DSN = "RINGTRUE_TEST_POSTGRES"
HOTELS = (
    ("h1", "Lakeside", "A quiet house with a heated pool and a spa.", "Bern", 4),
    ("h2", "Pool Palace", "Rooms with a view of the garden.", "Bern", 3),
    ("h3", "City Inn", "The pool on the roof is open all year. The pool bar is too.", "Basel", 3),
    ("h4", "Mountain Hut", "Wood stove, sauna, no television.", "Zermatt", 2),
    ("h5", "O'Neill's \\ Rest", "Menu under /usr/local/menu and C:\\temp.", "Basel", 5),
    ("h6", "Garden House", "A garden pool, shared with the neighbours.", "Basel", 2),
)
PASSAGES = (
    ("h1", "h1-a", "pool pool pool"),
    ("h1", "h1-b", "the pool is a heated pool"),
    ("h1", "h1-c", "a pool and a spa"),
    ("h3", "h3-a", "a pool on the roof"),
    ("h6", "h6-a", "the garden has a pool among many other things"),
)


@pytest.fixture(scope="session")
def server(postgres: PostgresServer) -> PostgresServer:
    """The server with hotels, their passages and their vectors, and a user who may read most of them."""
    model = encoder()
    vectors = model.encode([f"{name}. {text}" for _, name, text, _, _ in HOTELS])
    with psycopg.connect(postgres.dsn()) as admin:
        admin.execute("CREATE EXTENSION vector")
        admin.execute("CREATE SCHEMA shop")
        admin.execute(
            f"""CREATE TABLE shop.hotels (code text PRIMARY KEY, "Name" text, body text, city text, stars int, facts jsonb,
                embedding vector({model.size}), half halfvec({model.size}),
                search tsvector GENERATED ALWAYS AS (setweight(to_tsvector('english', "Name"), 'A')
                    || setweight(to_tsvector('english', body), 'B')) STORED)"""
        )
        for (code, name, body, city, stars), vector in zip(HOTELS, vectors, strict=True):
            admin.execute(
                'INSERT INTO shop.hotels (code, "Name", body, city, stars, facts, embedding, half)'
                " VALUES (%s, %s, %s, %s, %s, jsonb_build_object('city', %s::text, 'stars', %s::int), %s, %s)",
                [code, name, body, city, stars, city, stars, str(vector.tolist()), str(vector.tolist())],
            )
        admin.execute("CREATE INDEX ON shop.hotels USING gin (search)")
        admin.execute("CREATE TABLE shop.passages (hotel text, passage text PRIMARY KEY, body text, embedding vector)")
        for (hotel, passage, body), vector in zip(PASSAGES, model.encode([body for *_, body in PASSAGES]), strict=True):
            admin.execute("INSERT INTO shop.passages VALUES (%s, %s, %s, %s)", [hotel, passage, body, str(vector.tolist())])
        admin.execute("CREATE TABLE shop.flat (code text, place vector(2))")
        admin.execute("INSERT INTO shop.flat VALUES ('zero', '[0,0]'), ('none', NULL), ('some', '[1,2]')")
        admin.execute("CREATE PROCEDURE shop.nothing(text, int) LANGUAGE sql AS ''")
        admin.execute("CREATE TABLE shop.private (id text, body text)")
        admin.execute(f"CREATE ROLE {READER} LOGIN PASSWORD '{PASSWORD}'")
        admin.execute(f"GRANT USAGE ON SCHEMA shop TO {READER}")
        admin.execute(f"GRANT SELECT ON shop.hotels, shop.passages, shop.flat TO {READER}")
    return postgres


@pytest.fixture(autouse=True)
def _address(server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DSN, server.dsn(user=READER, password=PASSWORD))
    monkeypatch.setenv("RINGTRUE_TEST_PASSWORD", PASSWORD)


def words(**settings: Any) -> Postgres:
    """Return the full text search of the hotels, with other settings where given."""
    usual: dict[str, Any] = {"dsn_env": DSN, "table": "shop.hotels", "id": "code", "retries": 0}
    if not {"vector", "columns", "sql"} & set(settings):
        usual["vector"] = "search"
    if "sql" in settings:
        del usual["table"]
    return Postgres(**(usual | settings))


def vectors(**settings: Any) -> Pgvector:
    """Return the vector search of the hotels, with other settings where given."""
    usual: dict[str, Any] = {"dsn_env": DSN, "table": "shop.hotels", "id": "code", "retries": 0}
    if "sql" in settings:
        del usual["table"]
    return Pgvector(**(usual | settings))


def ids(connector: Any, text: str = "pool", **options: Any) -> list[str]:
    return [hit.doc_id for hit in connector.search(text, **options)]


def open_again_after_a_failure(between: Proxy) -> None:
    """Cut the proxy, and restore it once somebody has met the cut."""
    between.cut()
    before = between.connections

    def restore() -> None:
        while between.connections == before:
            time.sleep(0.01)
        between.restore()

    threading.Thread(target=restore, daemon=True).start()


class _Faults(ConnectorSuite):
    """The faults of a PostgreSQL server, made with a real one."""

    SECRETS: ClassVar[tuple[str, ...]] = (PASSWORD, LOOPBACK, READER, "dbname")
    SLEEPS: ClassVar[str]
    NO_IDS: ClassVar[str]
    kind: Any
    """``words`` or ``vectors``."""

    @pytest.fixture(autouse=True)
    def _server(self, server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        self.server, self.patch = server, monkeypatch
        with ExitStack() as self.stack:
            yield

    def _at(self, port: int, **settings: Any) -> Any:
        self.patch.setenv(DSN, self.server.dsn(user=READER, password=PASSWORD, port=port))
        return type(self).kind(**settings)

    def make(self) -> Any:
        return type(self).kind()

    def wrong_credentials(self) -> Any:
        self.patch.setenv(DSN, self.server.dsn(user=READER, password="wrong"))
        return type(self).kind()

    def nobody_there(self) -> Any:
        return self._at(free_port())

    def gone_mid_query(self) -> Any:
        between = self.stack.enter_context(proxy(self.server.port))
        connector = self._at(between.port)
        assert connector.search("pool")
        between.cut_answer_after(40)
        return connector

    def too_slow(self) -> Any:
        return type(self).kind(sql=self.SLEEPS, timeout=0.3)

    def malformed(self) -> Any:
        return type(self).kind(sql=self.NO_IDS)

    def twice(self) -> Any:
        return type(self).kind(table="shop.passages", id="hotel", **self.PASSAGES)

    PASSAGES: ClassVar[dict[str, Any]]

    def fails_once(self) -> Any:
        between = self.stack.enter_context(proxy(self.server.port))
        open_again_after_a_failure(between)
        return self._at(between.port, retries=2)


class TestPostgres(_Faults):
    kind = staticmethod(words)
    SLEEPS = "SELECT 'a' AS id, 1 AS score FROM pg_sleep(5) WHERE %(text)s::text <> '' LIMIT %(k)s"
    NO_IDS = "SELECT %(text)s::text AS words LIMIT %(k)s"
    PASSAGES: ClassVar[dict[str, Any]] = {"columns": ["body"]}

    def few(self) -> Any:
        return self.make(), "sauna", 1


class TestPgvector(_Faults):
    kind = staticmethod(vectors)
    SLEEPS = "SELECT 'a' AS id, 1 AS score FROM pg_sleep(5) WHERE %(vector)s::text <> '' LIMIT %(k)s"
    NO_IDS = "SELECT %(vector)s::text AS words LIMIT %(k)s"
    PASSAGES: ClassVar[dict[str, Any]] = {}

    def few(self) -> Any:
        return self.make(), "pool", len(HOTELS)


# Full text


def test_one_word_of_the_question_is_enough_and_stems_count() -> None:
    assert set(ids(words(), "unheard-of pools")) == {"h1", "h2", "h3", "h6"}


def test_match_all_wants_every_word() -> None:
    assert ids(words(match="all"), "pool spa") == ["h1"]
    assert ids(words(match="all"), "pool unheard") == []


@pytest.mark.parametrize("text", ["!pool", "pool & !spa", "-pool spa", "pool <-> spa", "pool:* | spa", "'pool' \\spa"])
def test_no_operator_of_the_question_acts(text: str) -> None:
    asked = [word for word in ("pool", "spa") if word in text]
    assert ids(words(), text) == ids(words(), " ".join(asked))


@pytest.mark.parametrize("text", ["/usr/local/menu", "O'Neill's", "C:\\temp \\' \\\\", "'; DROP TABLE shop.hotels; --' rest"])
def test_quotes_and_backslashes_are_only_text(text: str) -> None:
    assert ids(words(language="simple", columns=["Name", "body"]), text)[0] == "h5"


def test_a_question_of_stop_words_finds_nothing() -> None:
    assert ids(words(), "the and of") == []


def test_weights_of_columns_decide() -> None:
    searched = ["Name", "body"]
    assert ids(words(columns=searched, weights={"Name": 10}))[0] == "h2"
    assert ids(words(columns=searched, weights={"Name": 0.01}))[0] == "h3"


def test_weights_of_a_tsvector_column_are_those_of_its_classes() -> None:
    assert ids(words(weights={"A": 1, "B": 0.01}))[0] == "h2"
    assert ids(words(weights={"A": 0.01, "B": 5}))[0] == "h3"


def test_scores_are_those_of_postgres(server: PostgresServer) -> None:
    with psycopg.connect(server.dsn()) as admin:
        wanted = dict(
            admin.execute("SELECT code, ts_rank_cd(search, 'pool') FROM shop.hotels WHERE search @@ 'pool'").fetchall()
        )
    assert {hit.doc_id: hit.score for hit in words().search("pool")} == pytest.approx(wanted)


def test_ts_rank_and_normalization_change_the_scores() -> None:
    plain, ranked, shortened = (
        words().search("pool"),
        words(rank="ts_rank").search("pool"),
        words(normalization=2).search("pool"),
    )
    assert len({round(hits[0].score, 6) for hits in (plain, ranked, shortened)}) == 3


def test_ties_go_by_document_id_descending() -> None:
    tied = words(columns=["body"], sql=None, table="shop.hotels", id="code", weights={}, rank="ts_rank_cd")
    scores = {hit.doc_id: hit.score for hit in tied.search("garden")}
    assert scores["h6"] == scores["h2"]
    assert list(scores) == ["h6", "h2"]


def test_passages_collapse_to_the_best_of_each_document() -> None:
    connector = words(table="shop.passages", id="hotel", chunk="passage", columns=["body"])
    hits = connector.search("pool", k=3)
    assert {hit.doc_id for hit in hits} == {"h1", "h3", "h6"}, "three passages of h1 took the places of other documents"
    assert (hits[0].doc_id, hits[0].chunk) == ("h1", "h1-a")


# Vectors


@pytest.mark.parametrize("column", ["embedding", "half"])
def test_scores_are_the_cosine(column: str) -> None:
    found = {hit.doc_id: hit.score for hit in vectors(vector=column).search("somewhere to swim")}
    rows = encoder().encode([f"{name}. {text}" for _, name, text, _, _ in HOTELS])
    asked = encoder().encode(["somewhere to swim"])[0]
    wanted = dict(zip([code for code, *_ in HOTELS], (rows @ asked).tolist(), strict=True))
    assert found == pytest.approx(wanted, abs=1e-3)
    assert next(iter(found)) == max(wanted, key=lambda code: wanted[code])


def test_every_metric_is_higher_for_the_better() -> None:
    cosine, distance, product = (vectors(metric=metric).search("a swim", k=6) for metric in ("cosine", "l2", "inner_product"))
    assert [hit.doc_id for hit in cosine] == [hit.doc_id for hit in distance] == [hit.doc_id for hit in product]
    assert [hit.score for hit in product] == pytest.approx([hit.score for hit in cosine], abs=1e-5)
    # For vectors of length 1 the squared distance is 2 - 2 cos.
    expected = -np.sqrt(2 - 2 * np.array([hit.score for hit in cosine]))
    assert [hit.score for hit in distance] == pytest.approx(expected.tolist(), abs=1e-4)


def test_passages_with_vectors_collapse_too() -> None:
    hits = vectors(table="shop.passages", id="hotel", chunk="passage").search("a heated pool", k=3)
    assert {hit.doc_id for hit in hits} == {"h1", "h3", "h6"}
    assert hits[0].chunk == "h1-b"


def test_rows_without_a_direction_are_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    class Two:
        def encode(self, texts: list[str], *, query: bool) -> Any:
            return np.array([[0.6, 0.8]], np.float32)

    monkeypatch.setattr("ringtrue.retrieve.connectors.writing.encoder", lambda name: Two())
    assert ids(vectors(table="shop.flat", vector="place")) == ["some"]


def test_exact_search_never_takes_an_approximate_index(server: PostgresServer) -> None:
    with psycopg.connect(server.dsn()) as admin:
        admin.execute("CREATE INDEX near ON shop.hotels USING hnsw (embedding vector_cosine_ops)")
    try:
        # An index that may look at one candidate only brings one hit, which shows who answered.
        narrow = {"hnsw.ef_search": 1, "enable_seqscan": "off", "enable_sort": "off"}
        assert len(ids(vectors(session=narrow, exact=False), k=5)) == 1
        assert len(ids(vectors(session=narrow), k=5)) == 5
        assert ids(vectors(exact=False, session={"hnsw.ef_search": 100}), k=3) == ids(vectors(), k=3)
    finally:
        with psycopg.connect(server.dsn()) as admin:
            admin.execute("DROP INDEX shop.near")


def test_vectors_of_another_model_are_named() -> None:
    with raises(InputError) as messages:
        vectors(table="shop.flat", vector="place").search("pool")
    assert "different vector dimensions 2 and 384" in messages[0]
    assert "model" in messages[0]


def test_a_column_that_holds_no_vectors_is_named() -> None:
    with raises(InputError) as messages:
        vectors(vector="body").search("pool")
    assert "operator" in messages[0]
    assert "pgvector" in messages[0]


# Scope


@pytest.mark.parametrize("make", [words, vectors], ids=["words", "vectors"])
@pytest.mark.parametrize("settings", [{}, {"metadata": "facts"}], ids=["columns", "json"])
def test_a_scope_admits_only_rows_with_these_values(make: Any, settings: dict[str, str]) -> None:
    connector = make(**settings)
    assert set(ids(connector, "pool", scope={"city": "Basel"})) - {"h5"} == {"h3", "h6"}
    assert ids(connector, "pool", scope={"city": "Basel", "stars": "2"}) == ["h6"]
    assert ids(connector, "pool", scope={"city": "' OR 1=1 --"}) == []
    assert ids(connector, "pool", scope={"city": "Ba\0sel \ud800 %s %(k)s"}) == []


def test_a_scope_on_a_column_that_is_not_there_is_an_error() -> None:
    for name in ("town", 'city" = city OR "city', "%(k)s"):
        with raises(MissingInput) as messages:
            words().search("pool", scope={name: "Basel"})
        assert name in messages[0]


def test_names_may_hold_anything_that_the_catalogue_holds(server: PostgresServer) -> None:
    with psycopg.connect(server.dsn()) as admin:
        admin.execute("""CREATE TABLE shop."90% (k)s "";--" ("%(k)s" text, "a%b'" text)""")
        admin.execute("""INSERT INTO shop."90% (k)s "";--" VALUES ('odd', 'a pool')""")
        admin.execute("GRANT SELECT ON ALL TABLES IN SCHEMA shop TO quiet_reader; REVOKE ALL ON shop.private FROM quiet_reader")
    connector = words(table='shop.90% (k)s ";--', id="%(k)s", columns=["a%b'"])
    assert ids(connector, scope={"%(k)s": "odd"}) == ["odd"]


def test_a_scope_value_of_the_wrong_type_is_an_error() -> None:
    with raises(InputError) as messages:
        words().search("pool", scope={"stars": "many"})
    assert "many" in messages[0]


# A statement of one's own


def test_own_sql_gets_text_k_and_scope() -> None:
    statement = """SELECT code AS id, length(body)::numeric / 7 AS score FROM shop.hotels
        WHERE body ILIKE '%%' || %(text)s || '%%' AND (%(scope.city)s::text IS NULL OR city = %(scope.city)s)
        ORDER BY score DESC LIMIT %(k)s"""
    connector = words(sql=statement)
    assert ids(connector, "pool") == ["h3", "h1", "h6"]
    assert ids(connector, "pool", k=1) == ["h3"]
    assert ids(connector, "pool", scope={"city": "Bern"}) == ["h1"]
    assert connector.search("pool")[0].score == pytest.approx(len(HOTELS[2][2]) / 7)
    with raises(InputError) as messages:
        connector.search("pool", scope={"stars": "3"})
    assert "%(scope.stars)s" in messages[0]


def test_passages_from_own_sql_do_not_use_up_k() -> None:
    statement = """SELECT hotel AS id, passage AS chunk, 1.0 / rank() OVER (ORDER BY passage) AS score FROM shop.passages
        WHERE body ILIKE '%%' || %(text)s || '%%' ORDER BY score DESC LIMIT %(k)s"""
    assert ids(words(sql=statement), "pool", k=3) == ["h1", "h3", "h6"]
    assert ids(words(sql=statement), "pool", k=1) == ["h1"]


def test_rows_of_own_sql_that_are_no_passages_are_fetched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    fetch = Postgres.fetch
    monkeypatch.setattr(Postgres, "fetch", lambda *given, **more: asked.append(given[2]["k"]) or fetch(*given, **more))
    with raises(BadAnswer):
        words(sql="SELECT 'a' AS id FROM shop.hotels WHERE %(text)s::text <> '' LIMIT %(k)s").search("pool", k=2)
    assert asked == [2]


def test_all_attempts_for_enough_documents_share_one_timeout() -> None:
    statement = """SELECT 'a' AS id, n AS chunk FROM generate_series(1, %(k)s) AS n, pg_sleep(0.3) WHERE %(text)s::text <> ''"""
    start = time.monotonic()
    with raises(TimedOut):
        words(sql=statement, timeout=0.5).search("pool", k=10)
    assert time.monotonic() - start < PROMPT


def test_more_hits_than_postgres_can_count_are_all_there_are() -> None:
    assert ids(words(), "pool", k=10**19) == ids(words(), "pool", k=1000)


def test_own_sql_gets_the_vector_and_may_return_uuids() -> None:
    unique = "00000000-0000-0000-0000-000000000001"
    statement = f"SELECT '{unique}'::uuid AS id, 1 - (embedding <=> %(vector)s) AS score FROM shop.hotels LIMIT least(%(k)s, 1)"
    assert ids(vectors(sql=statement)) == [unique]


def test_own_sql_cannot_write(server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DSN, server.dsn())  # even a superuser's connection only reads
    deleted = "WITH gone AS (DELETE FROM shop.hotels RETURNING code)"
    statement = f"{deleted} SELECT code AS id FROM gone WHERE %(text)s::text <> '' LIMIT %(k)s"
    with raises(InputError) as messages:
        words(sql=statement).search("pool")
    assert "read-only" in messages[0]
    with psycopg.connect(server.dsn()) as admin:
        assert admin.execute("SELECT count(*) FROM shop.hotels").fetchone() == (len(HOTELS),)


def test_two_statements_in_one_are_refused() -> None:
    with raises(InputError):
        words(sql="SELECT code AS id FROM shop.hotels WHERE body = %(text)s LIMIT %(k)s; SELECT 1").search("pool")


def test_a_statement_without_rows_is_a_bad_answer() -> None:
    with raises(BadAnswer):
        words(sql="CALL shop.nothing(%(text)s, %(k)s)").search("pool")


# Settings


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"dsn_env": None}, "dsn_env"),
        ({"table": None}, "table"),
        ({"table": "shop."}, "shop."),
        ({"table": 7}, "7"),
        ({"id": ""}, "id=''"),
        ({"chunk": "a\0b"}, "chunk="),
        ({"vector": None}, "columns"),
        ({"columns": "body"}, "['title', 'body']"),
        ({"columns": ["body"], "vector": "search"}, "both or neither"),
        ({"weights": {"title": 1}}, "'A'"),
        ({"vector": None, "columns": ["body"], "weights": {"bdy": 1}}, "'body'"),
        ({"weights": {"A": -1}}, "-1"),
        ({"weights": [1, 2]}, "[1, 2]"),
        ({"weights": dict.fromkeys("ABCD", 0)}, "all weights are 0"),
        ({"vector": None, "columns": list("abcde"), "weights": dict(zip("abcde", range(5), strict=True))}, "four"),
        ({"match": "some"}, "'any' or 'all'"),
        ({"rank": "bm25"}, "ts_rank_cd"),
        ({"normalization": 64}, "64"),
        ({"language": ""}, "english"),
        ({"sslmode": "verify"}, "verify-full"),
        ({"session": [1]}, "hnsw"),
        ({"timeout": 0}, "timeout"),
        ({"table": None, "sql": "SELECT 1 WHERE %(text)s LIKE 'a%' LIMIT %(k)s"}, "%%"),
        ({"table": None, "sql": "SELECT %(text)s, %(other)s LIMIT %(k)s"}, "other"),
        ({"table": None, "sql": "SELECT %(text)s"}, "%(k)s"),
    ],
    ids=lambda value: str(value)[:40].replace("\0", "0") if isinstance(value, dict) else "",
)
def test_a_wrong_setting_is_named(settings: dict[str, Any], said: str) -> None:
    usual = {"dsn_env": DSN, "table": "shop.hotels", "vector": "search"}
    with raises(InputError) as messages:
        Postgres(**(usual | settings))
    assert said in messages[0]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"metric": "cosin"}, "'cosine'"),
        ({"vector": ""}, "vector"),
        ({"exact": "no"}, "exact"),
        ({"exact": False, "chunk": "passage"}, "sql"),
        ({"table": None, "sql": "SELECT %(text)s LIMIT %(k)s"}, "%(vector)s"),
    ],
    ids=["metric", "vector", "exact", "chunk", "sql"],
)
def test_a_wrong_setting_of_vectors_is_named(settings: dict[str, Any], said: str) -> None:
    with raises(InputError) as messages:
        Pgvector(**({"dsn_env": DSN, "table": "shop.hotels"} | settings))
    assert said in messages[0]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"table": "shop.motels"}, "motels"),
        ({"table": "market.hotels"}, "market"),
        ({"id": "number"}, "number"),
        ({"vector": "tokens"}, "tokens"),
        ({"language": "klingon"}, "klingon"),
    ],
    ids=["table", "schema", "id", "vector", "language"],
)
def test_what_the_database_does_not_have_is_named(settings: dict[str, Any], said: str) -> None:
    with raises(MissingInput) as messages:
        words(**settings).search("pool")
    assert said in messages[0]


def test_a_table_that_may_not_be_read_is_denied_access() -> None:
    with raises(AccessDenied) as messages:
        words(table="shop.private", id="id", columns=["body"]).search("pool")
    assert "private" in messages[0]


def test_a_database_that_is_not_there_is_named_as_such() -> None:
    with raises(InputError) as messages:
        words(dbname="elsewhere").search("pool")
    assert "elsewhere" not in messages[0]
    assert "dbname" in messages[0]


def test_a_missing_variable_and_an_unreadable_address_never_show_a_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DSN, f"host {PASSWORD}")
    with raises(InputError) as messages:
        words().search("pool")
    assert DSN in messages[0]
    assert PASSWORD not in messages[0]
    monkeypatch.delenv(DSN)
    with raises(MissingInput) as messages:
        words().search("pool")
    assert DSN in messages[0]


def test_without_its_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with raises(MissingInput) as messages:
        words().search("pool")
    assert install_command("postgres") in messages[0]


def test_settings_from_a_dict_with_parts_instead_of_an_address(server: PostgresServer) -> None:
    settings = {
        "kind": "postgres",
        "host": LOOPBACK,
        "port": server.port,
        "dbname": "postgres",
        "user": READER,
        "password_env": "RINGTRUE_TEST_PASSWORD",
        "table": "shop.hotels",
        "id": "code",
        "columns": ["Name", "body"],
        "weights": {"Name": 2},
    }
    connector = connect(settings, name="shop")
    hits = connector.search("pool", k=2)
    assert hits[0].channels == {"shop": 1}
    for word in (LOOPBACK, str(server.port), READER, PASSWORD):
        assert word not in repr(connector)
    found = connect({"kind": "pgvector", "dsn_env": DSN, "table": "shop.hotels", "id": "code"}).search("pool", k=2)
    assert found[0].channels == {"pgvector": 1}


def test_words_and_vectors_are_fused_by_an_expression(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = f'dsn_env = "{DSN}"\ntable = "shop.hotels"\nid = "code"\n'
    near = f'[connections.near]\nkind = "pgvector"\n{shared}'
    settings = f'[connections.words]\nkind = "postgres"\nvector = "search"\n{shared}{near}'
    (tmp_path / "ringtrue.toml").write_text(settings, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    hits = build("rrf(connect('words'), connect('near'))").search("pool", k=6)
    assert {hit.doc_id for hit in hits} == {code for code, *_ in HOTELS}, "what only one of the two finds is lost"
    places = {name: ids(make()).index(hits[0].doc_id) + 1 for name, make in (("words", words), ("near", vectors))}
    assert dict(hits[0].channels) == places


# Connections


BACKEND = "SELECT pg_backend_pid() AS id, 1 AS score WHERE %(text)s::text <> '' LIMIT %(k)s"


def test_a_connection_is_kept_and_opened_again_when_it_died(server: PostgresServer) -> None:
    connector = words(sql=BACKEND)
    first = ids(connector)
    assert ids(connector) == first
    with psycopg.connect(server.dsn()) as admin:
        admin.execute("SELECT pg_terminate_backend(%s, 2000)", [int(first[0])])
    assert ids(connector) != first
    connector.close()


def test_a_wrong_statement_does_not_cost_the_connection() -> None:
    connector = words(sql=BACKEND)
    first = ids(connector)
    with pytest.raises(InputError):
        connector.fetch("SELECT nothing", {}, session={})
    assert ids(connector) == first


def test_threads_ask_at_once_on_connections_of_their_own() -> None:
    connector = words(sql=BACKEND.replace("WHERE", "FROM pg_sleep(1) WHERE"))
    start = time.monotonic()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda text: ids(connector, text)[0], ["a", "b", "c", "d"]))
    assert len(set(found)) == 4
    assert time.monotonic() - start < 3.5  # one after the other they would take 4 s


def test_a_copy_for_another_process_opens_its_own_connection() -> None:
    connector = words(sql=BACKEND)
    first = ids(connector)
    copy = pickle.loads(pickle.dumps(connector))
    assert copy == connector
    assert ids(copy) != first


def test_a_statement_that_takes_too_long_is_ended_on_the_server(server: PostgresServer) -> None:
    connector = words(sql=TestPostgres.SLEEPS, timeout=0.2)
    with raises(TimedOut):
        connector.search("pool")
    with psycopg.connect(server.dsn()) as admin:
        running = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND usename = %s"
        assert admin.execute(running, [READER]).fetchone() == (0,)


def _nobody_works() -> bool:
    end = time.monotonic() + 30
    while any(thread.name == "ringtrue-postgres" for thread in threading.enumerate()):
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def test_a_network_that_falls_silent_times_out_and_leaves_no_thread(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with proxy(server.port) as between:
        monkeypatch.setenv(DSN, server.dsn(user=READER, password=PASSWORD, port=between.port))
        connector = words(timeout=0.3)
        assert ids(connector)
        between.hang()
        start = time.monotonic()
        with raises(TimedOut):
            connector.search("pool")
        assert time.monotonic() - start < PROMPT
        assert _nobody_works()
        between.restore()
        assert ids(connector), "the connector did not recover"
        connector.close()


def test_a_server_that_accepts_and_is_silent_times_out(server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    with silent() as port:
        monkeypatch.setenv(DSN, server.dsn(port=port))
        start = time.monotonic()
        with raises(TimedOut):
            words(timeout=0.3).search("pool")
        assert time.monotonic() - start < PROMPT
    assert _nobody_works()


def test_a_port_of_something_else_is_a_bad_answer(server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    with halfway() as port:
        monkeypatch.setenv(DSN, server.dsn(port=port))
        with raises(BadAnswer) as messages:
            words().search("pool")
    assert "does not speak PostgreSQL" in messages[0]


def test_no_traceback_shows_the_address(server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    for dsn in (server.dsn(user=READER, password="wrong-8812"), server.dsn(user=READER, password=PASSWORD, port=port)):
        monkeypatch.setenv(DSN, dsn)
        with pytest.raises((AccessDenied, Unreachable)) as caught:
            words().search("pool")
        shown = "".join(traceback.format_exception(caught.value))
        for word in (LOOPBACK, f"port {port}", READER, "wrong-8812", PASSWORD):
            assert word not in shown


# TLS


def certificate(folder: Path) -> ssl.SSLContext:
    """Write a self-signed certificate for localhost; return the server's side of it."""
    x509 = pytest.importorskip("cryptography.x509", reason="TLS IS NOT TESTED: pip install cryptography")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "ca.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    (folder / "key.pem").write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "ca.pem", folder / "key.pem")
    context.set_alpn_protocols(["postgresql"])
    return context


@contextmanager
def tls_before(target: int, context: ssl.SSLContext) -> Iterator[int]:
    """A port that speaks TLS as PostgreSQL does and hands everything on to a server that cannot (the wheel's has no TLS)."""
    listener = socket.create_server((LOOPBACK, 0))
    ends: list[socket.socket] = [listener]

    def pump(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def serve() -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                ends.append(client)
                with suppress(OSError):  # a client that refuses the certificate
                    client.recv(8)  # SSLRequest
                    client.sendall(b"S")
                    secured = context.wrap_socket(client, server_side=True)
                    server = socket.create_connection((LOOPBACK, target))
                    ends.extend((secured, server))
                    for pair in ((secured, server), (server, secured)):
                        threading.Thread(target=pump, args=pair, daemon=True).start()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        thread.join(5)
        for end in ends:
            end.close()


def test_tls_is_verified(server: PostgresServer, tmp_path: Path) -> None:
    with tls_before(server.port, certificate(tmp_path)) as port:
        parts: dict[str, Any] = {"port": port, "sslmode": "verify-full"}
        with raises(Unreachable) as messages:
            words(host="localhost", **parts).search("pool")
        assert "certificate" in messages[0]
        trusting = words(host="localhost", ca_file=str(tmp_path / "ca.pem"), **parts)
        assert ids(trusting)
        trusting.close()
        with raises(Unreachable) as messages:
            words(host=LOOPBACK, ca_file=str(tmp_path / "ca.pem"), **parts).search("pool")
        assert "certificate" in messages[0], "a certificate for another host was taken"


def test_a_server_without_tls_is_refused_where_tls_is_wanted(server: PostgresServer) -> None:
    with raises(Unreachable) as messages:
        words(sslmode="require").search("pool")
    assert "TLS" in messages[0]


@pytest.mark.parametrize(
    ("dsn", "wanted"),
    [
        ("host=db.example.com", "verify-full"),
        ("host=127.0.0.1,db.example.com", "verify-full"),
        ("hostaddr=192.0.2.7", "verify-full"),
        ("host=db.example.com sslmode=require", "require"),
        ("host=localhost", None),
        ("host=/run/postgresql", None),
    ],
    ids=["remote", "mixed", "number", "said", "local", "socket"],
)
def test_a_server_elsewhere_is_asked_over_verified_tls_unless_said(
    dsn: str, wanted: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DSN, dsn)
    assert words()._address().get("sslmode") == wanted


def test_the_example_runs() -> None:
    example = Path(__file__).parents[2] / "examples" / "connect" / "with_postgres.py"
    done = subprocess.run([sys.executable, example], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "lakeside" in done.stdout
