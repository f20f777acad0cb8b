"""Seven intents, read off the words of a prompt."""

from __future__ import annotations

import pytest

from ringtrue.memory.hook.intents import INTENTS, intent_of


@pytest.mark.parametrize(
    ("text", "intent"),
    [
        ("why did we choose Postgres rather than SQLite?", "find_decision"),
        ("the worker crashes with a timeout since noon", "fix_bug"),
        ("add an endpoint for refunds", "add_feature"),
        ("refactor the legacy importer", "refactor"),
        ("which secrets could an attacker read?", "security_audit"),
        ("where is the retention policy written down?", "find_spec"),
        ("how does the ledger work", "understand"),
        ("", "understand"),
    ],
)
def test_an_intent_is_read_off_its_signs(text: str, intent: str) -> None:
    assert intent_of(text) == intent
    assert intent in INTENTS


def test_there_are_seven() -> None:
    assert len(set(INTENTS)) == 7
