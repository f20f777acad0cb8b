"""Golden sets, version by version: ``/v1/golden``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ringtrue.client.reading import read
from ringtrue.client.wire import Wire, encoded, segment
from ringtrue.errors import InputError, nearest

KINDS = {
    "json": "application/json",
    "yaml": "application/yaml",
    "jsonl": "application/x-ndjson",
    "zip": "application/zip",
}
"""What an upload may be, and the content type that says so."""


@dataclass(frozen=True, slots=True)
class GoldenItem:
    """A golden set, or one version of it, as a list shows it."""

    name: str
    version: str
    created_at: str | None
    """None for a set that comes with Ringtrue."""
    versions: int
    shipped: bool


@dataclass(frozen=True, slots=True)
class GoldenProblem:
    """One thing that validation found."""

    severity: Literal["error", "warning"]
    rule: str
    place: str
    message: str
    cure: str


@dataclass(frozen=True, slots=True)
class GoldenVersion:
    """One version of a golden set, with what validation says of it."""

    name: str
    version: str
    version_name: str
    """How results name it: hotel-v1.0.0."""
    created_at: str | None
    content_hash: str
    corpus_hash: str | None
    description: str
    profile: str
    provisional: bool
    """True while no person confirmed a judgment."""
    confirmed: int
    """How many judgments a person confirmed; ``figures["judgments"]`` is how many there are."""
    relevance_threshold: int
    scale: tuple[int, ...]
    slices: tuple[str, ...]
    figures: Mapping[str, Any]
    ok: bool
    problems: tuple[GoldenProblem, ...]
    rules: tuple[str, ...]
    new: bool
    """After an upload: False where this version was there already, the same."""
    content: Mapping[str, Any] | None = None
    """The whole set, where it was asked for."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Ids that came, went, or stayed with another content."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JudgmentChange:
    """A pair that is judged differently; a grade of None means not judged on that side."""

    query_id: str
    doc_id: str
    old: int | None
    new: int | None
    by: str | None


@dataclass(frozen=True, slots=True)
class GoldenDifference:
    """What changed from one version of a set to another, and how far the version should have moved."""

    queries: Changes
    documents: Changes
    judgments_added: tuple[JudgmentChange, ...]
    judgments_removed: tuple[JudgmentChange, ...]
    judgments_changed: tuple[JudgmentChange, ...]
    fields: tuple[str, ...]
    suggested: Literal["major", "minor", "patch", "none"]
    reason: str


class Golden:
    """The golden sets of the project, and those that come with Ringtrue."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def list(self) -> Iterator[GoldenItem]:
        """Yield the golden sets by name."""
        return self._wire.items(GoldenItem, "/v1/golden")

    def versions(self, name: str) -> Iterator[GoldenItem]:
        """Yield the versions of a set, the last saved first; raises MissingInput where there is no such set."""
        return self._wire.items(GoldenItem, f"/v1/golden/{segment(name, 'name')}/versions")

    def get(self, name: str, version: str | None = None, *, content: bool = False) -> GoldenVersion:
        """Return a version of a set, the last saved unless one is named; with ``content`` the whole set.

        Raises MissingInput where there is none.
        """
        path = f"/v1/golden/{segment(name, 'name')}"
        if version is not None:
            path += f"/{segment(version, 'version')}"
        return self._wire.get_as(GoldenVersion, path, content="true" if content else None)

    def upload(
        self, content: Mapping[str, Any] | bytes, *, kind: Literal["json", "yaml", "jsonl", "zip"] = "json"
    ) -> GoldenVersion:
        """Keep a set under the name and version that it has, and return it with what validation found.

        ``content`` is the set itself, such as ``ringtrue.golden.record_of`` makes, or the bytes of a file of that ``kind``.
        Raises InputError for what cannot be read, and where this version is there already with another content.
        """
        if kind not in KINDS:
            raise InputError(f"a set cannot be uploaded as {kind!r}; did you mean {nearest(str(kind), KINDS)}?")
        if not isinstance(content, bytes):
            if kind != "json":
                raise InputError(f"a dictionary is sent as json, not as {kind}; leave kind out, or give the bytes of the file")
            content = encoded(dict(content))
        reply = self._wire.send("POST", "/v1/golden", content=content, headers={"Content-Type": KINDS[kind]})
        return read(GoldenVersion, reply.json)

    def keep_shipped(self, name: str) -> GoldenVersion:
        """Keep a copy of a set that comes with Ringtrue, so that versions of one's own can follow it."""
        return self._wire.write_as(GoldenVersion, "POST", "/v1/golden/shipped", {"name": name})

    def diff(self, name: str, old: str, new: str | None = None) -> GoldenDifference:
        """Return what changed from version ``old`` to ``new``, the last saved unless given."""
        params = {"from": old, "to": new}
        return self._wire.get_as(GoldenDifference, f"/v1/golden/{segment(name, 'name')}/diff", **params)
