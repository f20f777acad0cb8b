"""Projects are closed to each other: a store of one project reads and writes nothing of another, on both databases."""

from __future__ import annotations

import inspect
import os
import secrets
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import func, join, literal, select, text

from postgres_server import PostgresServer, binaries
from ringtrue.errors import AccessDenied, InputError
from ringtrue.store import Flag, HistoryPoint, Store, TestPoint
from ringtrue.store.tables import FEEDBACK, QUERY, TABLES
from store_contents import (
    AUDIT,
    BASELINE,
    EVENT,
    EXPECTED,
    EXPERIMENT,
    FULL_QUERY,
    GOLDEN_SET,
    HISTORY,
    JOB,
    JUDGMENT,
    KEY,
    LATER,
    NOON,
    PLAIN_QUERY,
    REPLY,
    RESULT,
    REVIEW,
    RUN,
    SHADOW,
    TEST,
    TOKEN,
    answers,
    contents,
    fill,
)

eval_queries, eval_feedback = QUERY.table, FEEDBACK.table
OTHERS = "default"
"""Whose rows a store holds, all of ``store_contents``, while one that is for another project alone is asked for them."""


def _theirs(record: Any) -> Any:
    return replace(record, project=OTHERS)


# Every call for another project, or for all of them; ``path`` is a folder. The names are those of the methods.
CALLS: dict[str, Callable[[Store, Path], Any]] = {
    "add_audit": lambda store, _: store.add_audit(_theirs(AUDIT)),
    "add_experiments": lambda store, _: store.add_experiments(lambda taken: [_theirs(EXPERIMENT)], project=OTHERS),
    "add_feedback": lambda store, _: store.add_feedback([replace(EVENT, event_id="new", project=OTHERS)]),
    "add_history": lambda store, _: store.add_history([replace(HISTORY[0], at="2027-01-01T00:00:00Z", project=OTHERS)]),
    "add_job": lambda store, _: store.add_job(replace(JOB, job_id="new", project=OTHERS)),
    "add_judgments": lambda store, _: store.add_judgments([_theirs(JUDGMENT)]),
    "add_key": lambda store, _: store.add_key(replace(KEY, key_id="new", project=OTHERS), "rt_another-token"),
    "add_queries": lambda store, _: store.add_queries([replace(PLAIN_QUERY, query_id="new", project=OTHERS)]),
    "add_rating": lambda store, _: store.add_rating(REVIEW.item_key, "mallory", 0, LATER, project=OTHERS),
    "add_result": lambda store, _: store.add_result(replace(RESULT, run_id="new", project=OTHERS)),
    "add_review_items": lambda store, _: store.add_review_items([replace(REVIEW, item_key="new", project=OTHERS)]),
    "add_shadow_runs": lambda store, _: store.add_shadow_runs([replace(SHADOW, query_id="new", project=OTHERS)]),
    "archives": lambda store, _: store.archives(project=OTHERS),
    "audit": lambda store, _: store.audit(project=OTHERS),
    "backlog": lambda store, _: store.backlog(project=OTHERS),
    "backup": lambda store, path: store.backup(path / "backup.sqlite"),
    "baseline": lambda store, _: store.baseline(BASELINE.name, project=OTHERS),
    "baselines": lambda store, _: store.baselines(project=OTHERS),
    "claim_reply": lambda store, _: store.claim_reply(_theirs(REPLY)),
    "copy_from": lambda store, path: _copied(store, path),
    "count_queries": lambda store, _: store.count_queries(project=OTHERS),
    "counts": lambda store, _: store.counts(),
    "create_key": lambda store, _: store.create_key("key", ["admin"], now=NOON, project=OTHERS),
    "create_test": lambda store, _: store.create_test(replace(TEST, feature_id="new", project=OTHERS)),
    "delete_judgments": lambda store, _: store.delete_judgments(project=OTHERS, source="manual"),
    "delete_rating": lambda store, _: store.delete_rating(REVIEW.item_key, "ann", project=OTHERS),
    "delete_user": lambda store, _: store.delete_user("u1", project=OTHERS, now=LATER),
    "drop_claims": lambda store, _: store.drop_claims(),
    "drop_reply": lambda store, _: store.drop_reply(REPLY.key, project=OTHERS),
    "experiment": lambda store, _: store.experiment(EXPERIMENT.experiment_id, project=OTHERS),
    "experiments": lambda store, _: store.experiments(project=OTHERS),
    "feedback": lambda store, _: store.feedback(project=OTHERS),
    "flag": lambda store, _: store.flag("rerank", project=OTHERS),
    "flags": lambda store, _: store.flags(project=OTHERS),
    "forget_archive": lambda store, path: store.forget_archive(path / "archive"),
    "golden_set": lambda store, _: store.golden_set(GOLDEN_SET.name, project=OTHERS),
    "golden_sets": lambda store, _: store.golden_sets(project=OTHERS),
    "history": lambda store, _: store.history("recall_at_k", project=OTHERS),
    "interrupt_jobs": lambda store, _: store.interrupt_jobs(now=NOON),
    "job": lambda store, _: store.job(JOB.job_id, project=OTHERS),
    "jobs": lambda store, _: store.jobs(project=OTHERS),
    "judgments": lambda store, _: store.judgments(project=OTHERS),
    "keep_reply": lambda store, _: store.keep_reply(_theirs(replace(REPLY, status=500))),
    "keys": lambda store, _: store.keys(project=OTHERS),
    "log_volume": lambda store, _: store.log_volume(project=OTHERS, since="2026-03-01", until="2026-03-02", step="hour"),
    "only": lambda store, _: store.only(OTHERS),
    "projects": lambda store, _: store.projects(),
    "prune": lambda store, path: store.prune(now="2030-01-01", archive=path),
    "queries": lambda store, _: store.queries(project=OTHERS),
    "ratings": lambda store, _: store.ratings(project=OTHERS),
    "restore": lambda store, path: store.restore(_backup(path), replace=True),
    "result": lambda store, _: store.result(RESULT.run_id, project=OTHERS),
    "results": lambda store, _: store.results(project=OTHERS),
    "review_items": lambda store, _: store.review_items(project=OTHERS),
    "revoke_key": lambda store, _: store.revoke_key(KEY.key_id, now=NOON, project=OTHERS),
    "run": lambda store, _: store.run(RUN.run_id, project=OTHERS),
    "run_names": lambda store, _: store.run_names(project=OTHERS, among=[RUN.run_id]),
    "save_baseline": lambda store, _: store.save_baseline(replace(BASELINE, version="9", project=OTHERS)),
    "save_golden_set": lambda store, _: store.save_golden_set(replace(GOLDEN_SET, version="9", project=OTHERS)),
    "save_job": lambda store, _: store.save_job(_theirs(replace(JOB, state="failed"))),
    "save_run": lambda store, _: store.save_run(replace(RUN, run_id="new", project=OTHERS)),
    "set_flag": lambda store, _: store.set_flag(Flag("rerank", 100, project=OTHERS), who="mallory", at=LATER),
    "shadow_features": lambda store, _: store.shadow_features(project=OTHERS),
    "shadow_runs": lambda store, _: store.shadow_runs(feature_id="rerank", project=OTHERS),
    "test": lambda store, _: store.test("rerank", project=OTHERS),
    "test_points": lambda store, _: store.test_points("rerank", project=OTHERS),
    "tests": lambda store, _: store.tests(project=OTHERS),
    "tools": lambda store, _: store.tools(project=OTHERS),
    "update_review_item": lambda store, _: store.update_review_item(REVIEW.item_key, lambda item: item, project=OTHERS),
    "update_test": lambda store, _: store.update_test("rerank", "new", lambda test: test, project=OTHERS),
    "user_rows": lambda store, _: store.user_rows("u1", project=OTHERS),
    "verify_key": lambda store, _: store.verify_key(TOKEN, now=NOON),
}
NO_ROWS = {
    "address",
    "close",
    "check_backup",
    "sync",
    "open",
    "place",
    "check_writable",
    "schema_version",
    "upgrade",
}
"""What gives and takes no row of any project."""


def _copied(store: Store, path: Path) -> None:
    with Store.open(path / "another.sqlite") as another:
        store.copy_from(another, replace=True)


def _backup(path: Path) -> Path:
    file = path / "backup.sqlite"
    with Store.open(path / "another.sqlite") as another:
        another.backup(file)
    return file


def test_every_method_of_the_store_is_asked_for_what_belongs_to_others() -> None:
    methods = {name for name, _ in inspect.getmembers(Store) if not name.startswith("_")} | {"address"}
    assert set(CALLS) | NO_ROWS == methods


def test_a_store_of_one_project_refuses_every_call_for_another_or_for_all(store: Store, tmp_path: Path) -> None:
    fill(store)
    before = contents(store)
    mine = store.only("mine")
    for call in CALLS.values():
        with pytest.raises(InputError, match="is for project 'mine' only"):
            call(mine, tmp_path)
    assert contents(store) == before


def test_what_is_left_out_means_the_default_project_and_is_refused_too(store: Store) -> None:
    with pytest.raises(InputError, match="not for 'default'"):
        store.only("mine").queries()


def test_one_batch_with_a_row_of_another_project_is_refused_whole(store: Store) -> None:
    rows = [replace(PLAIN_QUERY, project="mine"), replace(FULL_QUERY, project="other")]
    with pytest.raises(InputError, match="not for 'other'"):
        store.only("mine").add_queries(rows)
    assert store.counts()["eval_queries"] == 0


def test_a_change_cannot_carry_a_row_over_to_another_project(store: Store) -> None:
    mine = store.only("mine")
    mine.add_review_items([replace(REVIEW, project="mine")])
    mine.create_test(replace(TEST, project="mine"))
    with pytest.raises(InputError):
        mine.update_review_item(REVIEW.item_key, lambda item: replace(item, project="other"), project="mine")
    with pytest.raises(InputError):
        mine.update_test("rerank", "q", lambda test: replace(test, project="other"), project="mine")
    point = TestPoint(2, NOON, 0.5, feature_id="rerank", project="other")
    with pytest.raises(InputError, match="not for 'other'"):
        mine.update_test("rerank", "q", lambda test: test, project="mine", point=lambda test: point)
    with pytest.raises(InputError):
        mine.add_experiments(lambda taken: [replace(EXPERIMENT, project="other")], project="mine")
    assert not any(
        [store.review_items(project="other"), store.tests(project="other"), store.test_points("rerank", project="other")]
    )
    assert store.experiments(project="other") == []
    assert mine.test("rerank", project="mine") == replace(TEST, project="mine")  # not counted either


def test_a_store_of_one_project_does_everything_within_it(store: Store, tmp_path: Path) -> None:
    mine = store.only(OTHERS)
    fill(mine)
    assert answers(mine) == answers(store)
    assert {name: answers(mine)[name] for name in EXPECTED} == EXPECTED
    assert mine.save_run(RUN) is False
    mine.save_job(replace(JOB, state="failed"))
    mine.keep_reply(replace(REPLY, status=200))
    mine.update_test("rerank", "a pause", lambda _: replace(TEST, status="paused"))
    assert mine.set_flag(Flag("rerank", 50), who="ann", at=LATER)
    assert mine.user_rows("u1")["eval_queries"] == 1
    assert mine.delete_user("u1", now=LATER) > 0
    assert [query.query_id for query in mine.queries()] == ["eq_plain"]
    assert mine.drop_reply(REPLY.key)


def test_projects_with_the_same_ids_have_each_its_own(store: Store) -> None:
    for project in ("a", "b"):
        one = store.only(project)
        one.add_history([HistoryPoint(NOON, "recall", 0.5, project=project)])
        one.save_run(replace(RUN, project=project, content=project.encode()))
        assert one.claim_reply(replace(REPLY, project=project)) is None
    for project in ("a", "b"):
        found = store.only(project).run(RUN.run_id, project=project)
        assert found is not None
        assert found.content == project.encode()


def test_a_store_of_one_project_shares_the_connections_and_closes_none(store: Store) -> None:
    with store.only("mine") as mine:
        assert mine.only("mine").queries(project="mine") == []
    assert store.counts()["eval_queries"] == 0
    store.close()
    with pytest.raises(InputError, match="closed"):
        mine.queries(project="mine")


@pytest.mark.parametrize("name", ["", "*"])
def test_no_project_is_called_all_or_nothing(store: Store, name: str) -> None:
    with pytest.raises(InputError, match="valid project name"):
        store.only(name)


@pytest.mark.parametrize(
    "statement",
    [
        select(eval_queries.c.query),
        select(eval_queries.c.query).where(eval_queries.c.project != "mine"),
        select(eval_queries.c.query).where((eval_queries.c.project == "mine") | (eval_queries.c.degraded == 1)),
        select(eval_queries.c.query).where(~(eval_queries.c.project == "mine")),
        select(literal(1)).where(select(eval_queries.c.id).exists()),
        select(func.count()).select_from(select(eval_queries).subquery()),
        select(eval_queries.c.query)
        .select_from(join(eval_queries, eval_feedback, eval_queries.c.query_id == eval_feedback.c.query_id))
        .where(eval_queries.c.project == "mine"),
        select(eval_queries.c.query).where(eval_queries.c.project == "mine").union(select(eval_feedback.c.event_id)),
        select(eval_queries.alias().c.query),
        eval_queries.update().values(query="x"),
        eval_queries.update().where(eval_queries.c.project == "mine").values(project="other"),
        eval_queries.delete().where(eval_queries.c.id.in_(select(eval_queries.c.id).where(eval_queries.c.project == "mine"))),
        eval_queries.insert().values(project="other", query_id="q", query="q", tool_name="t", created_at=NOON),
        eval_queries.insert().from_select(["project", "query_id"], select(literal("other"), literal("q"))),
        text("SELECT * FROM eval_queries WHERE project = 'mine'"),
        select(text("query FROM eval_queries --")),
    ],
)  # fmt: skip
def test_a_statement_that_is_not_confined_to_the_project_is_not_run(empty: Callable[[str], str], statement: Any) -> None:
    with Store.open(empty("sqlite")) as store:
        store.add_queries([FULL_QUERY])
        with pytest.raises(InputError, match="'mine' only"), store.only("mine")._writing() as connection:
            connection.execute(statement)


# What the database itself does on PostgreSQL, whatever the statements are.


@pytest.fixture
def filled(empty: Callable[[str], str]) -> Iterator[Store]:
    """A store on PostgreSQL with a search of each of two projects, opened by a role that is not a superuser."""
    with Store.open(empty("postgresql")) as store:
        store.add_queries([replace(FULL_QUERY, project=project) for project in ("a", "b")])
        yield store


COUNT = "SELECT count(*) FROM eval_queries"
ADD = "INSERT INTO eval_queries (project, query_id, query, tool_name, created_at) VALUES ('b', 'new', 'q', 't', 'now')"


def test_every_table_is_under_row_level_security_even_for_its_owner(filled: Store) -> None:
    with filled._reading() as connection:
        found = connection.exec_driver_sql(
            "SELECT relname, relrowsecurity, relforcerowsecurity, polcmd, polpermissive FROM pg_class "
            "LEFT JOIN pg_policy ON polrelid = pg_class.oid WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
        ).all()
        assert (
            connection.exec_driver_sql("SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user").scalar()
            is False
        )
    secured = {name for name, *rules in found if rules == [True, True, "*", True]}
    assert secured == {table.name for table in TABLES if "project" in table.c}


def test_raw_sql_on_a_connection_of_one_project_sees_that_one_only(filled: Store) -> None:
    with filled.only("a")._reading() as connection:
        assert connection.exec_driver_sql("SELECT DISTINCT project FROM eval_queries").scalars().all() == ["a"]
        assert connection.exec_driver_sql(COUNT + " WHERE project = 'b'").scalar() == 0
    with filled.only("a")._writing() as connection:
        assert connection.exec_driver_sql("UPDATE eval_queries SET query = 'x' WHERE project = 'b'").rowcount == 0
        assert connection.exec_driver_sql("DELETE FROM eval_queries").rowcount == 1
    assert filled.count_queries(project="a") == 0
    assert filled.queries(project="b") == [replace(FULL_QUERY, project="b")]


@pytest.mark.parametrize("statement", [ADD, "UPDATE eval_queries SET project = 'b'"])
def test_raw_sql_cannot_write_a_row_of_another_project(filled: Store, statement: str) -> None:
    refused = pytest.raises(InputError, match="belongs to a project that this store is not for")
    with refused, filled.only("a")._writing() as connection:
        connection.exec_driver_sql(statement)
    assert [filled.count_queries(project=project) for project in ("a", "b")] == [1, 1]


def test_a_connection_that_names_no_project_sees_and_writes_nothing(filled: Store) -> None:
    with psycopg.connect(_dsn(filled), autocommit=True) as connection:
        assert connection.execute(COUNT).fetchone() == (0,)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(ADD)
        # One that has named a project in a transaction has forgotten it afterwards, and '' is not a project's name.
        with connection.transaction():
            connection.execute("SELECT set_config('ringtrue.project', 'a', true)")
            assert connection.execute(COUNT).fetchone() == (1,)
        filled.add_queries([replace(PLAIN_QUERY, project="")])
        assert connection.execute(COUNT).fetchone() == (0,)
        connection.execute("SELECT set_config('ringtrue.project', '*', false)")
        assert connection.execute(COUNT).fetchone() == (3,)


def test_connections_go_from_one_project_to_another_without_a_trace(filled: Store) -> None:
    for project in ("a", "b", "a"):  # the pool gives the same connection again
        with filled.only(project)._reading() as connection:
            assert connection.exec_driver_sql("SELECT DISTINCT project FROM eval_queries").scalars().all() == [project]
    with filled._reading() as connection:
        assert connection.exec_driver_sql(COUNT).scalar() == 2


def test_indexes_are_used_under_row_level_security(filled: Store) -> None:
    with filled.only("a")._reading() as connection:
        connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
        plan = connection.exec_driver_sql(
            "EXPLAIN SELECT * FROM eval_queries WHERE project = 'a' AND created_at >= '2026' AND created_at < '2027' "
            "ORDER BY created_at DESC, query_id DESC LIMIT 50"
        ).scalars()
        said = " ".join(plan)
    assert "Index Scan Backward using idx_eval_queries_project" in said
    assert "Index Cond: ((project = 'a'::text) AND (created_at >= '2026'::text) AND (created_at < '2027'::text))" in said


def test_a_role_that_may_not_create_tables_is_told_so(empty: Callable[[str], str], postgres: PostgresServer) -> None:
    with closing(psycopg.connect(postgres.dsn(), autocommit=True)) as connection:
        name = f"guest_{secrets.token_hex(4)}"
        connection.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'guest'".encode())
        connection.execute(f"CREATE DATABASE {name}".encode())
    with pytest.raises(AccessDenied, match="owner of a database of its own") as caught:
        Store.open(postgres.url(name, user=name, password="guest"))
    assert "guest:guest" not in str(caught.value)


def test_pg_dump_by_the_owner_takes_every_project_as_the_docs_say(filled: Store, fresh: Callable[[str], str]) -> None:
    programs = binaries()
    assert programs is not None

    def dumped(project: str, *options: str) -> subprocess.CompletedProcess[str]:
        command = [programs / "pg_dump", "--inserts", "--no-owner", *options, _dsn(filled)]
        environment = {**os.environ, "PGOPTIONS": project and f"-c ringtrue.project={project}"}
        return subprocess.run(command, env=environment, capture_output=True, text=True)

    assert "query would be affected by row-level security" in dumped("*").stderr
    assert "INSERT INTO public.eval_queries" not in dumped("", "--enable-row-security").stdout
    whole = dumped("*", "--enable-row-security").stdout
    place = fresh("postgresql")
    with psycopg.connect(place, autocommit=True) as connection:
        connection.execute("\n".join(line for line in whole.splitlines() if not line.startswith("\\")).encode())
    with Store.open(place) as store:
        assert [store.queries(project=project) for project in "ab"] == [filled.queries(project=project) for project in "ab"]
        with store.only("a")._reading() as bound:
            assert bound.exec_driver_sql(COUNT).scalar() == 1


def _dsn(store: Store) -> str:
    return store.address.url.set(drivername="postgresql").render_as_string(hide_password=False)
