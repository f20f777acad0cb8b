"""Keys to the service: only hashes are stored, and a key opens nothing once it ended."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import select

from ringtrue.errors import InputError
from ringtrue.store import Store
from ringtrue.store.tables import KEY as KEY_FORM
from store_contents import KEY, LATER, NOON, TOKEN

SOON, MUCH_LATER = "2026-03-01T12:00:30Z", "2026-03-02T12:00:00.000000Z"


def test_only_the_hash_of_a_token_is_stored(store: Store) -> None:
    key, token = store.create_key("dashboard", ["read"], now=NOON)
    assert token.startswith("rt_")
    assert len(token) == 3 + 43  # 256 bits
    with store._reading() as connection:
        (row,) = connection.execute(select(KEY_FORM.table)).all()
    assert row.key_hash == hashlib.sha256(token.encode()).hexdigest()
    assert token not in str(row)
    assert token not in str(store.keys()) + str(key)
    assert store.create_key("dashboard", ["read"], now=NOON)[1] != token


def test_a_token_opens_what_its_key_says(store: Store) -> None:
    key, token = store.create_key("ci", ["read", "write"], now=NOON, project="shop")
    assert store.verify_key(token, now=NOON) == replace(key, last_used_at=NOON)
    assert [key.allows(scope) for scope in ("read", "write", "review", "admin")] == [True, True, False, False]
    assert replace(key, scopes=("admin",)).allows("review")
    assert store.verify_key(token + "x", now=NOON) is None
    assert store.verify_key(key.key_id, now=NOON) is None
    assert store.verify_key("", now=NOON) is None
    assert (store.keys(), [one.name for one in store.keys(project="shop")]) == ([], ["ci"])


def test_an_expired_or_revoked_key_opens_nothing(store: Store) -> None:
    _, short = store.create_key("short", ["read"], now=NOON, expires_at=LATER)
    assert store.verify_key(short, now=NOON) is not None
    assert store.verify_key(short, now=LATER) is None
    key, token = store.create_key("long", ["read"], now=NOON)
    assert store.revoke_key(key.key_id, now=LATER, project="shop") is False
    assert [store.revoke_key(key.key_id, now=LATER), store.revoke_key(key.key_id, now=MUCH_LATER)] == [True, False]
    assert store.verify_key(token, now=LATER) is None
    assert store.keys()[1].revoked_at == LATER


def test_the_last_use_is_noted_once_a_minute(store: Store) -> None:
    _, token = store.create_key("dashboard", ["read"], now=NOON)
    assert store.keys()[0].last_used_at is None
    for now, noted in ((NOON, NOON), (SOON, NOON), (MUCH_LATER, MUCH_LATER)):
        store.verify_key(token, now=now)
        assert store.keys()[0].last_used_at == noted


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"scopes": ["raed"]}, r"'raed'.*read"),
        ({"scopes": []}, "scope"),
        ({"name": " "}, "name"),
        ({"expires_at": NOON}, "later"),
    ],
)
def test_a_key_that_could_open_nothing_is_refused(store: Store, changed: dict[str, Any], says: str) -> None:
    given: dict[str, Any] = {"name": "ci", "scopes": ["read"], **changed}
    with pytest.raises(InputError, match=says):
        store.create_key(given.pop("name"), given.pop("scopes"), now=LATER, **given)
    assert store.keys() == []


def test_no_two_keys_share_an_id_or_a_token(store: Store) -> None:
    store.add_key(KEY, TOKEN)
    for key, token in ((KEY, "rt_other"), (replace(KEY, key_id="key_2", project="shop"), TOKEN)):
        with pytest.raises(InputError, match="already") as caught:
            store.add_key(key, token)
        assert TOKEN not in str(caught.value)
