"""What a golden set says about itself, read and written the same way wherever a format has room for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ringtrue.formats.text import Place
from ringtrue.golden.formats.fields import (
    Record,
    as_id,
    as_source,
    facts_of,
    grade,
    ids_of,
    legal,
    list_of,
    spread,
    text_of,
    whole_of,
)
from ringtrue.golden.profiles import PROFILES
from ringtrue.records import GoldenSet

UNVERSIONED = "0.0.0"
FIELDS = (
    "id",
    "version",
    "created_at",
    "description",
    "profile",
    "relevance_threshold",
    "scale",
    "provenance",
    "scope",
    "slices",
    "equivalence_classes",
    "corpus_hash",
    "judgment_source",
)


@dataclass(frozen=True)
class Header:
    """A golden set without its queries, judgments and documents."""

    id: str
    version: str = UNVERSIONED
    created_at: str | None = None
    description: str = ""
    profile: str = "general"
    relevance_threshold: int | None = None
    scale: tuple[int, int] = (0, 3)
    provenance: str = ""
    scope: str | None = None
    slices: tuple[str, ...] = ()
    equivalence_classes: tuple[tuple[str, ...], ...] = ()
    corpus_hash: str | None = None
    judgment_source: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


def read_header(
    record: Record, place: Place, *, name: str, structure: tuple[str, ...] = (), profile: str = "general"
) -> Header:
    """Return the header in ``record``; ``structure`` names its other fields, ``name`` is the default id."""
    facts = facts_of(record, (*FIELDS, *structure), place)
    return Header(
        id=as_id(record["id"], place.at("id")) if "id" in record else name,
        version=text_of(record, "version", place, default=UNVERSIONED),
        created_at=_optional_text(record, "created_at", place),
        description=text_of(record, "description", place, default=""),
        profile=legal(text_of(record, "profile", place, default=profile), PROFILES, "profile", place.at("profile")),
        relevance_threshold=whole_of(record, "relevance_threshold", place, default=None),
        scale=_scale(record, place),
        provenance=text_of(record, "provenance", place, default=""),
        scope=_optional_text(record, "scope", place),
        slices=tuple(ids_of(record, "slices", place, default=[])),
        equivalence_classes=_classes(record, place),
        corpus_hash=_optional_text(record, "corpus_hash", place),
        judgment_source=_judgment_source(record, place),
        metadata=facts,
    )


def write_header(golden: GoldenSet, *, structure: tuple[str, ...] = (), with_source: bool = False) -> Record:
    """Return the header of a set as a record, without what a reader would assume anyway.

    ``with_source`` is for formats whose judgments have no room for a source: one that all share is declared here.
    """
    record: Record = {"id": golden.id, "version": golden.version}
    if golden.created_at is not None:
        record["created_at"] = golden.created_at
    record |= {"description": golden.description, "profile": golden.profile}
    record["relevance_threshold"] = golden.relevance_threshold
    if golden.scale != (0, 3):
        record["scale"] = list(golden.scale)
    if golden.provenance:
        record["provenance"] = golden.provenance
    if golden.scope is not None:
        record["scope"] = golden.scope
    if golden.slices:
        record["slices"] = list(golden.slices)
    if golden.equivalence_classes:
        record["equivalence_classes"] = [list(members) for members in golden.equivalence_classes]
    if golden.corpus_hash is not None and not golden.documents:
        record["corpus_hash"] = golden.corpus_hash
    sources = {judgment.source for judgment in golden.judgments}
    source = next(iter(sources)) if with_source and len(sources) == 1 else None
    if source is not None:
        record["judgment_source"] = source
    return record | spread(golden.metadata, (*FIELDS, *structure))


def _optional_text(record: Record, name: str, place: Place) -> str | None:
    return None if record.get(name, ...) is None else text_of(record, name, place, default=None)


def _judgment_source(record: Record, place: Place) -> str | None:
    said = _optional_text(record, "judgment_source", place)
    return None if said is None else as_source(said, place.at("judgment_source"))


def _scale(record: Record, place: Place) -> tuple[int, int]:
    ends = list_of(record, "scale", place, default=[0, 3])
    here = place.at("scale")
    if len(ends) != 2:
        raise here.error(f"{ends!r:.80} is not a scale", "write the lowest and the highest grade, like [0, 3]")
    lowest, highest = (grade(end, here.at(index)) for index, end in enumerate(ends))
    if lowest >= highest:
        raise here.error(f"{ends!r:.80} does not rise", "write the lowest grade first, like [0, 3]")
    return lowest, highest


def _classes(record: Record, place: Place) -> tuple[tuple[str, ...], ...]:
    name = "equivalence_classes"
    here = place.at(name)
    classes = []
    for index, members in enumerate(list_of(record, name, place, default=[])):
        if not isinstance(members, list):
            raise here.at(index).error(f"{members!r:.80} is not a list", "write the ids of documents that are interchangeable")
        classes.append(tuple(as_id(member, here.at(index)) for member in members))
    return tuple(classes)
