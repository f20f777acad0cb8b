"""Nothing of a candidate stays behind: no word of the question in an error, no process that it started."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import candidates
from ringtrue.log import Redactor
from ringtrue.rollout import Shadow
from ringtrue.store import AuditEntry, Flag, ShadowRun

TEXT = "mail ada@example.org about the divorce"


class Rows:
    """A store that keeps rows in a list."""

    def __init__(self) -> None:
        self.rows: list[ShadowRun] = []

    def add_shadow_runs(self, rows: Sequence[ShadowRun]) -> int:
        self.rows.extend(rows)
        return len(rows)

    def audit(self, **_: object) -> list[AuditEntry]:
        return []

    def flag(self, name: str, *, project: str = "default") -> Flag | None:
        return None

    def add_audit(self, entry: AuditEntry) -> None:
        pass


def quotes(text: str, *, k: int = 10) -> list[str]:
    raise ValueError(f"cannot parse {text!r}")


def production(text: str, *, k: int = 10) -> list[str]:
    return ["a", "b"]


def failing(text: str) -> str:
    raise RuntimeError(text)


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, "ValueError: cannot parse 'mail [email] about the divorce'"),
        ({"redact": Redactor(hash_only=True, salt="pepper")}, "ValueError"),
        ({"redact": failing}, "ValueError"),
        ({"redact": None}, f"ValueError: cannot parse {TEXT!r}"),
    ],
)
def test_an_error_of_the_candidate_is_stored_as_the_log_stores_texts(options: dict[str, Any], wanted: str) -> None:
    store = Rows()
    with Shadow(production, quotes, store, "new", sample=1, **options) as search:
        search.search(TEXT, query_id="q1")
    assert [row.error for row in store.rows] == [wanted]


def test_hash_only_keeps_what_we_say_ourselves_of_a_candidate_that_hangs() -> None:
    store = Rows()
    redact = Redactor(hash_only=True, salt="pepper")
    with Shadow(production, candidates.hangs, store, "new", sample=1, timeout=0.05, workers=1, redact=redact) as search:
        search.search(TEXT, query_id="q1")
    assert [row.error for row in store.rows] == ["took longer than 0.05 s; its thread was left behind"]


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize(
    ("what", "says"), [("hang", "its process was killed"), ("die", "the candidate's process ended with exit code 7")]
)
def test_what_a_candidate_started_ends_with_it(tmp_path: Path, what: str, says: str) -> None:
    store, place = Rows(), tmp_path / "child"
    options: dict[str, Any] = {"sample": 1, "isolate": "process", "workers": 1, "timeout": 5.0}
    with Shadow(production, candidates.leaves_a_child, store, "new", **options) as search:
        search.search(f"{place}|{what}", query_id="q1")
    assert [says in (row.error or "") for row in store.rows] == [True]
    child = int(place.read_text(encoding="utf-8"))
    end = time.monotonic() + 60
    while _lives(child) and time.monotonic() < end:
        time.sleep(0.02)
    assert not _lives(child)


def _lives(pid: int) -> bool:
    """True for a process that has not ended; one that nobody has waited for yet has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False
