"""Looks at the held-out part of a golden set are counted, whichever command takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ringtrue.records import GoldenSet, Qrels
    from ringtrue.run import Origin


def count_look(at: Qrels | GoldenSet | Origin, source: str, *, who: str, what: str) -> None:
    """Record a look in the ledger beside the set, and say which one it was; do nothing if no held-out part was looked at."""
    from ringtrue.records import GoldenSet, Qrels

    if isinstance(at, Qrels) or (at.metadata.get("split") if isinstance(at, GoldenSet) else at.split) != "held_out":
        return
    from datetime import UTC, datetime

    from ringtrue.cli import show
    from ringtrue.golden import ledger_beside, record_look, version_name

    when = datetime.now(UTC).isoformat(timespec="seconds")
    version = version_name(at) if isinstance(at, GoldenSet) else at.version
    count = record_look(ledger_beside(source), who=who, what=what, when=when, version=version)
    show.note(f"this was look {count} at the held-out part; each look makes it a little less held out")
