"""One format → another, with an account of what the new one cannot hold (G-1)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ringtrue.golden import formats
from ringtrue.golden.load import locate


def convert(
    source: str | Path,
    target: str | Path,
    *,
    format: str | None = None,
    split: str | None = None,
    columns: Mapping[str, str] | None = None,
    overwrite: bool = False,
) -> tuple[str, ...]:
    """Read a set by path or shipped name, write it to ``target``, and return what was lost, one line each.

    ``columns`` names the columns of a table: ``{"doc_id": "sku"}``. The new format follows from the target's ending unless
    ``format`` names it. Raises InputError as ``save`` does.
    """
    golden = formats.read(locate(source), split=split, columns=columns)
    return formats.save(golden, target, format=format, overwrite=overwrite)
