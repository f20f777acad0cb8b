"""Whose data a command means, and what is shown and taken out of the store."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ringtrue.golden import load
from ringtrue.store import USER_DELETED, AuditEntry, FeedbackEvent, LoggedQuery, Store, StoredJudgment, timestamp

Run = Callable[..., Any]
NOW = timestamp(datetime.now(UTC))


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, in which nothing is configured."""
    for name in ("RINGTRUE_STORE", "RINGTRUE_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def log() -> None:
    """A store with a search of project shop and one of project desk."""
    with Store.open() as store:
        row = LoggedQuery("eq_1", "pool", "web", NOW, project="shop", session_id="s1", user_id="u1", result_ids=("d1",))
        store.add_queries([row, replace(row, project="desk", query="towels")])


class TestProject:
    def asked(self, ringtrue: Run, *more: str) -> str:
        return str(ringtrue("log", "tail", "--json", *more).json["project"])

    def test_flag_over_environment_over_file_over_default(self, ringtrue, place, log, monkeypatch) -> None:
        assert self.asked(ringtrue) == "default"
        (place / "ringtrue.toml").write_text("[store]\nproject = 'shop'\n")
        assert self.asked(ringtrue) == "shop"
        monkeypatch.setenv("RINGTRUE_PROJECT", "desk")
        assert self.asked(ringtrue) == "desk"
        assert self.asked(ringtrue, "--project", "other") == "other"

    @pytest.mark.parametrize(
        "command",
        [["flag", "set", "new", "--rollout", "5"], ["test", "create", "new"], ["shadow", "start", "new"], ["review", "stats"],
         ["feedback", "add", "-t", "click", "-s", "s1", "-i", "d1"], ["sessions"], ["health"], ["log", "stats"]],
        ids=" ".join,
    )  # fmt: skip
    def test_every_command_with_a_project_hears_of_it(self, ringtrue, log, monkeypatch, command) -> None:
        asked: list[str] = []
        for name in ("flags", "flag", "create_test", "audit", "queries", "ratings"):
            call = getattr(Store, name)

            def heard(self: Store, *given: Any, call: Any = call, **options: Any) -> Any:
                asked.append(options.get("project") or getattr(given[0], "project", None))
                return call(self, *given, **options)

            monkeypatch.setattr(Store, name, heard)
        monkeypatch.setenv("RINGTRUE_PROJECT", "shop")
        assert "internal error" not in ringtrue(*command).err
        assert set(asked) == {"shop"}

    @pytest.mark.parametrize("command", [["log", "tail"], ["log", "stats"], ["health"], ["feedback", "list"]], ids=" ".join)
    def test_an_empty_project_says_which_are_not(self, ringtrue, log, command) -> None:
        assert "try 'desk', 'shop'" in ringtrue(*command).err
        assert "but of" not in ringtrue(*command, "--project", "shop").err

    def test_a_name_that_is_none_is_named(self, ringtrue, place, log) -> None:
        (place / "ringtrue.toml").write_text("[store]\nproject = 7\n")
        done = ringtrue("log", "tail")
        assert (done.code, "store.project is not a name" in done.err) == (2, True)


class TestForget:
    def test_counts_first_then_deletes_only_when_told(self, ringtrue, log) -> None:
        refused = ringtrue("store", "forget", "u1", "--project", "shop")
        assert (refused.code, "--yes" in refused.err) == (2, True)
        would = ringtrue("store", "forget", "u1", "--project", "shop", "--dry-run", "--json").json
        assert (would["rows"], would["tables"]["eval_queries"], would["dry_run"]) == (1, 1, True)
        assert "1 row of the user would be deleted" in ringtrue("store", "forget", "u1", "--project", "shop", "--dry-run").out
        with Store.open() as store:
            assert len(store.queries(project="shop")) == 1
        assert "1 row of the user was deleted" in ringtrue("store", "forget", "u1", "--project", "shop", "--yes").out
        with Store.open() as store:
            assert (len(store.queries(project="shop")), len(store.queries(project="desk"))) == (0, 1)
            assert len(store.audit(project="shop", what=USER_DELETED)) == 1

    def test_a_hashed_id_is_made_as_the_log_makes_it(self, ringtrue, monkeypatch) -> None:
        from ringtrue.log import Redactor

        monkeypatch.setenv("RINGTRUE_LOG_SALT", "pepper")
        with Store.open() as store:
            store.add_queries([Redactor(hash_users=True).query(LoggedQuery("eq_1", "pool", "web", NOW, user_id="ada"))])
        assert ringtrue("store", "forget", "ada", "--dry-run", "--json").json["rows"] == 0
        assert ringtrue("store", "forget", "ada", "--hashed", "--yes", "--json").json["rows"] == 1

    def test_no_store_is_made(self, ringtrue, place) -> None:
        for command in (["store", "forget", "u", "--yes"], ["feedback", "list"], ["feedback", "judgments"], ["health"]):
            assert ringtrue(*command, "--store", "none.sqlite").code == 2
        assert list(place.iterdir()) == []


class TestCopies:
    def test_a_backup_replaces_nothing_unasked(self, ringtrue, place, log) -> None:
        (place / "b.sqlite").write_text("mine")
        refused = ringtrue("store", "backup", "b.sqlite")
        assert (refused.code, "--overwrite" in refused.err) == (2, True)
        assert (place / "b.sqlite").read_text() == "mine"
        assert ringtrue("store", "backup", "b.sqlite", "--overwrite").code == 0
        itself = ringtrue("store", "backup", ".ringtrue/store.sqlite", "--overwrite")
        assert (itself.code, "is the store itself" in itself.err) == (2, True)

    def test_migrate_replaces_what_it_says_it_can(self, ringtrue, log) -> None:
        assert ringtrue("store", "migrate", ".ringtrue/store.sqlite", "two.sqlite").code == 0
        refused = ringtrue("store", "migrate", ".ringtrue/store.sqlite", "two.sqlite")
        assert (refused.code, "--replace" in refused.err) == (2, True)
        assert ringtrue("store", "migrate", ".ringtrue/store.sqlite", "two.sqlite", "--replace").code == 0

    def test_restoring_what_is_no_backup_makes_no_store(self, ringtrue, place) -> None:
        (place / "note.txt").write_text("no backup")
        for file in ("missing.gz", "note.txt"):
            assert ringtrue("store", "restore", file, "--store", "new.sqlite").code == 2
        assert [path.name for path in place.iterdir()] == ["note.txt"]

    def test_a_time_before_all_times_is_one_line(self, ringtrue, log) -> None:
        done = ringtrue("log", "stats", "--since", "999999w")
        assert (done.code, done.err.count("\n"), "year 1" in done.err) == (2, 1, True)


class TestFeedbackShown:
    @pytest.fixture
    def told(self, log) -> None:
        with Store.open() as store:
            store.add_feedback(
                [
                    FeedbackEvent(
                        "e1",
                        "click",
                        "s1",
                        "2026-01-01",
                        project="shop",
                        query_id="eq_1",
                        item_id="d1",
                        rank_in_results=1,
                        actor="person",
                    ),
                    FeedbackEvent("e2", "re_search", "s2", "2026-01-02", project="shop"),
                ]
            )
            store.add_judgments(
                [
                    StoredJudgment(
                        "eq_1",
                        "d1",
                        2,
                        "implicit",
                        "2026-01-02",
                        project="shop",
                        annotator="feedback:person",
                        confidence=0.4,
                        metadata={"query": "pool"},
                    ),
                    StoredJudgment("eq_1", "d2", 0, "manual", "2026-01-03", project="shop", annotator="ann"),
                ]
            )

    def test_events(self, ringtrue, told) -> None:
        def found(*more: str) -> list[str]:
            return [
                one["event_id"] for one in ringtrue("feedback", "list", "--project", "shop", "--json", *more).json["events"]
            ]

        assert found() == ["e1", "e2"]
        assert (found("-n", "1"), found("--since", "2026-01-02"), found("--until", "2026-01-02")) == (["e2"], ["e2"], ["e1"])
        assert (found("-t", "click"), found("-s", "s2"), found("-q", "eq_1")) == (["e1"], ["e2"], ["e1"])
        shown = ringtrue("feedback", "list", "--project", "shop").out.splitlines()
        assert shown[1].split()[2:] == ["click", "person", "s1", "d1", "eq_1", "1"]
        wrong = ringtrue("feedback", "list", "-t", "clik")
        assert (wrong.code, "did you mean 'click'" in wrong.err) == (2, True)

    def test_judgments(self, ringtrue, told) -> None:
        def found(*more: str) -> list[str]:
            shown = ringtrue("feedback", "judgments", "--project", "shop", "--json", *more).json
            return [one["item_id"] for one in shown["judgments"]]

        assert found() == ["d1", "d2"]
        assert (found("--source", "manual"), found("-i", "d1"), found("-n", "1"), found("-q", "x")) == (
            ["d2"],
            ["d1"],
            ["d2"],
            [],
        )
        assert "pool" in ringtrue("feedback", "judgments", "--project", "shop").out
        assert "1 older ones" in ringtrue("feedback", "judgments", "--project", "shop", "-n", "1").err
        wrong = ringtrue("feedback", "judgments", "--source", "manuel")
        assert (wrong.code, "did you mean 'manual'" in wrong.err) == (2, True)

    def test_why_events_were_refused_is_shown(self, ringtrue, log) -> None:
        with Store.open() as store:
            for reasons in ({"not redacted": 2}, {"not redacted": 1, "unreadable answer": 1}):
                detail = {"refused": sum(reasons.values()), "reasons": reasons}
                store.add_audit(AuditEntry(NOW, "query log", "log.lost", "p1", detail, "shop"))
        told = ringtrue("log", "stats", "--project", "shop", "--json").json["missing"]
        assert (told["refused"], told["reasons"]) == (4, {"not redacted": 3, "unreadable answer": 1})
        assert "refused, not redacted: 3" in ringtrue("log", "stats", "--project", "shop").out


class TestBootstrapOfDocuments:
    @pytest.mark.parametrize("source", ["docs/corpus.jsonl", "docs"])
    @pytest.mark.parametrize("method", ["names", "feedback"])
    def test_a_plain_corpus_is_enough(self, ringtrue, place, log, source, method) -> None:
        (place / "docs").mkdir()
        rows = [
            {"_id": f"d{number}", "title": f"Pool {number}", "text": "Opens at nine. Towels are free."} for number in (1, 2)
        ]
        (place / "docs" / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
        with Store.open() as store:
            store.add_judgments([StoredJudgment("eq_1", "d1", 2, "implicit", NOW, project="shop", metadata={"query": "pool"})])
        done = ringtrue("golden", "bootstrap", source, "--from", method, "--project", "shop", "--out", "made.json")
        assert done.code == 0, done.err
        made = load("made.json")
        assert {document.doc_id for document in made.documents} == {"d1", "d2"}
        assert made.created_at == NOW[:10]

    def test_reading_the_log_makes_no_store(self, ringtrue, place) -> None:
        assert ringtrue("golden", "bootstrap", "hotel", "--from", "feedback", "--out", "made.json").code == 2
        assert list(place.iterdir()) == []
