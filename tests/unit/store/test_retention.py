"""How long things are kept: archived first, deleted after, never more."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ringtrue.errors import InputError, MissingInput
from ringtrue.store import LoggedQuery, Retention, Store, archived_queries
from ringtrue.store import retention as module
from store_contents import EVENT, FULL_QUERY, HISTORY, JOB, JUDGMENT, PLAIN_QUERY, REPLY, RESULT, RUN, SHADOW, TEST

NOW = "2026-06-30T00:00:00Z"
OLD = ["2026-03-31T23:59:59.999999Z", "2025-01-01T00:00:00Z"]
KEPT = "2026-04-01T00:00:00Z"  # 90 days before to the microsecond


def _queries(project: str = "default") -> list[LoggedQuery]:
    old = [replace(FULL_QUERY, query_id=f"old {at}", created_at=at, project=project) for at in OLD]
    return [*old, replace(PLAIN_QUERY, query_id="kept", created_at=KEPT, project=project)]


def _ids(store: Store, project: str = "default") -> list[str]:
    return [query.query_id for query in store.queries(project=project)]


def test_old_queries_are_archived_readable_and_only_they_are_deleted(store: Store, tmp_path: Path) -> None:
    store.add_queries(_queries())
    (pruned,) = store.prune(now=NOW, archive=tmp_path / "archive")
    assert (pruned.project, pruned.queries, len(pruned.archives)) == ("default", 2, 1)
    assert _ids(store) == ["kept"]
    archived = list(archived_queries(pruned.archives[0]))
    assert archived == sorted(
        (replace(query, created_at=query.created_at.replace("00Z", "00.000000Z")) for query in _queries()[:2]),
        key=lambda query: query.created_at,
    )
    assert store.archives() == list(pruned.archives)
    assert list(archived_queries(tmp_path / "archive")) == archived
    assert [path.name for path in (tmp_path / "archive").iterdir()] == [pruned.archives[0].name]  # nothing half-written
    (again,) = store.prune(now=NOW, archive=tmp_path / "archive")
    assert (again.queries, again.archives) == (0, ())


def test_an_archive_is_plain_json_lines_that_other_tools_read(store: Store, tmp_path: Path) -> None:
    import duckdb

    store.add_queries(_queries())
    (pruned,) = store.prune(now=NOW, archive=tmp_path)
    with gzip.open(pruned.archives[0], "rt") as lines:
        assert json.loads(next(iter(lines)))["query"] == FULL_QUERY.query
    found = duckdb.sql(f"SELECT count(*), max(len(result_ids)) FROM read_json_auto('{pruned.archives[0]}')").fetchall()
    assert found == [(2, 3)]


def test_feedback_goes_after_90_days_shadow_runs_after_30_all_else_stays(store: Store, tmp_path: Path) -> None:
    ages = {"fresh": "2026-06-29T00:00:00Z", "month": "2026-05-15T00:00:00Z", "old": "2025-01-01T00:00:00Z"}
    for name, at in ages.items():
        store.add_feedback([replace(EVENT, event_id=name, created_at=at)])
        store.add_shadow_runs([replace(SHADOW, query_id=name, created_at=at)])
        store.add_judgments([replace(JUDGMENT, item_id=name, created_at=at)])
        store.add_result(replace(RESULT, run_id=name, created_at=at))
    store.create_test(replace(TEST, started_at=ages["old"], updated_at=ages["old"]))
    (pruned,) = store.prune(now=NOW, archive=tmp_path)
    assert (pruned.queries, pruned.feedback, pruned.shadow) == (0, 1, 2)
    assert [event.event_id for event in store.feedback()] == ["month", "fresh"]
    assert [run.query_id for run in store.shadow_runs(feature_id="rerank")] == ["fresh"]
    assert (len(store.judgments()), len(store.results()), len(store.tests())) == (3, 3, 1)


def test_history_goes_after_400_days_replies_after_2_ended_jobs_after_90(store: Store, tmp_path: Path) -> None:
    ages = {
        "fresh": "2026-06-29T00:00:00Z",
        "month": "2026-05-15T00:00:00Z",
        "year": "2025-07-01T00:00:00Z",
        "old": "2020-01-01",
    }
    for name, at in ages.items():
        store.add_history([replace(HISTORY[0], at=at)])
        store.keep_reply(replace(REPLY, key=name, created_at=at))
        for state in ("done", "failed", "queued", "running"):
            store.add_job(replace(JOB, job_id=f"{name} {state}", state=state, created_at="2020-01-01", updated_at=at))
        store.save_run(replace(RUN, run_id=name, created_at=at))
    (said,) = store.prune(now=NOW, archive=tmp_path, dry_run=True)
    (pruned,) = store.prune(now=NOW, archive=tmp_path)
    assert pruned == said
    assert (pruned.history, pruned.replies, pruned.jobs) == (1, 3, 4)
    assert [point.at[:10] for point in store.history("recall_at_k")] == ["2025-07-01", "2026-05-15", "2026-06-29"]
    assert {job.job_id for job in store.jobs() if job.state in ("done", "failed")} == {
        "fresh done", "fresh failed", "month done", "month failed",
    }  # fmt: skip
    assert len(store.jobs(state="running")) == 4  # one that has not ended is kept, however old
    assert set(store.run_names()) == set(ages)
    assert store.projects() == []  # which are those of the log


def test_the_command_says_what_of_each_goes(store: Store, url: str, tmp_path: Path, ringtrue: Callable[..., Any]) -> None:
    store.add_history([replace(HISTORY[0], at=f"200{i}-01-01") for i in range(3)])
    store.keep_reply(replace(REPLY, created_at="2000-01-01"))
    command = ("store", "prune", "--store", url, "--archive", str(tmp_path))
    head, row = ringtrue(*command, "--dry-run").out.splitlines()[:2]
    assert [name in head for name in ("history would be deleted", "replies would be deleted", "jobs would be deleted")] == [
        True
    ] * 3
    assert row.split() == ["default", "0", "0", "0", "3", "1", "0"]
    said = ringtrue(*command, "--json").json["projects"]["default"]
    assert (said["history"], said["replies"], said["jobs"]) == (3, 1, 0)
    assert store.history("recall_at_k") == []


def test_a_dry_run_says_the_same_and_changes_nothing(store: Store, tmp_path: Path) -> None:
    store.add_queries(_queries())
    store.add_feedback([replace(EVENT, created_at=OLD[1])])
    before = store.counts()
    (said,) = store.prune(now=NOW, archive=tmp_path / "archive", dry_run=True)
    assert store.counts() == before
    assert not (tmp_path / "archive").exists()
    (done,) = store.prune(now=NOW, archive=tmp_path / "archive")
    assert (said.queries, said.feedback, said.shadow) == (done.queries, done.feedback, done.shadow) == (2, 1, 0)


def test_each_project_keeps_for_as_long_as_it_says(store: Store, tmp_path: Path) -> None:
    for project in ("default", "shop", "clinic"):
        store.add_queries(_queries(project))
    retention = Retention.of({"queries": 90, "projects": {"shop": {"queries": 1}, "clinic": {"queries": 10_000}}})
    pruned = store.prune(now=NOW, archive=tmp_path, retention=retention)
    assert {each.project: each.queries for each in pruned} == {"default": 2, "shop": 3, "clinic": 0}
    assert (_ids(store, "shop"), len(_ids(store, "clinic"))) == ([], 3)
    assert {query.project for query in archived_queries(tmp_path)} == {"default", "shop"}
    assert len(store.archives(project="shop")) == 1


def test_nothing_is_deleted_where_the_archive_cannot_be_written(store: Store, tmp_path: Path) -> None:
    store.add_queries(_queries())
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match="nothing was deleted"):
        store.prune(now=NOW, archive=tmp_path / "file")
    assert len(_ids(store)) == 3


def test_nothing_is_deleted_where_the_archive_does_not_read_back(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = module.replace_file
    monkeypatch.setattr(module, "replace_file", lambda file, lines: whole(file, iter(list(lines)[:1])))
    store.add_queries(_queries())
    with pytest.raises(InputError, match="holds 1 of 2"):
        store.prune(now=NOW, archive=tmp_path)
    assert len(_ids(store)) == 3


@pytest.mark.parametrize("written", ["nothing", "a part", "all"])
def test_stopped_while_archiving_nothing_is_lost_or_left_behind(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    folder = tmp_path / "archive"
    store.add_queries([replace(query, user_id="u1") for query in _queries()])
    write = module.write_archive

    def stop(file: Path, queries: list[LoggedQuery]) -> None:
        if written == "all":
            write(file, queries)
        if written == "a part":
            folder.mkdir()
            file.with_name(f".{file.name}.0a1b.part").write_text("words of u1")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "write_archive", stop)
        with pytest.raises(KeyboardInterrupt):
            store.prune(now=NOW, archive=folder)
    assert len(_ids(store)) == 3
    assert store.archives() == []
    store.prune(now=NOW, archive=folder)
    (archive,) = folder.iterdir()  # what was begun is gone
    assert store.archives() == [archive]
    assert sorted(query.query_id for query in archived_queries(archive)) == sorted(query.query_id for query in _queries()[:2])


@pytest.mark.parametrize("whole", [False, True])
def test_a_user_is_deleted_from_an_archive_that_was_never_finished(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: bool
) -> None:
    folder = tmp_path / "archive"
    store.add_queries([replace(query, user_id="u1") for query in _queries()])
    write = module.write_archive

    def killed(file: Path, queries: list[LoggedQuery]) -> None:
        if whole:
            write(file, queries)
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "write_archive", killed)
    with pytest.raises(KeyboardInterrupt):
        store.prune(now=NOW, archive=folder)
    assert len(list(folder.glob("*"))) == whole
    assert store.delete_user("u1", project="default", now=NOW) == 3
    assert list(folder.glob("*")) == []
    assert store.counts()["archives"] == 0


def test_a_query_deleted_while_it_is_archived_is_in_no_archive(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "archive"
    store.add_queries([replace(query, user_id=f"u{i}") for i, query in enumerate(_queries())])
    write = module.write_archive

    def meanwhile(file: Path, queries: list[LoggedQuery]) -> None:
        if len(queries) == 2:
            store.delete_user("u0", project="default")
        write(file, queries)

    monkeypatch.setattr(module, "write_archive", meanwhile)
    (pruned,) = store.prune(now=NOW, archive=folder)
    assert pruned.queries == 1
    assert [query.user_id for query in archived_queries(folder)] == ["u1"]
    assert list(folder.iterdir()) == list(pruned.archives)


def test_many_rows_go_in_batches(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH", 10)
    store.add_queries([replace(PLAIN_QUERY, query_id=f"eq_{i}", created_at=OLD[1]) for i in range(25)])
    store.add_feedback([replace(EVENT, event_id=f"e{i}", created_at=OLD[1]) for i in range(25)])
    (pruned,) = store.prune(now=NOW, archive=tmp_path)
    assert (pruned.queries, pruned.feedback, len(pruned.archives)) == (25, 25, 3)
    assert len(list(archived_queries(tmp_path))) == 25


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"querys": 3}, "did you mean 'queries'"),
        ({"queries": -1}, "queries = -1"),
        ({"shadow": "30"}, "shadow = '30'"),
        ({"shadow": True}, "shadow = True"),
        ({"projects": {"shop": 3}}, "not a table of tables"),
        ({"projects": {"shop": {"x": 3}}}, r"projects\.shop"),
    ],
)
def test_wrong_settings_are_named(settings: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Retention.of(settings)


def test_what_is_no_archive_is_refused(tmp_path: Path, empty: Callable[[str], str]) -> None:
    with pytest.raises(MissingInput, match="no archive"):
        list(archived_queries(tmp_path))
    whole = tmp_path / "a.jsonl.gz"
    with Store.open(empty("sqlite")) as store:
        store.add_queries(_queries())
        (pruned,) = store.prune(now=NOW, archive=tmp_path / "archive")
    whole.write_bytes(pruned.archives[0].read_bytes()[:-12])
    with pytest.raises(InputError, match="cut off, damaged"):
        list(archived_queries(whole))
    whole.write_bytes(b"plain")
    with pytest.raises(InputError, match="cut off, damaged"):
        list(archived_queries(whole))
    whole.write_bytes(gzip.compress(b'{"a": 1}\n'))
    with pytest.raises(InputError, match="not an archived search"):
        list(archived_queries(whole))
