"""Secrets in records: found where they stand, and replaced."""

from __future__ import annotations

import json

import pytest

from made_secrets import planted
from ringtrue.errors import InputError
from ringtrue.memory.hook.guard import find_secrets
from ringtrue.memory.record_check import refuse_secrets, secrets_in, without_secrets

KEYS = [(text, value) for kind, text, value in planted() if find_secrets(text)]


def test_what_the_scanner_finds_in_a_text_is_found_and_replaced_in_every_field() -> None:
    assert len(KEYS) > 50
    for text, _ in KEYS:
        record = {"id": "x", "title": text, "tags": [text], "content": {"steps": ["ok", text], "deep": {"er": text}}}
        assert {secret.field for secret in secrets_in(record)} == {"title", "tags[0]", "content.steps[1]", "content.deep.er"}
        cleaned = without_secrets(record)
        assert secrets_in(cleaned) == [], text
        assert find_secrets(json.dumps(cleaned, ensure_ascii=False)) == [], text
        assert cleaned["content"]["steps"][0] == "ok"


def test_the_value_of_a_secret_is_in_no_message() -> None:
    record = {"id": "x", "content": {"rule": "password=Tr0ub4dor3xyz"}}
    with pytest.raises(InputError) as error:
        refuse_secrets(record)
    assert "Tr0ub4dor3xyz" not in str(error.value) + repr(secrets_in(record))
    assert "content.rule, characters 10 to 22: a password" in str(error.value)


def test_the_name_of_a_field_tells_that_its_value_is_a_secret() -> None:
    (secret,) = secrets_in({"content": {"password": "Tr0ub4dor3xyz"}})
    assert (secret.field, secret.value) == ("content.password", "Tr0ub4dor3xyz")
    assert without_secrets({"password": "Tr0ub4dor3xyz"}) == {"password": "[password removed]"}


def test_what_was_there_before_is_not_refused_again() -> None:
    record = {"id": "x", "content": {"rule": "password=Tr0ub4dor3xyz"}}
    refuse_secrets({**record, "title": "new"}, before=record)
    with pytest.raises(InputError, match="title"):
        refuse_secrets({**record, "title": "password=0therPass77"}, before=record)
