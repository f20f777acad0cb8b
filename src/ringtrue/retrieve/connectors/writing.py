"""The seam of writing: documents of a golden set go into a search system under ids of their own, and out again.

A connector may write where its setting ``plant`` says what a document is made of there; without it a system is only read.
Only records are written, into what is there already: no table, index or collection is ever made, changed or dropped. Records
that were not planted are neither replaced nor removed, whatever id they have: the source hash of a planted one is sealed with
its id and tenant, and where it cannot be stored and read again, nothing is written at all.
"""

from __future__ import annotations

import hashlib
import json
import re
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

from ringtrue.errors import InputError, nearest
from ringtrue.retrieve.connectors.base import AT_ONCE, Connector
from ringtrue.retrieve.connectors.settings import Text, filled, places, texts
from ringtrue.retrieve.encode import DEFAULT_MODEL, encoder
from ringtrue.retrieve.protocol import plain

PARTS = ("id", "title", "text", "tenant", "source_hash", "metadata")
"""What a template may name of a document; ``metadata.NAME`` names one of its values."""
PLACE = re.compile(r"\{(id|title|text|tenant|source_hash|metadata(?:\.[^{}]+)?)\}")
EXAMPLE = "{title = '{title}', body = '{text}', company_id = '{tenant}', source_hash = '{source_hash}'}"
SEAL = 8
"""Letters at the end of a source hash that belong to its document's id and tenant."""
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
    """Hash of what it says, ``sealed``: where it is there already the document need not be written again."""
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
    """What tells a planted record from any other; None if a system does not store it."""

    source_hash: str | None
    tenant: str | None

    def proves(self, doc_id: str, tenant: str | None) -> bool:
        """Return whether a record of this id was planted for this tenant; nobody else's hash carries the seal by chance."""
        found = self.source_hash or ""
        return len(found) > SEAL and found == sealed(found[:-SEAL], doc_id, tenant) and self.tenant in (None, "", tenant)


def sealed(source_hash: str, doc_id: str, tenant: str | None) -> str:
    """Return a source hash that shows, wherever it is read again, under which id and for whom it was planted.

    >>> mark = Mark(sealed("c0ffee", "golden:hotel:pool", None), None)
    >>> mark.proves("golden:hotel:pool", None), mark.proves("golden:hotel:bar", None), mark.proves("golden:hotel:pool", "acme")
    (True, False, False)
    """
    said = json.dumps(["ringtrue", source_hash, doc_id, tenant])
    return source_hash + hashlib.sha256(said.encode()).hexdigest()[:SEAL]


def one_each(found: Iterable[tuple[str, Mark]]) -> dict[str, Mark]:
    """Return the mark of each id; where records of one id differ, one that proves nothing: some are somebody else's."""
    marks: dict[str, Mark] = {}
    for doc_id, mark in found:
        marks[doc_id] = mark if marks.get(doc_id, mark) == mark else Mark(None, None)
    return marks


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

    # How documents get in does not change how they are searched.
    ASIDE: ClassVar[frozenset[str]] = Connector.ASIDE | {"plant", "unplant", "lookup"}
    TELLING: ClassVar[str] = ""
    """The cure for a system that does not tell what it holds."""
    ONE_BY_ONE: ClassVar[bool] = False
    """Whether each document is written by a request of its own, which is repeated alone if it fails."""

    def write(self, documents: Sequence[Planted]) -> None:
        """Add documents, or replace those planted earlier; raises InputError if an id is somebody else's."""
        wanted = list(documents)
        if not wanted:
            return
        self.check_planting(wanted)
        for document in wanted:
            if not Mark(document.source_hash, document.tenant).proves(document.id, document.tenant):
                raise InputError(
                    f"{self.name}: the source hash of document '{document.id}' is not sealed, so it could never be removed; "
                    "write documents with ringtrue.run.plant"
                )
        there = self.held([document.id for document in wanted]) or {}
        for document in wanted:
            if document.id in there and not there[document.id].proves(document.id, document.tenant):
                raise InputError(
                    f"{self.name}: document '{document.id}' is there and {_whose(document.id, there[document.id])}; "
                    "it stays as it is, choose another prefix"
                )
        for part in [[document] for document in wanted] if self.ONE_BY_ONE else [wanted]:
            self.tried(partial(self.put, part, there))

    def remove(self, ids: Sequence[str], *, tenant: str | None = None) -> set[str]:
        """Remove what was planted under these ids for a tenant, and return which; what cannot be proven ours stays."""
        self.check_planting([])
        there = self.held(ids) or {}
        ours = [doc_id for doc_id, mark in there.items() if mark.proves(doc_id, tenant)]
        size = 1 if self.ONE_BY_ONE else AT_ONCE
        for start in range(0, len(ours), size):
            self.tried(partial(self.drop, ours[start : start + size], tenant, there))
        return set(ours)

    def held(self, ids: Sequence[str]) -> dict[str, Mark] | None:
        """Return the marks of what is stored under these ids, searchable or not yet; None if that cannot be asked."""
        if not self.looks_up():
            return None
        return {doc_id: mark for part in self.in_parts(self.look_up, list(dict.fromkeys(ids))) for doc_id, mark in part.items()}

    def resolves(self) -> bool:
        return self.looks_up()

    def resolve(self, doc_ids: Sequence[str]) -> set[str]:
        return set(self.look_up(doc_ids))

    def check_planting(self, documents: Sequence[Planted]) -> None:
        """Raise InputError with the cure where this system may not be written: for want of settings, or of marks."""
        self.check_plant(documents)
        if not self.looks_up():
            raise InputError(
                f"{self.name} does not tell what it holds under an id, so a record of yours might be replaced or removed and "
                f"nothing is written; {self.TELLING}"
            )

    @abstractmethod
    def check_plant(self, documents: Sequence[Planted]) -> None:
        """Raise InputError with the cure where the settings do not say how to write, or cannot hold what is given."""

    def looks_up(self) -> bool:
        """Whether marks can be read by id."""
        return True

    @abstractmethod
    def look_up(self, ids: Sequence[str]) -> dict[str, Mark]:
        """Return the marks of what is stored under a few hundred ids; raises SearchFailed."""

    @abstractmethod
    def put(self, documents: Sequence[Planted], there: Mapping[str, Mark]) -> None:
        """Write documents over those of ours that are ``there``, in one attempt; raises SearchFailed or InputError."""

    @abstractmethod
    def drop(self, ids: Sequence[str], tenant: str | None, there: Mapping[str, Mark]) -> None:
        """Remove records of ours, in one attempt; raises SearchFailed."""


@dataclass(frozen=True, kw_only=True)
class RecordConnector(WritingConnector):
    """A system whose records have fields or columns; ``plant`` says what they become."""

    plant: Mapping[str, Any] | None = field(default=None, repr=False, hash=False)
    """Field or column → text with {title}, {text}, {tenant}, {source_hash}, {metadata} or {metadata.NAME}; id and vector go
    where the other settings say. Without it the system is only read."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_template(self.name, "plant", self.plant)

    def check_plant(self, documents: Sequence[Planted]) -> None:
        if self.plant is None:
            raise InputError(f"{self.name} is read-only; to write documents, set their fields, like plant = {EXAMPLE}")
        if self.mark_fields()[0] is None:
            raise no_mark(self.name, "a field like source_hash = '{source_hash}'")
        check_tenant(self.name, "plant", self.plant, documents)

    def record(self, document: Planted, *id_fields: str | None, scalars: bool = False) -> dict[str, Any]:
        """Return the fields of a document with its id in ``id_fields``; with ``scalars`` lists and tables become JSON."""
        found = filled(self.plant, document.values(), place=PLACE) or {}
        values = {name: plain(value) if isinstance(value, str) else value for name, value in found.items()}
        if scalars:
            values = {name: scalar(value) for name, value in values.items()}
        return dict.fromkeys(filter(None, id_fields), document.id) | values

    def mark_fields(self) -> tuple[str | None, str | None]:
        """Return the fields that hold (source hash, tenant), None if nothing does."""
        by_template = {template: name for name, template in (self.plant or {}).items() if isinstance(template, str)}
        return by_template.get("{source_hash}"), by_template.get("{tenant}")

    def marking(self) -> list[str]:
        """Return the fields that hold marks."""
        return [name for name in self.mark_fields() if name]

    def mark_of(self, record: Mapping[str, Any]) -> Mark:
        """Return the mark of a record by its fields."""
        return Mark(*(_text(record.get(name)) if name else None for name in self.mark_fields()))


def check_template(who: str, setting: str, template: Any) -> None:
    """Raise InputError if a setting is not a table of templates, or names what no document has."""
    if template is not None and (not isinstance(template, Mapping) or not template):
        raise InputError(f"{who}: {setting}={template!r:.40} is not a table of fields; write it like {EXAMPLE}")
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


def no_mark(who: str, cure: str) -> InputError:
    """Return the error of a plant that leaves no mark: what it writes could not be told from what is somebody else's."""
    return InputError(
        f"{who}: plant stores no '{{source_hash}}' as a whole value, by which planted records are told from yours; "
        f"write {cure} into it"
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


def _whose(doc_id: str, mark: Mark) -> str:
    if mark.proves(doc_id, mark.tenant or None):
        return f"belongs to tenant '{mark.tenant}'" if mark.tenant else "belongs to no tenant"
    return "was not planted, or for another tenant" if mark.source_hash else "was not planted"


@dataclass(frozen=True, kw_only=True)
class VectorConnector(RecordConnector):
    """A system that compares vectors."""

    model: Text = DEFAULT_MODEL
    """The encoder of the question, a name or a folder: the one that made the stored vectors."""

    def query_vector(self, text: str) -> list[float]:
        """Return a question as a vector."""
        found: list[float] = encoder(self.model).encode([text], query=True)[0].tolist()
        return found

    def document_vectors(self, documents: Sequence[Planted]) -> list[list[float]]:
        """Return the vector of each document."""
        found: list[list[float]] = encoder(self.model).encode([document.whole for document in documents]).tolist()
        return found

    def check_size(self, stored: int | None, vector: Sequence[Any]) -> None:
        """Raise InputError if the stored vectors have another number of dimensions; None says that there are none yet."""
        if stored not in (None, len(vector)):
            raise InputError(
                f"{self.name}: the stored vectors have {stored} dimensions and those of model '{self.model}' {len(vector)}; "
                "name the model that made them"
            )
