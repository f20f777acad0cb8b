"""What a stranger's bytes may cost, measured before anything is built from them (V-4).

A few bytes can stand for gigabytes, or for hours: nested lists, aliases, numbers to the base of 60, objects with a million
keys. Each is counted here while it is still text, or at the latest before a reader of a format takes longer over it than over
any honest set of its size.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any

from ringtrue.errors import InputError
from ringtrue.formats import Place, parse_json
from ringtrue.golden.formats.fields import METADATA


@dataclass(frozen=True, slots=True)
class UploadLimits:
    """How large what strangers send may be; sizes in bytes."""

    content: int = 20_000_000
    unpacked: int = 200_000_000
    """The files of a zip, together."""
    yaml: int = 1_000_000
    """YAML is read a hundred times slower than JSON."""
    queries: int = 100_000
    documents: int = 500_000
    judgments: int = 500_000
    depth: int = 50
    values: int = 3_000_000
    """Texts, numbers, lists and objects, on which the memory depends; one of YAML counts as thirty."""
    fields: int = 1_000_000
    """Keys that a reader compares with those it knows, to find slips of the pen; facts under 'metadata' are none."""
    text: int = 1_000_000
    """Characters of one text."""


RECORD = 1_000
"""Fields of one record; tables of labels and facts under 'metadata' may have more."""
KEY = 1_000
"""Characters of a key."""
NUMBER = 100
"""Characters of a number in YAML, where one to the base of 60 takes time with the square of its length."""
_FREE = frozenset({METADATA, "relevance_labels", "judgment_details"})
_JUDGED = frozenset(
    {
        "relevance_labels", "relevant_entities", "relevant_docs", "relevant_ids", "relevant_case_law_ids",
        "expected_relevant", "expected_irrelevant", "judgments", "reference_contexts", "reference_context_ids",
    }
)  # fmt: skip
_ANNOTATED = "annotations"
_YAML_VALUE = 30
_TEXT_TAG = "tag:yaml.org,2002:str"
_NUMBER = re.compile(r"[-+.0-9][-+.:_0-9a-fA-FxX]*")
_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)


@dataclass
class Spent:
    """What was found so far, in all files of an upload; every method raises InputError where a limit is passed."""

    limits: UploadLimits
    values: int = 0
    fields: int = 0
    judged: int = 0

    def structure(self, content: bytes, place: Place) -> None:
        """Count the values of JSON before it is parsed; a million of ``[]`` never become lists."""
        found = _separators(content)
        if self.values + found > self.limits.values:  # texts hold commas too
            found = _separators(_TEXT.sub(b"", content))
        self._count(found, place)

    def yaml(self, event: Any, here: Place, depth: int) -> None:
        """Look at one event of YAML, from which nothing is built yet."""
        import yaml  # costs 20 ms that no other format needs

        if depth > self.limits.depth:
            raise self._too_deep(here)
        if isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent):
            self._count(1, here, each=_YAML_VALUE)
            if event.tag not in (None, "!", _TEXT_TAG):
                raise here.error(f"the tag '{event.tag:.60}'", "write the value without it")
        if isinstance(event, yaml.ScalarEvent) and event.implicit[0] and _is_long_number(event.value):
            raise here.error(f"a number of {len(event.value):,} characters", "put it in quotes")

    def record(self, value: Any, place: Place, *, known: frozenset[str] = frozenset()) -> None:
        """Go through one parsed document or line; ``known`` are the fields that its format names."""
        table = _is_table(value)
        # The last says that only facts or ids follow, and nobody compares how those are called with anything.
        left: list[tuple[Any, str, int, bool]] = [(value, "", 1, table)]
        while left:
            item, key, depth, facts = left.pop()
            if isinstance(item, str):
                self._text(item, key, place)
                left += [(one, key, depth + 1, facts) for one in self._inner(item, key, place)]
            elif isinstance(item, dict | list):
                if depth > self.limits.depth:
                    raise self._too_deep(place)
                self._judged(item, "relevance_labels" if table and depth == 2 else key, place)
                if isinstance(item, list):
                    left += [(one, key, depth + 1, facts) for one in item]
                else:
                    self._fields(item, None if facts or key in _FREE else known, place)
                    left += [(one, name, depth + 1, facts or name == METADATA) for name, one in item.items()]
            elif isinstance(item, float) and not math.isfinite(item):
                raise place.error(f"the number of '{key:.60}' is not finite", "write a finite number or null")
            elif isinstance(item, int | float) and abs(item) >= 2**63:  # a grade may be written as 3.0
                raise place.error(f"the number of '{key:.60}' has more than 64 bits", "put an id in quotes")

    def _inner(self, text: str, key: str, place: Place) -> list[Any]:
        """Return what lies in a text that a reader would parse once more: exporters of spans write JSON inside JSON."""
        if key.rpartition(".")[2] not in ("documents", METADATA) or text.lstrip()[:1] not in ("[", "{"):
            return []
        self.structure(text.encode(), place)
        try:
            return [loads(text, place)]
        except (ValueError, RecursionError):
            return []  # a text like any other, or the reader says what is wrong

    def _text(self, text: str, key: str, place: Place) -> None:
        if len(text) > self.limits.text:
            problem = f"a text of {len(text):,} characters in '{key:.60}', {self.limits.text:,} are allowed"
            raise place.error(problem, "split it into several documents")
        _whole(text, place)

    def _fields(self, record: dict[str, Any], known: frozenset[str] | None, place: Place) -> None:
        for name in record:
            if len(name) > KEY:
                raise place.error(f"a key of {len(name):,} characters, '{name:.40}…'", "shorten it")
            _whole(name, place)
        if known is None:
            return
        if len(record) > RECORD:
            raise place.error(f"a record with {len(record):,} fields, {RECORD:,} are allowed", "put them under 'metadata'")
        self.fields += len(record.keys() - known)
        if self.fields > self.limits.fields:
            raise place.error(f"more than {self.limits.fields:,} fields", "put facts under 'metadata', or send fewer records")

    def _judged(self, item: dict[str, Any] | list[Any], key: str, place: Place) -> None:
        if key == _ANNOTATED and len(item) > RECORD:
            raise place.error(f"{len(item):,} annotations of one span, {RECORD:,} are allowed", "keep those on relevance")
        # Relevant documents may be listed and labelled; the set itself is counted when it is there.
        self.judged += len(item) if key in _JUDGED else 0
        if self.judged > 2 * self.limits.judgments:
            raise place.error(f"more than {self.limits.judgments:,} judgments", "send a part of the set")

    def _count(self, more: int, place: Place, *, each: int = 1) -> None:
        self.values += more * each
        if self.values > self.limits.values:
            cure = "send the same as JSON" if each > 1 else "send a part of the set"
            raise place.error(f"holds more than {self.limits.values // each:,} values", cure)

    def _too_deep(self, place: Place) -> InputError:
        return place.error(f"nested more than {self.limits.depth} deep", "flatten it")


def loads(text: str, place: Place) -> Any:
    """Return parsed JSON; raises InputError for a repeated key or NaN, in linear time, and ValueError for what is no JSON."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        record = dict(pairs)
        if len(record) != len(pairs):
            seen: set[str] = set()
            repeated = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
            raise place.error(f"the key '{repeated:.60}' is given twice in one object", "keep one of the two")
        return record

    def refuse(constant: str) -> Any:
        raise place.error(f"{constant} is not a JSON number", "write a finite number or null")

    return json.loads(text, object_pairs_hook=unique, parse_constant=refuse)


def parsed(text: str, place: Place) -> Any:
    """Return parsed JSON; raises InputError naming the line of what is no JSON."""
    try:
        return loads(text, place)
    except (ValueError, RecursionError):
        return parse_json(text, place)


def _is_long_number(text: str) -> bool:
    return len(text) > NUMBER and _NUMBER.fullmatch(text) is not None


def _separators(content: bytes) -> int:
    return content.count(b",") + content.count(b"[") + content.count(b"{")


def _is_table(value: Any) -> bool:
    """True for ``{query: {document: grade}}``, whose keys are ids, not fields."""
    return (
        isinstance(value, dict)
        and not value.keys() & {"attributes", "entities", "queries"}
        and all(isinstance(inner, dict) for inner in value.values())
    )


def _whole(text: str, place: Place) -> None:
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as problem:
        half = text[problem.start].encode("unicode_escape").decode()
        raise place.error(f"'{half}' is half of a character pair", "write the whole character") from None
