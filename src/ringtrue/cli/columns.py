"""``--columns query=term,count=hits``: what a table calls our columns."""

from __future__ import annotations

from ringtrue.errors import InputError


def columns_of(text: str) -> dict[str, str]:
    """Return what ``--columns`` says: our name of a column and the file's; raises InputError for anything else."""
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    for ours, _, theirs in pairs:
        if not ours.strip() or not theirs.strip():
            raise InputError(f"--columns {text!r:.80} cannot be read; write it like query=question,doc_id=sku")
    return {ours.strip(): theirs.strip() for ours, _, theirs in pairs}
