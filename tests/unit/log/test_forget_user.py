"""A user who was deleted does not come back from a spool, nor stay in what a refresh made of the user's words."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from ringtrue.errors import CannotDecide
from ringtrue.feedback import derive_into, qrels
from ringtrue.log import FeedbackEvent, LoggedQuery, QueryLog, log_folder
from ringtrue.records import Document, GoldenSet, Judgment, Query
from ringtrue.review import ReviewQueue, propose_from_log
from ringtrue.store import Store, StoredJudgment, timestamp
from ringtrue.store.tables import TABLES

NOW = datetime.now(UTC)
DOCUMENTS = tuple(Document(f"d{number}", f"document {number}") for number in range(5))
GOLDEN = GoldenSet(
    "inn", "1.0.0", (Query("q0", "breakfast"),), (Judgment("q0", "d0", 2, "bootstrap"),), DOCUMENTS, created_at="2026-11-01"
)


def at(minutes: float) -> str:
    return timestamp(NOW + timedelta(minutes=minutes))


def words_in(store: Store) -> set[str]:
    with store._reading() as connection:
        return set(re.findall(r"\w+", str([connection.execute(select(table)).all() for table in TABLES])))


def test_what_lies_in_the_spool_when_a_user_is_deleted_never_arrives(tmp_path: Path) -> None:
    away = QueryLog("postgresql://nobody@127.0.0.1:9/none", folder=tmp_path / "log")
    away.record(LoggedQuery("eq_1", "secret", "shop", at(-1), user_id="u1", session_id="s"))
    away.record(LoggedQuery("eq_2", "pool", "shop", at(-1), user_id="u2"))
    away.feedback(FeedbackEvent("ef_1", "click", "s", at(-1), query_id="eq_1", item_id="d1"))
    assert away.flush(60)
    assert away.close()
    assert away.counts.spooled == 3
    with Store.open(tmp_path / "s.sqlite") as store:
        assert store.delete_user("u1", now=NOW) == 0  # the log had not arrived yet
        with QueryLog(store, folder=tmp_path / "log") as log:
            log.record(LoggedQuery("eq_3", "new", "shop", at(1), user_id="u1"))  # the user is back, knowingly
            until = time.monotonic() + 30
            while not log.recovered and time.monotonic() < until:
                time.sleep(0.02)
            assert [(one.replayed, one.counts.forgotten) for one in log.recovered] == [(1, 2)]
        assert [row.query_id for row in store.queries()] == ["eq_2", "eq_3"]
        assert store.feedback() == []


def test_no_word_of_the_user_stays_in_a_refresh(tmp_path: Path) -> None:
    asked = ["Late  checkout?", "swimming pool opening", "parking"]
    with Store.open(tmp_path / "s.sqlite") as store:
        for user, texts in (("u1", asked), ("u2", asked[2:])):
            store.add_queries(
                [
                    LoggedQuery(f"eq_{user}_{number}", text, "shop", at(-60 + number), user_id=user, result_ids=("d1", "d2"))
                    for number, text in enumerate(texts)
                ]
            )
        propose_from_log(store, GOLDEN, now=NOW, who="ann")
        assert {"swimming", "checkout", "parking"} <= words_in(store)
        assert len(ReviewQueue(store).items()) == 6
        store.delete_user("u1")
        assert {"swimming", "checkout", "opening", "u1"} & words_in(store) == set()
        assert {item.query for item in ReviewQueue(store).items()} == {"parking"}
        found = propose_from_log(store, GOLDEN, now=NOW, who="ann")  # the proposal is still there, with what is left
        assert ([query.text for query in found.proposal.new], found.progress.pairs) == (["parking"], 2)
        store.delete_user("u2")
        with pytest.raises(CannotDecide, match="no search"):
            propose_from_log(store, GOLDEN, now=NOW, who="ann")


def test_judgments_of_others_count_on_when_the_user_under_whose_search_they_stand_is_deleted(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s.sqlite") as store:
        for user, text, minute in (("u1", "Late checkout", -60), ("u2", "late checkout", -50)):
            store.add_queries(
                [
                    LoggedQuery(
                        f"eq_{user}", text, "t", at(minute), user_id=user, session_id=f"s {user}", result_ids=("d1", "d2")
                    )
                ]
            )
        clicked = FeedbackEvent("e1", "click", "s u1", at(-40), query_id="eq_u1", item_id="d1", rank_in_results=1, user_id="u1")
        said = FeedbackEvent("e2", "validate_useful", "s u2", at(-40), query_id="eq_u2", item_id="d2", user_id="u2")
        store.add_feedback([clicked, said])
        derive_into(store, now=at(0))
        store.add_judgments([StoredJudgment("eq_u1", "d3", 3, "manual", at(0), annotator="ann")])
        assert {one.query_id for one in store.judgments()} == {"eq_u1"}
        store.delete_user("u1")
        assert [(one.query_id, one.item_id, one.source) for one in store.judgments()] == [("eq_u2", "d3", "manual")]
        derive_into(store, now=at(1))  # what was derived may have rested on the user, and comes back without
        kept = {(one.query_id, one.item_id, one.source) for one in store.judgments()}
        assert kept == {("eq_u2", "d2", "validated"), ("eq_u2", "d3", "manual")}
        assert {(one.doc_id, one.grade) for one in qrels(store.judgments(), store.queries())} == {("d2", 3), ("d3", 3)}


def test_forgetting_by_command_empties_the_spools_of_processes_that_ended(ringtrue: Any, tmp_path: Path) -> None:
    place = tmp_path / "s.sqlite"
    Store.open(place).close()
    folder = log_folder(place)
    assert folder is not None
    with QueryLog("postgresql://nobody@127.0.0.1:9/none", folder=folder) as away:
        away.record(LoggedQuery("eq_1", "giraffe", "shop", at(-1), user_id="u1"))
        away.record(LoggedQuery("eq_2", "pool", "shop", at(-1), user_id="u2"))
        assert away.flush(60)
    assert any(b"giraffe" in file.read_bytes() for file in folder.iterdir())
    assert ringtrue("store", "forget", "u1", "--yes", "--store", place, "--json").json["spooled"] == 1
    assert not any(b"giraffe" in file.read_bytes() for file in folder.iterdir())
    with Store.open(place) as store:
        assert [row.query for row in store.queries()] == ["pool"]
