"""What a set lost on its way through a format, found by comparing it with what was read back."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ringtrue.golden.formats.draft import FACTS
from ringtrue.records import GoldenSet

_SHOWN = 3


def losses(before: GoldenSet, after: GoldenSet) -> tuple[str, ...]:
    """Return one line per kind of thing that ``after`` lacks or holds differently; nothing when both say the same."""
    lost = [f"{name} ({_short(old)} becomes {_short(new)})" for name, old, new in _header_changes(before, after)]
    lost += _metadata([("", before.metadata, after.metadata)], "the set")
    lost += _compare(
        {query.query_id: query for query in before.queries},
        {query.query_id: query for query in after.queries},
        "queries",
        {"text": lambda query: query.text, "negative": lambda query: query.negative},
    )
    lost += _compare(
        {document.doc_id: document for document in before.documents},
        {document.doc_id: document for document in after.documents},
        "documents",
        {"title": lambda doc: doc.title, "text": lambda doc: doc.text, "tags": lambda doc: list(doc.tags)},
    )
    lost += _compare(
        {f"{judgment.query_id} / {judgment.doc_id}": judgment for judgment in before.judgments},
        {f"{judgment.query_id} / {judgment.doc_id}": judgment for judgment in after.judgments},
        "judgments",
        {"grade": lambda judgment: judgment.grade, "source": lambda judgment: judgment.source},
    )
    return tuple(lost)


def canonical(value: Any) -> str:
    """Return one text per value, whatever the order of its keys; 1, 1.0 and True stay apart.

    >>> canonical({"b": (1, 2), "a": True})
    '{"a": true, "b": [1, 2]}'
    """
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=_other)


def _other(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else repr(value)


def _header_changes(before: GoldenSet, after: GoldenSet) -> list[tuple[str, Any, Any]]:
    names = [*FACTS, *(["corpus_hash"] if not after.documents else [])]
    pairs = [(name, getattr(before, name), getattr(after, name)) for name in names]
    return [pair for pair in pairs if canonical(pair[1]) != canonical(pair[2])]


def _compare(
    before: Mapping[str, Any], after: Mapping[str, Any], what: str, parts: Mapping[str, Callable[[Any], Any]]
) -> list[str]:
    lost = []
    gone = [key for key in before if key not in after]
    if gone:
        lost.append(f"all {len(gone)} {what}" if len(gone) == len(before) else f"{len(gone)} {what} ({_names(gone)})")
    new = [key for key in after if key not in before]
    if new:
        lost.append(f"{len(new)} {what} appear that were not there ({_names(new)})")
    shared = [key for key in before if key in after]
    for name, part in parts.items():
        changed = [key for key in shared if canonical(part(before[key])) != canonical(part(after[key]))]
        if changed:
            lost.append(f"{name} of {len(changed)} {what} ({_names(changed)})")
    return lost + _metadata([(key, before[key].metadata, after[key].metadata) for key in shared], what)


def _metadata(pairs: Sequence[tuple[str, Mapping[str, Any], Mapping[str, Any]]], what: str) -> list[str]:
    counts: dict[str, int] = {}
    absent = object()
    for _, old, new in pairs:
        for key in {**old, **new}:
            mine, theirs = old.get(key, absent), new.get(key, absent)
            if (mine is absent) != (theirs is absent) or canonical(mine) != canonical(theirs):
                counts[key] = counts.get(key, 0) + 1
    many = what != "the set"
    return [f"metadata '{key}' of {f'{count} {what}' if many else what}" for key, count in counts.items()]


def _names(keys: Sequence[str]) -> str:
    shown = ", ".join(f"'{key}'" for key in keys[:_SHOWN])
    return shown + (" …" if len(keys) > _SHOWN else "")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:39] + "…"
