"""Versions of a golden set: what its content hashes to, how it is named, what changed from one to the next.

And what a set lost on its way through a file, found by comparing it with what was read back.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
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
        numbers = {
            "major": (self.major + 1, 0, 0),
            "minor": (self.major, self.minor + 1, 0),
            "patch": (self.major, self.minor, self.patch + 1),
            "none": (self.major, self.minor, self.patch),
        }
        return Version(*numbers[part], self.name)


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
class VersionDifference:
    """What happened between two versions of a set, and how the version number should move."""

    queries: Changes
    documents: Changes
    judgments_added: tuple[JudgmentChange, ...]
    judgments_removed: tuple[JudgmentChange, ...]
    judgments_changed: tuple[JudgmentChange, ...]
    fields: Mapping[str, tuple[Any, Any]]
    suggested: Bump
    reason: str


def diff(old: GoldenSet, new: GoldenSet) -> VersionDifference:
    """Return the difference between two versions; ids decide what is the same thing, never the position."""
    queries = _changes(old.queries, new.queries, lambda one: (one.query_id, [one.text, one.metadata, one.negative]))
    documents = _changes(old.documents, new.documents, lambda one: (one.doc_id, _document(one)))
    before, after = ({(one.query_id, one.doc_id): one for one in golden.judgments} for golden in (old, new))
    added = tuple(_change(None, after[pair]) for pair in after if pair not in before)
    removed = tuple(_change(before[pair], None) for pair in before if pair not in after)
    kept = [(before[pair], after[pair]) for pair in after if pair in before]
    changed = tuple(
        _change(*both) for both in kept if len({canonical([one.grade, one.source, one.metadata]) for one in both}) > 1
    )
    fields = _changed_fields(old, new, ("id", *_RULES, *_WORDS))
    # A corpus that lies elsewhere shows its change only by its hash.
    if not (old.documents and new.documents) and old.corpus_hash != new.corpus_hash:
        fields["corpus_hash"] = (old.corpus_hash, new.corpus_hash)
    suggested, reason = _suggest(queries, documents, (added, removed, changed), fields)
    return VersionDifference(queries, documents, added, removed, changed, fields, suggested, reason)


def _changed_fields(old: Any, new: Any, names: Iterable[str]) -> dict[str, tuple[Any, Any]]:
    both = {name: (getattr(old, name), getattr(new, name)) for name in names}
    return {name: (first, second) for name, (first, second) in both.items() if canonical(first) != canonical(second)}


def _changes(old: Iterable[Any], new: Iterable[Any], known: Callable[[Any], tuple[str, Any]]) -> Changes:
    """Return what changed; ``known`` returns the id of a query or document and what it says."""
    before, after = ({key: canonical(value) for key, value in map(known, side)} for side in (old, new))
    return Changes(
        added=tuple(key for key in after if key not in before),
        removed=tuple(key for key in before if key not in after),
        changed=tuple(key for key in after if key in before and after[key] != before[key]),
    )


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
    checks: tuple[tuple[Bump, str, object], ...] = (
        ("major", "queries were removed or reworded", queries.removed or queries.changed),
        ("major", "documents were removed", documents.removed),
        ("major", "the rules for reading the judgments changed", fields.keys() & set(_RULES)),
        ("major", "the corpus is another one", "corpus_hash" in fields),
        ("minor", "queries or documents were added or edited", queries or documents),
        ("minor", "judgments changed", any(judgments)),
        ("patch", "only words about the set changed", fields),
    )
    return next(((bump, reason) for bump, reason, applies in checks if applies), ("none", "nothing changed"))


def losses(before: GoldenSet, after: GoldenSet) -> tuple[str, ...]:
    """Return one line per kind of thing that ``after`` lacks or holds differently; nothing when both say the same."""
    names = ["id", "version", *_RULES, *_WORDS[:-1], *(["corpus_hash"] if not after.documents else [])]
    changed = _changed_fields(before, after, names)
    lost = [f"{name} ({_short(old)} becomes {_short(new)})" for name, (old, new) in changed.items()]
    lost += _metadata([(before.metadata, after.metadata)], "the set")
    for what, ids, parts in _PARTS:
        old, new = (
            {" / ".join(getattr(one, name) for name in ids): one for one in getattr(golden, what)} for golden in (before, after)
        )
        lost += _lost(old, new, what, parts)
    return tuple(lost)


_PARTS = (
    ("queries", ("query_id",), ("text", "negative")),
    ("documents", ("doc_id",), ("title", "text", "tags")),
    ("judgments", ("query_id", "doc_id"), ("grade", "source")),
)
"""What a set is made of: the attribute, what its items are known by, and what each of them says."""


def canonical(value: Any) -> str:
    """Return one text per value, whatever the order of its keys; 1, 1.0 and True stay apart.

    >>> canonical({"b": (1, 2), "a": True})
    '{"a": true, "b": [1, 2]}'
    """
    return json.dumps(
        value, sort_keys=True, ensure_ascii=False, default=lambda it: dict(it) if isinstance(it, Mapping) else repr(it)
    )


def _lost(before: Mapping[str, Any], after: Mapping[str, Any], what: str, parts: Iterable[str]) -> list[str]:
    lost = []
    gone = [key for key in before if key not in after]
    if gone:
        lost.append(f"all {len(gone)} {what}" if len(gone) == len(before) else f"{len(gone)} {what} ({_names(gone)})")
    new = [key for key in after if key not in before]
    if new:
        lost.append(f"{len(new)} {what} appear that were not there ({_names(new)})")
    shared = [key for key in before if key in after]
    for name in parts:
        changed = [key for key in shared if _changed_fields(before[key], after[key], [name])]
        if changed:
            lost.append(f"{name} of {len(changed)} {what} ({_names(changed)})")
    return lost + _metadata([(before[key].metadata, after[key].metadata) for key in shared], what)


def _metadata(pairs: Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]], what: str) -> list[str]:
    counts: Counter[str] = Counter()
    for old, new in pairs:
        for key in {**old, **new}:
            counts[key] += key not in old or key not in new or canonical(old[key]) != canonical(new[key])
    return [f"metadata '{key}' of {what if what == 'the set' else f'{n} {what}'}" for key, n in counts.items() if n]


def _names(keys: Sequence[str]) -> str:
    shown = ", ".join(f"'{key}'" for key in keys[:_SHOWN])
    return shown + (" …" if len(keys) > _SHOWN else "")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:39] + "…"
