"""The seam of writing: documents of a golden set go into a search system under ids of their own, and out again (E-1).

A connector may write where its setting ``plant`` says what a document is made of there; without it a system is only read.
Only records are written, into what is there already: no table, index or collection is ever made, changed or dropped. Records
that were not planted are neither replaced nor removed, whatever id they have.
"""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

from ringtrue.errors import InputError, nearest
from ringtrue.retrieve.connectors.base import AT_ONCE, Connector
from ringtrue.retrieve.connectors.template import filled, places, texts
from ringtrue.retrieve.protocol import plain

PARTS = ("id", "title", "text", "tenant", "source_hash", "metadata")
"""What a template may name of a document; ``metadata.NAME`` names one of its values."""
PLACE = re.compile(r"\{(id|title|text|tenant|source_hash|metadata(?:\.[^{}]+)?)\}")
EXAMPLE = "{title = '{title}', body = '{text}', company_id = '{tenant}', source_hash = '{source_hash}'}"
_LOOKS_LIKE_ONE = re.compile(r"\{[A-Za-z_][\w.]*\}")


@dataclass(frozen=True, slots=True)
class Planted:
    """A document as it is written into somebody's system."""

    id: str
    """Namespaced, like ``golden:hotel:entity-pool``, so that it can be told from all that is there."""
    title: str
    text: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    source_hash: str = ""
    """Hash of what it says: a document whose hash is there already need not be written again."""
    tenant: str | None = None

    @property
    def whole(self) -> str:
        """Title and text, as they become one vector."""
        return f"{self.title}\n{self.text}".strip()

    def values(self) -> dict[str, Any]:
        """Return what a template's placeholders become; a tenant that is not given is not among them."""
        found: dict[str, Any] = {"id": self.id, "title": self.title, "text": self.text, "source_hash": self.source_hash}
        found |= {"metadata": dict(self.metadata)} | {f"metadata.{name}": value for name, value in self.metadata.items()}
        return found if self.tenant is None else {**found, "tenant": self.tenant}


class Mark(NamedTuple):
    """What tells a planted record from any other; None where a system does not store it."""

    source_hash: str | None
    tenant: str | None


@runtime_checkable
class Writable(Protocol):
    """A retriever into which documents can be planted.

    It may also have ``known(doc_ids)``, the ids that can be found by now, and ``held(ids)``, the marks of what is stored.
    """

    def write(self, documents: Sequence[Planted]) -> None:
        """Add documents, or replace those of the same id; raises InputError or SearchFailed."""

    def remove(self, ids: Sequence[str], *, tenant: str | None = None) -> set[str]:
        """Remove planted documents of a tenant and return which were; what was not planted stays."""


@dataclass(frozen=True, kw_only=True)
class WritingConnector(Connector):
    """A connector whose system can be written, where its settings say how."""

    def write(self, documents: Sequence[Planted]) -> None:
        """Add documents, or replace those planted earlier; raises InputError where an id is somebody else's."""
        wanted = list(documents)
        if not wanted:
            return
        self.check_planting(wanted)
        there = self.held([document.id for document in wanted]) or {}
        for document in wanted:
            if document.id in there and not self._ours(there[document.id], document.tenant):
                mark = there[document.id]
                whose = f"belongs to {_tenant(mark.tenant)}" if mark.source_hash else "was not planted"
                raise InputError(
                    f"{self.name}: document '{document.id}' is there and {whose}; it stays as it is, choose another prefix"
                )
        self.put(wanted, there)

    def remove(self, ids: Sequence[str], *, tenant: str | None = None) -> set[str]:
        """Remove what was planted under these ids for a tenant; return the ids that were there, or all where none can tell."""
        self.check_planting([])
        there = self.held(ids)
        if there is None:
            ours = list(dict.fromkeys(ids))
            marks: Mapping[str, Mark] = {}
        else:
            ours = [doc_id for doc_id, mark in there.items() if self._ours(mark, tenant)]
            marks = there
        for start in range(0, len(ours), AT_ONCE):
            self.drop(ours[start : start + AT_ONCE], tenant, marks)
        return set(ours)

    def held(self, ids: Sequence[str]) -> dict[str, Mark] | None:
        """Return the marks of what is stored under these ids, searchable or not yet; None where that cannot be asked."""
        if not self.looks_up():
            return None
        found: dict[str, Mark] = {}
        wanted = list(dict.fromkeys(ids))
        for start in range(0, len(wanted), AT_ONCE):
            part = wanted[start : start + AT_ONCE]
            found |= self.tried(lambda part=part: self.look_up(part))  # type: ignore[misc]
        return found

    def _ours(self, mark: Mark, tenant: str | None) -> bool:
        """Whether a record was planted for this tenant, as far as its system stores marks."""
        hashed, owned = self.marked()
        return (not hashed or bool(mark.source_hash)) and (not owned or (mark.tenant or None) == (tenant or None))

    @abstractmethod
    def check_planting(self, documents: Sequence[Planted]) -> None:
        """Raise InputError with the cure where this system is not set up to be written, or cannot hold what is given."""

    @abstractmethod
    def marked(self) -> tuple[bool, bool]:
        """Return whether (source hash, tenant) are stored and can be read again."""

    def looks_up(self) -> bool:
        """Whether marks can be read."""
        return True

    def look_up(self, ids: Sequence[str]) -> dict[str, Mark]:
        """Return the marks of what is stored under a few hundred ids; raises SearchFailed."""
        raise NotImplementedError

    @abstractmethod
    def put(self, documents: Sequence[Planted], there: Mapping[str, Mark]) -> None:
        """Write documents over those of ours that are ``there``; raises SearchFailed or InputError."""

    @abstractmethod
    def drop(self, ids: Sequence[str], tenant: str | None, there: Mapping[str, Mark]) -> None:
        """Remove records of ours; raises SearchFailed."""


@dataclass(frozen=True, kw_only=True)
class Store(WritingConnector):
    """A system whose records have fields or columns; ``plant`` says what they become."""

    # Not shown and so in no fingerprint: how documents get in does not change how they are searched.
    plant: Mapping[str, Any] | None = field(default=None, repr=False, hash=False)
    """Field or column → text with {title}, {text}, {tenant}, {source_hash}, {metadata} or {metadata.NAME}; id and vector go
    where the other settings say. Without it the system is only read."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_template(self.name, "plant", self.plant)

    def check_planting(self, documents: Sequence[Planted]) -> None:
        if self.plant is None:
            raise InputError(f"{self.name} is only read; say what a document is made of there to write it, plant = {EXAMPLE}")
        check_tenant(self.name, "plant", self.plant, documents)

    def record(self, document: Planted) -> dict[str, Any]:
        """Return the fields of a document, but for those that the connector fills itself."""
        found = filled(self.plant, document.values(), place=PLACE) or {}
        return {name: plain(value) if isinstance(value, str) else value for name, value in found.items()}

    def mark_fields(self) -> tuple[str | None, str | None]:
        """Return the fields that hold (source hash, tenant), None where nothing does."""
        by_template = {template: name for name, template in (self.plant or {}).items() if isinstance(template, str)}
        return by_template.get("{source_hash}"), by_template.get("{tenant}")

    def marked(self) -> tuple[bool, bool]:
        hashed, owned = self.mark_fields()
        return hashed is not None, owned is not None

    def mark_of(self, record: Mapping[str, Any]) -> Mark:
        """Return the mark of a record by its fields."""
        return Mark(*(_text(record.get(name)) if name else None for name in self.mark_fields()))


def check_template(who: str, setting: str, template: Any) -> None:
    """Raise InputError where a setting is no table of templates, or names what no document has."""
    if template is not None and (not isinstance(template, Mapping) or not template):
        raise InputError(f"{who}: {setting}={template!r:.40} is no table of fields; write it like {EXAMPLE}")
    for text in texts(template):
        if _LOOKS_LIKE_ONE.fullmatch(text) and not PLACE.fullmatch(text):
            known = nearest(text, [f"{{{part}}}" for part in (*PARTS, "metadata.NAME")])
            raise InputError(f"{who}: {setting} has no placeholder {text!r}; did you mean {known}?")


def check_tenant(who: str, setting: str, template: Any, documents: Iterable[Planted]) -> None:
    """Raise InputError where documents have a tenant that the template would lose: they might show to everybody."""
    tenant = next((document.tenant for document in documents if document.tenant is not None), None)
    if tenant is not None and "tenant" not in places(template, place=PLACE):
        raise InputError(
            f"{who}: tenant '{tenant}' would be stored nowhere; write a field like company_id = '{{tenant}}' into {setting}"
        )


def scalar(value: Any) -> str | int | float | bool:
    """Return a value as systems hold it that know no lists and tables: those become JSON.

    >>> scalar(["spa", "pool"]), scalar(3)
    ('["spa", "pool"]', 3)
    """
    if isinstance(value, str | int | float):
        return value
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


def _text(value: Any) -> str | None:
    return None if value is None or value == "" else str(value)


def _tenant(tenant: str | None) -> str:
    return "no tenant" if tenant is None else f"tenant '{tenant}'"
