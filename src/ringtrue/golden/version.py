"""Versions of a golden set: what its content hashes to, how it is named, what changed from one to the next (G-3).

And what a set lost on its way through a file (G-1), found by comparing it with what was read back.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ringtrue.answers import Changes, JudgmentChange
from ringtrue.errors import InputError
from ringtrue.records import Document, GoldenSet, Judgment

Bump = Literal["major", "minor", "patch", "none"]
# Nine digits are more than any set will ever see, and always make an int.
_NUMBER = "0|[1-9][0-9]{0,8}"
_VERSION = re.compile(rf"(?:(?P<name>.+)-v|v)?(?P<major>{_NUMBER})\.(?P<minor>{_NUMBER})\.(?P<patch>{_NUMBER})")
# What these say changes no number; everything else about a set does.
_WORDS = ("description", "provenance", "created_at", "slices", "profile", "metadata")
_SHOWN = 3
_RULES = ("relevance_threshold", "scale", "scope", "equivalence_classes")


@dataclass(frozen=True, order=True)
class Version:
    """A semantic version of a named set; its text is ``golden-dataset-v1.2.0``, or ``1.2.0`` where it has no name."""

    major: int
    minor: int
    patch: int
    name: str = ""

    def __str__(self) -> str:
        return f"{self.name}-v{self.number}" if self.name else self.number

    @property
    def number(self) -> str:
        """The version without the name."""
        return f"{self.major}.{self.minor}.{self.patch}"

    def bump(self, part: Bump) -> Version:
        """Return the next version.

        >>> str(parse_version("golden-dataset-v1.2.3").bump("minor"))
        'golden-dataset-v1.3.0'
        """
        if part == "major":
            return replace(self, major=self.major + 1, minor=0, patch=0)
        if part == "minor":
            return replace(self, minor=self.minor + 1, patch=0)
        return replace(self, patch=self.patch + 1) if part == "patch" else self


def parse_version(text: str) -> Version:
    """Return the version in ``1.2.0``, ``v1.2.0`` or ``golden-dataset-v1.2.0``; raises InputError otherwise.

    >>> parse_version("golden-dataset-v1.2.0")
    Version(major=1, minor=2, patch=0, name='golden-dataset')
    """
    match = _VERSION.fullmatch(text)
    if match is None:
        raise InputError(f"'{text:.100}' is not a version; write major.minor.patch like 1.2.0 or golden-dataset-v1.2.0")
    return Version(int(match["major"]), int(match["minor"]), int(match["patch"]), match["name"] or "")


def version_name(golden: GoldenSet) -> str:
    """Return the name that every result carries: ``hotel-v1.0.0``, also if the set writes its version as ``v1.0.0``."""
    number = golden.version.removeprefix(f"{golden.id}-")
    return f"{golden.id}-v{re.sub(r'^v(?=[0-9])', '', number)}"


def corpus_hash(documents: Iterable[Document]) -> str:
    """Return the SHA-256 of the documents alone, whatever their order."""
    digest = hashlib.sha256()
    for document in sorted(documents, key=lambda document: document.doc_id):
        _feed(digest, _document(document))
    return digest.hexdigest()


def content_hash(golden: GoldenSet) -> str:
    """Return the SHA-256 of all that can change a number: queries, documents, judgments and the rules to read them.

    The name, the version and the words about the set are left out, so that a renamed copy has the same hash.
    """
    digest = hashlib.sha256()
    _feed(digest, {name: getattr(golden, name) for name in _RULES})
    _feed(digest, corpus_hash(golden.documents) if golden.documents else golden.corpus_hash)
    for query in sorted(golden.queries, key=lambda query: query.query_id):
        _feed(digest, [query.query_id, query.text, query.metadata, query.negative])
    for judgment in sorted(golden.judgments, key=lambda judgment: (judgment.query_id, judgment.doc_id)):
        _feed(digest, [judgment.query_id, judgment.doc_id, judgment.grade, judgment.source, judgment.metadata])
    return digest.hexdigest()


def _feed(digest: Any, value: Any) -> None:
    digest.update(canonical(value).encode("utf-8", "surrogatepass"))
    # Without a mark between them, moving the end of one record to the start of the next would go unseen.
    digest.update(b"\n")


def _document(document: Document) -> list[Any]:
    return [document.doc_id, document.title, document.text, document.tags, document.metadata]


@dataclass(frozen=True)
class Difference:
    """What happened between two versions of a set, and how the version number should move."""

    queries: Changes
    documents: Changes
    judgments_added: tuple[JudgmentChange, ...]
    judgments_removed: tuple[JudgmentChange, ...]
    judgments_changed: tuple[JudgmentChange, ...]
    fields: Mapping[str, tuple[Any, Any]]
    suggested: Bump
    reason: str


def diff(old: GoldenSet, new: GoldenSet) -> Difference:
    """Return the difference between two versions; ids decide what is the same thing, never the position."""
    queries = _changes(
        {query.query_id: canonical([query.text, query.metadata, query.negative]) for query in old.queries},
        {query.query_id: canonical([query.text, query.metadata, query.negative]) for query in new.queries},
    )
    documents = _changes(
        {document.doc_id: canonical(_document(document)) for document in old.documents},
        {document.doc_id: canonical(_document(document)) for document in new.documents},
    )
    before, after = _pairs(old), _pairs(new)
    added = tuple(_change(None, after[pair]) for pair in after if pair not in before)
    removed = tuple(_change(before[pair], None) for pair in before if pair not in after)
    kept = [(before[pair], after[pair]) for pair in after if pair in before]
    changed = tuple(_change(first, second) for first, second in kept if _said(first) != _said(second))
    fields = {
        name: (getattr(old, name), getattr(new, name))
        for name in ("id", *_RULES, *_WORDS)
        if canonical(getattr(old, name)) != canonical(getattr(new, name))
    }
    # A corpus that lies elsewhere shows its change only by its hash.
    if not (old.documents and new.documents) and old.corpus_hash != new.corpus_hash:
        fields["corpus_hash"] = (old.corpus_hash, new.corpus_hash)
    suggested, reason = _suggest(queries, documents, (added, removed, changed), fields)
    return Difference(queries, documents, added, removed, changed, fields, suggested, reason)


def _changes(old: Mapping[str, str], new: Mapping[str, str]) -> Changes:
    return Changes(
        added=tuple(key for key in new if key not in old),
        removed=tuple(key for key in old if key not in new),
        changed=tuple(key for key in new if key in old and new[key] != old[key]),
    )


def _pairs(golden: GoldenSet) -> dict[tuple[str, str], Judgment]:
    return {(judgment.query_id, judgment.doc_id): judgment for judgment in golden.judgments}


def _said(judgment: Judgment) -> str:
    return canonical([judgment.grade, judgment.source, judgment.metadata])


def _change(old: Judgment | None, new: Judgment | None) -> JudgmentChange:
    latest = new or old
    assert latest is not None
    annotator = latest.metadata.get("annotator")
    by = str(annotator) if annotator is not None else latest.source
    return JudgmentChange(latest.query_id, latest.doc_id, old.grade if old else None, new.grade if new else None, by)


def _suggest(
    queries: Changes,
    documents: Changes,
    judgments: tuple[tuple[JudgmentChange, ...], ...],
    fields: Mapping[str, tuple[Any, Any]],
) -> tuple[Bump, str]:
    """Return how far the version moves: major when old results stop being comparable, minor when numbers can move."""
    checks: list[tuple[Bump, str, Callable[[], bool]]] = [
        ("major", "queries were removed or reworded", lambda: bool(queries.removed or queries.changed)),
        ("major", "documents were removed", lambda: bool(documents.removed)),
        ("major", "the rules for reading the judgments changed", lambda: any(name in fields for name in _RULES)),
        ("major", "the corpus is another one", lambda: "corpus_hash" in fields),
        ("minor", "queries or documents were added or edited", lambda: bool(queries or documents)),
        ("minor", "judgments changed", lambda: any(judgments)),
        ("patch", "only words about the set changed", lambda: bool(fields)),
    ]
    return next(((bump, reason) for bump, reason, applies in checks if applies()), ("none", "nothing changed"))


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
    names = ["id", "version", *_RULES, *_WORDS[:-1], *(["corpus_hash"] if not after.documents else [])]
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
