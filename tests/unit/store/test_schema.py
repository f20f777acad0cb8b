"""The tables by name, and migrations as the one truth about them."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import create_engine, inspect, text

from ringtrue.errors import InputError
from ringtrue.store import Store
from ringtrue.store import schema as versions
from ringtrue.store.engine import address
from ringtrue.store.tables import METADATA

UPGRADES = Path(__file__).parents[2] / "upgrades"
# Every column and index of the seed's schema; item ids are texts here.
SEED_COLUMNS = {
    "eval_queries": "id query_id query intent mode session_id tool_name result_ids result_count channel_contributions "
    "total_latency_ms fusion_weights quality_proxy_score trace_id created_at is_eval_corpus eval_category",
    "eval_judgments": "id query_id memory_id relevance source annotator confidence created_at",
    "eval_results": "id run_id run_type feature_id mrr_at_5 mrr_at_10 ndcg_at_5 ndcg_at_10 ndcg_at_20 recall_at_5 recall_at_10 "
    "constitutional_surfacing_rate importance_weighted_recall cold_start_mrr session_personalization_lift "
    "causal_chain_completeness avg_latency_ms channel_contribution_json result_diversity_score query_count "
    "confidence_interval_lower confidence_interval_upper control_run_id mrr_delta ndcg_delta p_value is_significant created_at "
    "per_query_results",
    "eval_feedback": "id event_type session_id query_id memory_id rank_in_results metadata created_at",
    "eval_ab_tests": "id feature_id status log_likelihood_ratio upper_bound lower_bound sample_count control_mrr_sum "
    "treatment_mrr_sum control_ndcg_sum treatment_ndcg_sum min_samples graduation_threshold started_at updated_at graduated_at",
    "eval_shadow_runs": "id query_id feature_id control_result_ids treatment_result_ids rank_correlation set_overlap "
    "top_result_changed order_differences mrr_delta ndcg_delta control_latency_ms treatment_latency_ms created_at",
}
SEED_INDEXES = {
    "eval_queries": {
        "idx_eval_queries_session": "session_id", "idx_eval_queries_intent": "intent", "idx_eval_queries_created": "created_at",
        "idx_eval_queries_corpus": "is_eval_corpus", "idx_eval_queries_tool": "tool_name",
    },
    "eval_judgments": {
        "idx_eval_judgments_query": "query_id", "idx_eval_judgments_memory": "memory_id", "idx_eval_judgments_source": "source",
    },
    "eval_results": {
        "idx_eval_results_run": "run_id", "idx_eval_results_feature": "feature_id", "idx_eval_results_type": "run_type",
        "idx_eval_results_created": "created_at",
    },
    "eval_feedback": {
        "idx_eval_feedback_session": "session_id", "idx_eval_feedback_query": "query_id",
        "idx_eval_feedback_type": "event_type", "idx_eval_feedback_created": "created_at",
    },
    "eval_ab_tests": {"idx_eval_ab_status": "status"},
    "eval_shadow_runs": {"idx_eval_shadow_feature": "feature_id", "idx_eval_shadow_created": "created_at"},
}  # fmt: skip
UNIQUE = {
    "eval_queries": ["query_id"],
    "eval_judgments": ["query_id", "memory_id", "source", "annotator"],
    "eval_feedback": ["event_id"],
    "eval_ab_tests": ["feature_id"],
    "eval_ab_counted": ["feature_id", "query_id"],
    "eval_shadow_runs": ["feature_id", "query_id", "candidate"],
    "runs": ["run_id"],
    "jobs": ["job_id"],
    "replies": ["key"],
    "history": ["series", "at", "labels"],
    "test_points": ["feature_id", "sample_count"],
}
"""What must be unique within a project."""
PLATFORM = {"golden_sets", "baselines", "experiments", "reviews", "ratings", "flags", "api_keys", "audit"}


def test_columns_and_indexes_of_the_seed_are_there_by_name(store: Store) -> None:
    with store._reading() as connection:
        found = inspect(connection)
        assert set(SEED_COLUMNS) | PLATFORM <= set(found.get_table_names())
        for table, columns in SEED_COLUMNS.items():
            assert set(columns.split()) <= {column["name"] for column in found.get_columns(table)}, table
            indexes = {index["name"]: index["column_names"] for index in found.get_indexes(table)}
            assert {name: indexes.get(name) for name in SEED_INDEXES[table]} == {
                name: [column] for name, column in SEED_INDEXES[table].items()
            }
        for table, unique in UNIQUE.items():
            keys = [set(key["column_names"]) for key in found.get_unique_constraints(table)]
            assert {"project", *unique} in keys, table


def test_every_table_has_a_project_and_an_index_that_begins_with_it(store: Store) -> None:
    with store._reading() as connection:
        found = inspect(connection)
        for table in METADATA.tables:
            project = next(column for column in found.get_columns(table) if column["name"] == "project")
            assert not project["nullable"]
            keys = [key["column_names"] for key in found.get_unique_constraints(table) + found.get_indexes(table)]
            assert any(key[0] == "project" for key in keys), table


@pytest.mark.parametrize(
    ("table", "column", "bad"),
    [
        ("eval_judgments", "relevance", "4"),
        ("eval_judgments", "source", "'guessed'"),
        ("eval_feedback", "event_type", "'stare'"),
        ("eval_results", "run_type", "'half'"),
        ("eval_ab_tests", "status", "'done'"),
    ],
)
def test_the_checks_of_the_seed_hold_in_the_database_itself(store: Store, table: str, column: str, bad: str) -> None:
    from store_contents import fill

    fill(store)
    with pytest.raises(InputError, match=column), store._writing() as connection:
        connection.execute(text(f"UPDATE {table} SET {column} = {bad}"))


def _shape(url: str) -> dict[str, Any]:
    """Return what a database says about its tables, in an order that does not depend on how they were made."""
    engine = create_engine(address(url).url)
    with engine.connect() as connection:
        found = inspect(connection)
        tables = sorted(set(found.get_table_names()) - {versions.VERSION_TABLE})

        def said(value: Any) -> str:
            return str(sorted((key, said(of)) for key, of in value.items())) if isinstance(value, dict) else str(value)

        def texts(values: list[Any]) -> list[str]:
            return sorted(map(said, values))

        shape = {
            table: {
                "columns": texts([*map(dict, found.get_columns(table))]),
                "key": found.get_pk_constraint(table)["constrained_columns"],
                "indexes": texts([*map(dict, found.get_indexes(table))]),
                "unique": texts([*map(dict, found.get_unique_constraints(table))]),
                "checks": texts([*map(dict, found.get_check_constraints(table))]),
                "references": texts([*map(dict, found.get_foreign_keys(table))]),
            }
            for table in tables
        }
    engine.dispose()
    return shape


def test_the_migrations_make_exactly_the_tables_that_were_released(
    kind: str, fresh: Callable[[str], str], request: pytest.FixtureRequest
) -> None:
    migrated, released = fresh(kind), fresh(kind)
    Store.open(migrated).close()
    if kind == "sqlite":
        shutil.copy(UPGRADES / f"{versions.HEAD}.sqlite", released)
    else:
        with psycopg.connect(released, autocommit=True) as connection:
            connection.execute((UPGRADES / f"{versions.HEAD}.postgresql.sql").read_bytes())
    shape = _shape(migrated)
    assert any(table["checks"] for table in shape.values())
    assert shape == _shape(released)


def test_records_and_migrations_have_the_same_columns_of_the_same_types(kind: str, fresh: Callable[[str], str]) -> None:
    migrated, declared = fresh(kind), fresh(kind)
    Store.open(migrated).close()
    engine = create_engine(address(declared).url)
    METADATA.create_all(engine)
    engine.dispose()
    assert _types(migrated) == _types(declared)


def _types(url: str) -> dict[str, dict[str, str]]:
    """Return the type of each column of each table."""
    engine = create_engine(address(url).url)
    with engine.connect() as connection:
        found = inspect(connection)
        tables = set(found.get_table_names()) - {versions.VERSION_TABLE}
        types = {table: {column["name"]: str(column["type"]) for column in found.get_columns(table)} for table in tables}
    engine.dispose()
    return types


def test_the_newest_migration_is_the_version_the_code_writes() -> None:
    assert versions.known_versions()[0] == versions.HEAD


def _set_version(url: str, number: str) -> None:
    engine = create_engine(address(url).url)
    with engine.begin() as connection:
        connection.execute(text(f"UPDATE {versions.VERSION_TABLE} SET version_num = :number"), {"number": number})
    engine.dispose()


def test_another_schema_is_refused_with_the_cure(
    kind: str, empty: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = empty(kind)
    _set_version(url, "9999")
    with pytest.raises(InputError, match="newer Ringtrue"):
        Store.open(url)
    with pytest.raises(InputError, match="9999"):
        Store.upgrade(url)
    _set_version(url, "0000")
    monkeypatch.setattr(versions, "known_versions", lambda: [versions.HEAD, "0000"])
    with pytest.raises(InputError, match="ringtrue store upgrade"):
        Store.open(url)


def test_upgrading_a_current_or_an_empty_store(kind: str, fresh: Callable[[str], str]) -> None:
    place = fresh(kind)
    assert Store.upgrade(place) == (None, versions.HEAD)
    assert Store.upgrade(place) == (versions.HEAD, versions.HEAD)
    with Store.open(place) as store:
        assert store.schema_version() == versions.HEAD


def test_tables_of_another_program_are_left_alone(kind: str, fresh: Callable[[str], str]) -> None:
    place = fresh(kind)
    engine = create_engine(address(place).url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE flags (country TEXT)"))
        connection.execute(text("CREATE TABLE other (country TEXT)"))
    engine.dispose()
    for call in (Store.open, Store.upgrade):
        with pytest.raises(InputError, match=r"flags.*database of its own"):
            call(place)
    assert set(_shape(place)) == {"flags", "other"}


def _open(url: str) -> str:
    with Store.open(url) as store:
        return store.schema_version()


def test_processes_that_open_a_fresh_database_at_once_all_get_it(kind: str, fresh: Callable[[str], str]) -> None:
    place = fresh(kind)
    with ProcessPoolExecutor(3, mp_context=get_context("spawn")) as pool:
        assert list(pool.map(_open, [place] * 3)) == [versions.HEAD] * 3


def test_sqlite_is_in_wal_mode_with_foreign_keys(empty: Callable[[str], str]) -> None:
    with Store.open(empty("sqlite")) as store, store._reading() as connection:
        found = [
            connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("journal_mode", "foreign_keys", "synchronous")
        ]
        assert found == ["wal", 1, 1]
        assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar() == 10_000
        assert isinstance(connection.connection.driver_connection, sqlite3.Connection)
