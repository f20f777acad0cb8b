"""Planting into PostgreSQL tables of several makes, on the real server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from connectors.conftest import PostgresServer
from connectors.writing_suite import GOLDEN, IDS, TENANT, HeldSuite
from ringtrue.errors import AccessDenied, InputError
from ringtrue.records import Document
from ringtrue.retrieve.connectors.postgres import Pgvector, Postgres
from ringtrue.run import PartlyPlanted, plant, planted, remove_planted

psycopg = pytest.importorskip("psycopg", reason="PostgreSQL IS NOT TESTED: pip install 'psycopg[binary]'")

DSN = "RINGTRUE_TEST_PLANTING"
READER, PASSWORD = "only_reader", "geheim-5521"
PLANT = {
    "Title": "{title}",
    "body": "{text}",
    "company": "{tenant}",
    "hash": "{source_hash}",
    "facts": "{metadata}",
    "stars": "{metadata.stars}",
    "made_by": "golden set",
}
TABLE = """CREATE TABLE {name} (code text PRIMARY KEY, "Title" text, body text NOT NULL, company text, hash text, facts jsonb,
    stars int, made_by text, {search})"""
GENERATED = """search tsvector GENERATED ALWAYS AS (to_tsvector('english', coalesce("Title", '') || ' ' || body)) STORED,
    embedding vector(384)"""


@pytest.fixture(scope="module")
def database(postgres: PostgresServer) -> Iterator[str]:
    """A database of its own with a few tables, and a user who may only read; its address."""
    with psycopg.connect(postgres.dsn(), autocommit=True) as admin:
        admin.execute("CREATE DATABASE planting")
    dsn = postgres.dsn().replace("dbname=postgres", "dbname=planting")
    with psycopg.connect(dsn) as admin:
        admin.execute("CREATE EXTENSION vector")
        admin.execute(TABLE.format(name="made", search=GENERATED))
        admin.execute(TABLE.format(name="empty", search="search tsvector"))
        admin.execute(f"CREATE ROLE {READER} LOGIN PASSWORD '{PASSWORD}'")
        admin.execute(f"GRANT SELECT ON made, empty TO {READER}")
    yield dsn
    with psycopg.connect(postgres.dsn(), autocommit=True) as admin:
        admin.execute("DROP DATABASE planting WITH (FORCE)")


class OnPostgres:
    TABLE = "made"

    @pytest.fixture(autouse=True)
    def _rows(self, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.dsn, self.patch = database, monkeypatch
        monkeypatch.setenv(DSN, database)
        self.run(f"TRUNCATE {self.TABLE}")
        self.run(
            f"INSERT INTO {self.TABLE} (code, body, company, hash)"
            " VALUES ('h1', 'A pool.', 'zoo', 'x'), ('h2', 'Spa', NULL, NULL)"
        )

    def run(self, statement: str, *values: Any) -> list[Any]:
        with psycopg.connect(self.dsn) as admin:
            found = admin.execute(statement, values)
            return found.fetchall() if found.description else []

    def make(self) -> Any:
        return Postgres(dsn_env=DSN, table=self.TABLE, id="code", vector="search", plant=PLANT, retries=0)

    def everything(self) -> dict[str, Any]:
        return {row[0]: row for row in self.run(f"SELECT * FROM {self.TABLE}")}

    def foreign(self, doc_id: str) -> None:
        self.run(f"INSERT INTO {self.TABLE} (code, body) VALUES (%s, 'Theirs')", doc_id)

    def clear(self, doc_id: str) -> None:
        self.run(f"DELETE FROM {self.TABLE} WHERE code = %s", doc_id)

    def marks(self, doc_id: str) -> tuple[str, str]:
        row = self.everything()[doc_id]
        return row[4], row[3]


class TestSearchColumnThatNobodyFills(OnPostgres, HeldSuite):
    TABLE = "empty"

    @pytest.fixture(autouse=True)
    def _searchable(self, _rows: None) -> None:
        self.run("UPDATE empty SET search = to_tsvector('english', body)")

    def foreign(self, doc_id: str) -> None:
        self.run("INSERT INTO empty (code, body, search) VALUES (%s, 'Theirs', to_tsvector('english', 'theirs'))", doc_id)


class TestPgvector(OnPostgres, HeldSuite):
    @pytest.fixture(autouse=True)
    def _embedded(self, _rows: None) -> None:
        self.run("UPDATE made SET embedding = array_fill(0.1, ARRAY[384])::vector")

    def make(self) -> Any:
        return Pgvector(dsn_env=DSN, table="made", id="code", plant=PLANT, retries=0)

    def test_rows_without_a_vector_are_not_known(self) -> None:
        """Trap 14: a half-embedded index must not pass for a whole one."""
        self.run("UPDATE made SET embedding = NULL WHERE code = 'h2'")
        assert self.make().known(["h1", "h2"]) == {"h1"}

    def test_another_model_than_that_of_the_column_is_named(self) -> None:
        self.run("ALTER TABLE made ADD COLUMN small vector(3)")
        try:
            with pytest.raises(InputError, match="name the model that made the vectors"):
                plant(replace(self.make(), vector="small"), GOLDEN, tenant=TENANT)
        finally:
            self.run("ALTER TABLE made DROP COLUMN small")
        assert not IDS & set(self.everything())


class TestPostgres(OnPostgres, HeldSuite):
    def test_values_get_the_types_of_their_columns(self) -> None:
        golden = replace(GOLDEN, documents=(Document("d", "Text", "Title", {"stars": "4", "tags": ["a", "b"]}),))
        with planted(self.make(), golden, tenant=TENANT):
            row = self.everything()["golden:tiny:d"]
        assert row[5:8] == ({"stars": "4", "tags": ["a", "b"]}, 4, "golden set")

    def test_a_document_that_does_not_fit_is_named_and_a_second_run_mends_it(self) -> None:
        odd = replace(GOLDEN, documents=(*GOLDEN.documents, Document("odd", "Text", "Odd", {"stars": "many"})))
        with pytest.raises(PartlyPlanted, match=r"took 3 of 4 documents and refused 'golden:tiny:odd' .*integer"):
            plant(self.make(), odd, tenant=TENANT)
        assert set(self.everything()) >= IDS
        mended = replace(odd, documents=(*GOLDEN.documents, Document("odd", "Text", "Odd", {"stars": 3})))
        done = plant(self.make(), mended, tenant=TENANT)
        assert (done.written, done.unchanged) == (1, 3)
        assert remove_planted(self.make(), mended, tenant=TENANT) == 4

    def test_who_may_only_read_is_told_what_to_grant(self) -> None:
        self.patch.setenv(
            DSN, self.dsn.replace("user=postgres", f"user={READER}").rpartition(" password=")[0] + f" password={PASSWORD}"
        )
        with pytest.raises(AccessDenied, match="grant its user INSERT and DELETE") as problem:
            plant(self.make(), GOLDEN, tenant=TENANT)
        assert not any(word in str(problem.value) for word in (PASSWORD, READER, "127.0.0.1"))

    def test_a_statement_of_ones_own_is_no_place_to_write(self) -> None:
        connector = Postgres(dsn_env=DSN, sql="SELECT 'a' AS id, 1 AS score WHERE %(text)s <> '' LIMIT %(k)s", plant=PLANT)
        assert not hasattr(connector, "known")
        with pytest.raises(InputError, match="name the table instead of sql"):
            plant(connector, GOLDEN, tenant=TENANT)

    def test_a_column_that_is_not_there_is_named_and_nothing_is_written(self) -> None:
        before = self.everything()
        with pytest.raises(InputError, match='column "titel" of relation "made" does not exist'):
            plant(replace(self.make(), plant={**PLANT, "titel": "{title}"}), GOLDEN, tenant=TENANT)
        assert self.everything() == before
