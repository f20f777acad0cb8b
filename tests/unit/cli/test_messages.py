"""Messages of commands that send their reader to the right place."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ringtrue.errors import InputError, MissingInput
from ringtrue.retrieve.connectors import connect
from ringtrue.rollout.abtest import found_test
from ringtrue.store import LoggedQuery, ReviewItem, Store

NOW = "2026-03-01T12:00:00Z"


@pytest.fixture
def place(tmp_path: Path) -> str:
    with Store.open(tmp_path / "store.sqlite") as store:
        store.add_queries([LoggedQuery("eq_1", "pool", "shop", datetime.now(UTC).isoformat())])
        store.add_review_items(
            [
                ReviewItem("k1", "q1", "pool", "d1", NOW, priority=0.1, state="pending_review"),
                ReviewItem("k2", "q2", "spa", "d2", NOW, priority=0.9, state="approved"),
            ]
        )
    return str(tmp_path / "store.sqlite")


def test_a_port_without_its_place_in_the_url_is_named() -> None:
    with pytest.raises(InputError, match=r"port is set, but url has no \{port\}"):
        connect({"kind": "http", "url": "http://localhost/search", "port": 8000, "id": "id"})


def test_the_cure_for_a_missing_test_names_its_feature(place: str) -> None:
    with Store.open(place) as store, pytest.raises(MissingInput, match="ringtrue test create new-ranking"):
        found_test(store, "new-ranking")


def test_log_tail_names_the_filter_that_matched_nothing(ringtrue: Any, place: str) -> None:
    said = ringtrue("log", "tail", "--tool", "chees", "--store", place)
    assert "no search of project 'default' matches --tool chees --traffic user" in said.err + said.out


def test_the_list_of_pairs_begins_with_those_to_review(ringtrue: Any, place: str) -> None:
    items = ringtrue("review", "list", "--store", place, "--json").json["items"]
    assert [item["state"] for item in items] == ["pending_review", "approved"]


def test_a_first_refresh_of_a_missing_set_says_that_it_needs_one(ringtrue: Any, place: str) -> None:
    assert "--first needs an existing set" in ringtrue("golden", "refresh", "new", "--first", "--store", place).err
