"""Checked access to one record: ids, texts, grades, lists, and the facts that a format does not name itself.

A key that no format names is kept as metadata, because nothing may vanish. A key that is *nearly* one of the named
ones, while the named one is missing, is taken for a slip of the pen and refused.
"""

from __future__ import annotations

import datetime
import difflib
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ringtrue.errors import InputError, nearest
from ringtrue.formats import Located, Place, field_of, json_records, required
from ringtrue.ids import id_text
from ringtrue.records import HUMAN_SOURCES, Document, Query

Record = dict[str, Any]
METADATA = "metadata"
NEGATIVE = "negative"
SOURCES = ("bootstrap", *sorted(HUMAN_SOURCES), "citation", "implicit", "synthetic")
"""Who made a judgment, in the words that mean something here; other words are allowed, misspelt ones are not."""
_AGENT_SOURCES = ("bootstrapped", "validated")
_ALIKE = 0.8


@dataclass(frozen=True)
class Complaint:
    """One record that could not be understood."""

    place: str
    message: str


@dataclass
class Complaints:
    """A reader wraps each record in ``with complaints.about(place):`` so that one broken record hides no other.

    Errors are raised at once when a set is loaded, and collected when a file is validated.
    """

    collect: bool = False
    found: list[Complaint] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What a reader decided by a rule where the file leaves it open, one line each."""

    @contextmanager
    def about(self, place: Place) -> Iterator[None]:
        """Raise what goes wrong inside, or keep it and go on with the next record."""
        try:
            yield
        except InputError as problem:
            if not self.collect:
                raise
            self.found.append(Complaint(problem.place or str(place), str(problem)))


def alike(key: str, names: Iterable[str]) -> str | None:
    """Return the name that ``key`` is nearly, but not exactly, spelled like.

    >>> alike("relevence_threshold", ["relevance_threshold", "scale"])
    'relevance_threshold'
    """
    by_lowercase = {name.lower(): name for name in names}
    close = difflib.get_close_matches(key.lower(), by_lowercase, n=1, cutoff=_ALIKE)
    return by_lowercase[close[0]] if close else None


def check_keys(record: Mapping[str, Any], known: Collection[str], place: Place) -> None:
    """Raise InputError for a key that is nearly one of the known keys which this record lacks."""
    absent = [name for name in known if name not in record]
    for key in record:
        meant = None if key in known else alike(key, absent)
        if meant is not None:
            raise place.error(f"the field '{key}' is not known", f"did you mean '{meant}'?")


def facts_of(record: Mapping[str, Any], structure: Collection[str], place: Place, *, named: Collection[str] = ()) -> Record:
    """Return what the format's ``structure`` does not consume, flat and nested under 'metadata', as one mapping."""
    check_keys(record, {*structure, *named, METADATA}, place)
    facts = {key: value for key, value in record.items() if key not in structure and key != METADATA}
    nested = field_of(record, METADATA, dict, place, default={})
    twice = sorted(facts.keys() & nested.keys())
    if twice:
        raise place.at(METADATA).error(f"'{twice[0]}' is given here and beside it", "keep one of the two")
    return facts | dict(nested)


def spread(facts: Mapping[str, Any], structure: Collection[str], *, named: Collection[str] = ()) -> Record:
    """Return metadata as record fields; a key that a reader would take for another field goes under 'metadata'."""
    reserved = {*structure, METADATA}
    flat: Record = {}
    nested: Record = {}
    for key, value in facts.items():
        safe = key in named or (key not in reserved and alike(key, {*reserved, *named}) is None)
        (flat if safe and key not in reserved else nested)[key] = value
    return flat | ({METADATA: nested} if nested else {})


@dataclass(frozen=True)
class QueryFields:
    """What a format calls the parts of a query. ``others`` are fields that its reader takes; the rest is metadata."""

    id: str
    text: str
    others: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    """Metadata that the format names itself, so that it may be spelled nearly like another field."""

    @property
    def structure(self) -> tuple[str, ...]:
        """The fields that are not metadata."""
        return (self.id, self.text, *self.others, NEGATIVE)

    @property
    def keys(self) -> tuple[str, ...]:
        """All fields that the format names."""
        return (*self.structure, *self.named)

    def read(self, record: Record, place: Place, *, default_id: str | None = None) -> Query:
        """Return the query in a record; ``default_id`` is for formats whose queries may have none."""
        facts = facts_of(record, self.structure, place, named=self.named)
        text = field_of(record, self.text, str, place)
        named = {} if default_id is None else {self.id: default_id}
        negative = field_of(record, NEGATIVE, bool, place, default=False)
        return Query(id_of(named | record, self.id, place), text, facts, negative)

    def write(self, query: Query, facts: Mapping[str, Any] | None = None) -> Record:
        """Return the record of a query, with these facts in place of its metadata if they are given."""
        row: Record = {self.id: query.query_id, self.text: query.text}
        row |= spread(query.metadata if facts is None else facts, self.structure, named=self.named)
        return row | said(negative=query.negative)


def said(**fields: Any) -> Record:
    """Return the fields that say something; what is None, false or empty is left out.

    >>> said(source=None, tags=["a"], negative=False)
    {'tags': ['a']}
    """
    return {name: value for name, value in fields.items() if value not in (None, False, {}, [], "")}


def document_of(record: Record, place: Place, *, id: str, text: str = "content", named: Collection[str] = ()) -> Document:
    """Return the document in a record that calls its id and text so."""
    return Document(
        doc_id=id_of(record, id, place),
        text=field_of(record, text, str, place),
        title=field_of(record, "title", str, place, default=""),
        metadata=facts_of(record, (id, "title", text, "tags"), place, named=named),
        tags=tuple(ids_of(record, "tags", place, default=[])),
    )


def object_in(value: Any, place: Place, cure: str) -> Record:
    """Return what a file holds; raises InputError if that is not an object."""
    if isinstance(value, dict):
        return value
    raise place.error(f"the file holds {value!r:.40}, not an object", cure)


def optional_text(record: Mapping[str, Any], name: str, place: Place) -> str | None:
    """Return a field that holds text; None if it is missing or null."""
    return None if record.get(name) is None else field_of(record, name, str, place)


def id_of(record: Mapping[str, Any], name: str, place: Place) -> str:
    """Return a field that holds an id, as text."""
    return as_id(required(record, name, place), place.at(name))


def ids_of(record: Mapping[str, Any], name: str, place: Place, *, default: Any = ...) -> list[str]:
    """Return a field that holds a list of ids."""
    values = field_of(record, name, list, place, default=default)
    return [as_id(value, place.at(name).at(index)) for index, value in enumerate(values)]


def as_id(value: Any, place: Place) -> str:
    """Return an id as text: stores number their records, and 12 and "12" name the same one (trap 11)."""
    value = id_text(value)
    if isinstance(value, str) and value.strip():
        return value
    raise place.error(f"{value!r:.80} is not an id", "write a non-blank text or a whole number")


def as_number(value: Any) -> Any:
    """Return an id as the number it was stored as, where its text is one."""
    # int() also reads "٣" and "1_0"; only the plain spelling comes back from str() unchanged.
    plain = isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19 and str(int(value)) == value
    return int(value) if plain else value


def grade(value: Any, place: Place) -> int:
    """Return a grade; raises InputError that says what a grade looks like."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise place.error(f"{value!r:.80} is not a grade", "write a whole number: 0, 1, 2 or 3")


def grade_of(record: Mapping[str, Any], name: str, place: Place) -> int:
    """Return a field that holds a grade."""
    return grade(required(record, name, place), place.at(name))


def source_of(record: Mapping[str, Any], name: str, place: Place) -> str | None:
    """Return a field that says who judged; raises InputError for a word that is nearly, but not exactly, a known one."""
    # 'chiar' must not make a row that a person confirmed look like one that nobody did.
    check_word(record, name, (*SOURCES, *_AGENT_SOURCES), "source", place)
    return optional_text(record, name, place)


def check_word(record: Mapping[str, Any], name: str, words: Collection[str], what: str, place: Place) -> None:
    """Raise InputError for a text that is nearly, but not exactly, one of these words; others are the user's own."""
    word = record.get(name)
    meant = alike(word, words) if isinstance(word, str) and word not in words else None
    if meant is not None:
        raise place.at(name).error(f"'{word}' is not a known {what}", f"did you mean '{meant}'?")


def legal(value: str, options: Collection[str], what: str, place: Place) -> str:
    """Return ``value`` when it is one of the options; raises InputError with the nearest ones."""
    if value in options:
        return value
    raise place.error(f"{value!r:.80} is not a {what}", f"write {nearest(value, options)}")


def objects(values: Iterable[Any], place: Place, complaints: Complaints) -> Iterator[tuple[Place, Record]]:
    """Yield (place, object) for each item of a list; an item that is no object is a complaint."""
    for index, value in enumerate(values):
        here = place.at(index)
        if isinstance(value, Located):
            here = here.on(value.line)
        with complaints.about(here):
            if not isinstance(value, dict):
                raise here.error(f"{value!r:.80} is not an object", "write its named fields")
        if isinstance(value, dict):
            yield here, value


def json_lines(path: Path, complaints: Complaints) -> Iterator[tuple[Place, Record]]:
    """Yield (place, object) per object of a file; if complaints collect, it goes on after a broken one."""
    for place, read in json_records(path):
        record: Record | None = None
        with complaints.about(place):
            record = read()
        if record is not None:
            yield place, record


def json_rows(path: Path, complaints: Complaints, *, wrappers: Collection[str] = ()) -> Iterator[tuple[Place, Record]]:
    """Yield (place, object) as ``json_lines`` does; of a lone object, the list under one of ``wrappers``."""
    rows = list(json_lines(path, complaints))
    if len(rows) == 1:
        place, record = rows[0]
        name = next((key for key in wrappers if isinstance(record.get(key), list)), None)
        if name is not None:
            yield from objects(record[name], Place(place.file).at(name), complaints)
            return
    yield from rows


def plain(value: Any, place: Place) -> Any:
    """Return a value read from YAML as JSON would hold it; dates become text."""
    if isinstance(value, Mapping):
        return {key: plain(item, place.at(str(key))) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item, place.at(index)) for index, item in enumerate(value)]
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        raise place.error(f"{value!r} is not a finite number", "write a finite number or null")
    if value is None or isinstance(value, str | int | float):
        return value
    raise place.error(f"a {type(value).__name__} cannot be kept", "write it as text")
