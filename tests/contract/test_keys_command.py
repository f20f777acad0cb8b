"""``ringtrue keys``: keys are made, listed and revoked; a token is shown once and kept nowhere."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ringtrue.store import Store, timestamp

Run = Callable[..., Any]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, in which nothing is configured."""
    for name in ("RINGTRUE_STORE", "RINGTRUE_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def now() -> datetime:
    return datetime.now(UTC)


def test_a_token_is_shown_once_opens_its_scopes_and_is_kept_nowhere(ringtrue: Run, place: Path) -> None:
    made = ringtrue("keys", "create", "ci", "--scope", "read", "--scope", "write", "--project", "shop")
    assert made.code == 0
    assert "keep it like a password" in made.err
    about, token = made.out.strip().splitlines()
    assert "read, write in project 'shop'" in about
    assert about.split(":")[0] in ringtrue("keys", "list", "--project", "shop").out
    with Store.open() as store:
        key = store.verify_key(token, now=now())
        assert key is not None
        assert (key.name, key.scopes, key.project) == ("ci", ("read", "write"), "shop")
        assert timestamp(now() + timedelta(89)) < str(key.expires_at) < timestamp(now() + timedelta(91))
    listed = ringtrue("keys", "list", "--project", "shop", "--json").out
    assert token not in listed
    assert not any(token.encode() in file.read_bytes() for file in (place / ".ringtrue").iterdir())


def test_keys_as_json_and_their_state(ringtrue: Run) -> None:
    made = ringtrue("keys", "create", "ci", "-s", "read", "-s", "read", "--days", "30", "--json").json
    assert made["token"].startswith("rt_")
    assert made["key"]["scopes"] == ["read"]
    with Store.open() as store:
        store.create_key("old", ["admin"], now=now() - timedelta(9), expires_at=now() - timedelta(1))
    states = {key["name"]: key["state"] for key in ringtrue("keys", "list", "--json").json["keys"]}
    assert states == {"ci": "open", "old": "ended"}
    assert ringtrue("keys", "revoke", made["key"]["key_id"], "--json").json["revoked_now"] is True
    assert ringtrue("keys", "list", "--json").json["keys"][0]["state"] == "revoked"
    with Store.open() as store:
        assert store.verify_key(made["token"], now=now()) is None


def test_revoking_twice_says_so_and_what_was_done_is_audited(ringtrue: Run) -> None:
    key_id = ringtrue("keys", "create", "ci", "--scope", "read", "--who", "desk", "--json").json["key"]["key_id"]
    assert "is revoked" in ringtrue("keys", "revoke", key_id, "--who", "night desk").out
    again = ringtrue("keys", "revoke", key_id)
    assert (again.code, "was revoked already" in again.out) == (0, True)
    with Store.open() as store:
        trail = [(entry.who, entry.what, entry.detail["name"]) for entry in store.audit(subject=key_id)]
    assert trail == [("night desk", "key revoked", "ci"), ("desk", "key created", "ci")]


def test_a_key_that_is_not_there_is_met_with_the_nearest(ringtrue: Run) -> None:
    key_id = ringtrue("keys", "create", "ci", "--scope", "read", "--json").json["key"]["key_id"]
    wrong = ringtrue("keys", "revoke", f"{key_id[:-1]}x")
    assert (wrong.code, f"did you mean '{key_id}'?" in wrong.err) == (2, True)
    # A key of another project is not there, not even as a hint.
    other = ringtrue("keys", "revoke", key_id, "--project", "desk")
    assert (other.code, "it has none at all" in other.err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["create", "ci"], "--scope"),
        (["create", "ci", "--scope", "red"], "there is no scope 'red'; did you mean 'read'"),
        (["create", " ", "--scope", "read"], "a key needs a name"),
        (["create", "ci", "--scope", "read", "--days", "0"], "--days"),
        (["list"], "no store yet"),
        (["revoke", "key_1"], "no store yet"),
    ],
)
def test_wrong_usage_ends_with_2_and_one_line(ringtrue: Run, arguments: list[str], says: str) -> None:
    found = ringtrue("keys", *arguments)
    assert (found.code, found.out) == (2, "")
    assert says in found.err
    assert found.err.count("\n") == 1


def test_an_empty_list_says_how_to_make_a_key(ringtrue: Run) -> None:
    Store.open().close()
    assert "ringtrue keys create NAME --scope read" in ringtrue("keys", "list").out
