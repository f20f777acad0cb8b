"""Checked access to one record: ids, texts, grades, lists, and the facts that a format does not name itself.

A key that no format names is kept as metadata, because nothing may vanish. A key that is *nearly* one of the named
ones, while the named one is missing, is taken for a slip of the pen and refused.
"""

from __future__ import annotations

import datetime
import difflib
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ringtrue.errors import nearest
from ringtrue.formats.text import Located, Place, json_records
from ringtrue.golden.formats.complaints import Complaints
from ringtrue.ids import id_text
from ringtrue.records import HUMAN_SOURCES

Record = dict[str, Any]
METADATA = "metadata"
NEGATIVE = "negative"
SOURCES = ("bootstrap", *sorted(HUMAN_SOURCES), "citation", "implicit", "synthetic")
"""Who made a judgment, in the words that mean something here; other words are allowed, misspelt ones are not."""
_ALIKE = 0.8


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
    nested = mapping_of(record, METADATA, place, default={})
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


def mapping_of(record: Mapping[str, Any], name: str, place: Place, *, default: Any = ...) -> Record:
    """Return a field that holds an object."""
    return _typed(record, name, dict, "an object with named fields", place, default)  # type: ignore[no-any-return]


def list_of(record: Mapping[str, Any], name: str, place: Place, *, default: Any = ...) -> list[Any]:
    """Return a field that holds a list."""
    return _typed(record, name, list, "a list", place, default)  # type: ignore[no-any-return]


def text_of(record: Mapping[str, Any], name: str, place: Place, *, default: Any = ...) -> str:
    """Return a field that holds text, possibly empty."""
    return _typed(record, name, str, "a text in quotes", place, default)  # type: ignore[no-any-return]


def truth_of(record: Mapping[str, Any], name: str, place: Place, *, default: Any = ...) -> bool:
    """Return a field that holds true or false."""
    return _typed(record, name, bool, "true or false", place, default)  # type: ignore[no-any-return]


def whole_of(record: Mapping[str, Any], name: str, place: Place, *, default: Any = ...) -> Any:
    """Return a field that holds a whole number."""
    if name not in record and default is not ...:
        return default
    return grade(_typed(record, name, (int, float), "a whole number", place, ...), place.at(name))


def id_of(record: Mapping[str, Any], name: str, place: Place) -> str:
    """Return a field that holds an id, as text."""
    return as_id(_present(record, name, place), place.at(name))


def ids_of(record: Mapping[str, Any], name: str, place: Place, *, default: Any = ...) -> list[str]:
    """Return a field that holds a list of ids."""
    values = list_of(record, name, place, default=default)
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
    return grade(_present(record, name, place), place.at(name))


def as_source(source: str, place: Place) -> str:
    """Return a source of judgments; raises InputError for one that is nearly, but not exactly, one of ``SOURCES``."""
    # 'chiar' must not make a row that a person confirmed look like one that nobody did.
    meant = None if source in SOURCES else alike(source, SOURCES)
    if meant is not None:
        raise place.error(f"'{source}' is not a known source", f"did you mean '{meant}'?")
    return source


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


def _present(record: Mapping[str, Any], name: str, place: Place) -> Any:
    if name in record:
        return record[name]
    seen = ", ".join(f"'{key}'" for key in record) or "no field"
    raise place.error(f"the field '{name}' is missing", f"add it (this record has {seen:.200})")


def _typed(record: Mapping[str, Any], name: str, kind: Any, wanted: str, place: Place, default: Any) -> Any:
    if name not in record and default is not ...:
        return default
    value = _present(record, name, place)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise place.at(name).error(f"{value!r:.80} is of the wrong type", f"write {wanted}")
    return value
