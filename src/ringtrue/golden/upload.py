"""Bytes from strangers → GoldenSet: nothing they say is opened, and nothing they say costs more than it may.

A few bytes can stand for gigabytes, or for hours: nested lists, aliases, numbers to the base of 60, objects with a million
keys. Each is counted (``Spent``) while it is still text, or at the latest before a reader of a format takes longer over it
than over any honest set of its size.

A set comes in one file of any of our JSON, YAML or JSON-lines formats. Readers that want a file get one of our own in a folder
that nobody else sees; messages name it as its sender did.
"""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Literal, get_args

from ringtrue.errors import InputError, RingtrueError, nearest
from ringtrue.formats import Place, decode, one_line, parse_json, read_yaml
from ringtrue.golden.formats import FORMATS, NotRecognised, detect, documents, format_of, read_value
from ringtrue.golden.formats.fields import METADATA, Complaints
from ringtrue.golden.loading import with_corpus_hash
from ringtrue.golden.version import content_hash
from ringtrue.records import GoldenSet

Kind = Literal["json", "yaml", "jsonl"]
UNNAMED = "upload"
_IN_LINES = ("gold-jsonl", "memory-bench", "agent-memory", "ragas", "openinference")
_IN_JSON = ("golden-dataset", "test-set", "dict", *_IN_LINES)
_TAKEN = (
    "send JSON or YAML with 'queries' (each with query_id, query_text and relevant_docs or expected_results), JSON lines with "
    "one query each, or {query: {document: grade}} as JSON"
)
_ARCHIVES = (b"\x1f\x8b", b"PK\x03\x04")


# ── what it may cost ────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class UploadLimits:
    """How large what strangers send may be; sizes in bytes."""

    content: int = 20_000_000
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


KEY = 1_000
"""Characters of a key."""
NUMBER = 100
"""Characters of a number in YAML, where one to the base of 60 takes time with the square of its length."""
_FREE = frozenset({METADATA, "relevance_labels", "judgment_details"})
_YAML_VALUE = 30
_TEXT_TAG = "tag:yaml.org,2002:str"
_LONG_NUMBER = re.compile(rf"[-+.0-9][-+.:_0-9a-fA-FxX]{{{NUMBER},}}")
_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)


@dataclass
class Spent:
    """What was found so far in an upload; every method raises InputError if a limit is passed."""

    limits: UploadLimits
    values: int = 0
    fields: int = 0

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
        if isinstance(event, yaml.ScalarEvent) and event.implicit[0] and _LONG_NUMBER.fullmatch(event.value):
            raise here.error(f"a number of {len(event.value):,} characters", "put it in quotes")

    def record(self, value: Any, place: Place) -> None:
        """Go through one parsed document or line."""
        # The last says that only facts or ids follow, and nobody compares how those are called with anything.
        left: list[tuple[Any, str, int, bool]] = [(value, "", 1, _is_table(value))]
        while left:
            item, key, depth, facts = left.pop()
            if isinstance(item, str):
                self._text(item, f"text of {len(item):,} characters in '{key:.60}'", self.limits.text, place)
                left += [(one, key, depth + 1, facts) for one in self._inner(item, key, place)]
            elif isinstance(item, dict | list) and depth > self.limits.depth:
                raise self._too_deep(place)
            elif isinstance(item, list):
                left += [(one, key, depth + 1, facts) for one in item]
            elif isinstance(item, dict):
                self.fields += 0 if facts or key in _FREE else len(item)
                if self.fields > self.limits.fields:
                    cure = "put facts under 'metadata', or send fewer records"
                    raise place.error(f"more than {self.limits.fields:,} fields", cure)
                for name in item:
                    self._text(name, f"key of {len(name):,} characters, '{name:.40}…'", KEY, place)
                left += [(one, name, depth + 1, facts or name == METADATA) for name, one in item.items()]
            elif isinstance(item, float) and not math.isfinite(item):
                raise place.error(f"the number of '{key:.60}' is not finite", "write a finite number or null")
            elif isinstance(item, int | float) and abs(item) >= 2**63:  # a grade may be written as 3.0
                raise place.error(f"the number of '{key:.60}' has more than 64 bits", "put an id in quotes")

    def _inner(self, text: str, key: str, place: Place) -> list[Any]:
        """Return what lies in a text that a reader would parse once more: exporters of spans write JSON inside JSON."""
        if key.rpartition(".")[2] in ("documents", METADATA) and text.lstrip()[:1] in ("[", "{"):
            self.structure(text.encode(), place)
            with suppress(InputError):  # a text like any other, or the reader says what is wrong
                return [parse_json(text, place)]
        return []

    def _text(self, text: str, what: str, most: int, place: Place) -> None:
        if len(text) > most:
            raise place.error(f"a {what}, {most:,} are allowed", "shorten it")
        try:
            text.encode()
        except UnicodeEncodeError as problem:
            half = text[problem.start].encode("unicode_escape").decode()
            raise place.error(f"'{half}' is half of a character pair", "write the whole character") from None

    def _count(self, more: int, place: Place, *, each: int = 1) -> None:
        self.values += more * each
        if self.values > self.limits.values:
            cure = "send the same as JSON" if each > 1 else "send a part of the set"
            raise place.error(f"holds more than {self.limits.values // each:,} values", cure)

    def _too_deep(self, place: Place) -> InputError:
        return place.error(f"nested more than {self.limits.depth} deep", "flatten it")


def _separators(content: bytes) -> int:
    return content.count(b",") + content.count(b"[") + content.count(b"{")


def _is_table(value: Any) -> bool:
    """True for ``{query: {document: grade}}``, whose keys are ids, not fields."""
    return (
        isinstance(value, dict)
        and not value.keys() & {"attributes", "entities", "queries"}
        and all(isinstance(inner, dict) for inner in value.values())
    )


# ── reading ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def read_upload(content: bytes, *, kind: Kind, name: str, limits: UploadLimits | None = None) -> GoldenSet:
    """Return the golden set in bytes that anybody may have sent, with the hash of its corpus.

    ``kind`` says what they are and ``name`` how to call them in messages; a set without an id gets the name of its file, and
    without ``name`` one made of its content, like upload-3f9a12c0. Raises InputError, one line with place, value and cure: for
    what its format's reader refuses in a file, for a set that needs another file, and for anything beyond ``limits``.
    """
    if kind not in get_args(Kind):
        raise InputError(f"there is no kind of upload '{kind}'; choose {nearest(str(kind), get_args(Kind))}")
    called = one_line(name).strip()[:200] or UNNAMED
    bounds = limits or UploadLimits()
    if len(content) > bounds.content:
        raise InputError(f"{called}: has {len(content):,} bytes, at most {bounds.content:,} are allowed; send part of the set")
    with tempfile.TemporaryDirectory(prefix="ringtrue-") as scratch:
        own = Path(scratch) / f"golden-set.{kind}"
        try:
            golden = _READERS[kind](_Upload(content, called, own, bounds, Spent(bounds)))
        except RingtrueError as problem:
            raise type(problem)(str(problem).replace(str(own), called)) from None
    for what in ("queries", "documents", "judgments"):
        count, most = len(getattr(golden, what)), getattr(bounds, what)
        if count > most:
            raise InputError(f"{called}: has {count:,} {what}, at most {most:,} are allowed; send part of the set")
    golden = with_corpus_hash(golden, called)
    # Sets that nobody named must not pass for versions of one set.
    unnamed = not name.strip() and golden.id == UNNAMED
    return replace(golden, id=f"{UNNAMED}-{content_hash(golden)[:8]}") if unnamed else golden


@dataclass(frozen=True)
class _Upload:
    """What was sent, how it is called, and the file of our own that stands for it."""

    content: bytes
    name: str
    own: Path
    limits: UploadLimits
    spent: Spent

    @property
    def place(self) -> Place:
        return Place(self.name)

    @property
    def id(self) -> str:
        """What a set is called that does not say it."""
        return PurePosixPath(self.name.replace("\\", "/")).stem[:100].strip() or UNNAMED

    def text(self) -> str:
        """Return the content as text; raises InputError for what is none."""
        if self.content.startswith(_ARCHIVES):
            raise self.place.error("is an archive", "unpack it first")
        if not self.content.strip():
            raise self.place.error("is empty", "send at least one query")
        return decode(self.content, self.name)

    def read(self, allowed: Iterable[str]) -> GoldenSet:
        """Return the set as the reader of its format finds it in a file of our own; none of these opens another."""
        self.own.write_bytes(self.content)
        try:
            found, file = detect(self.own)
        except NotRecognised:
            # Its reasons name formats of files and folders that no upload may be.
            seen = one_line(self.content[:60].decode("utf-8", "replace"))
            raise self.place.error(f"is not recognised as a golden set, it begins {seen!r}", _TAKEN) from None
        if found not in allowed:
            raise self.place.error(f"looks like {found}", f"send one of {', '.join(allowed)}")
        return replace(FORMATS[found].read(file, Complaints()), id=self.id)


# ── one file ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _read_json(upload: _Upload) -> GoldenSet:
    text = upload.text()
    upload.spent.structure(upload.content, upload.place)
    value = parse_json(text, upload.place)
    upload.spent.record(value, upload.place)
    return read_value(value, upload.place, format_of(value), name=upload.id) or upload.read(_IN_JSON)


def _read_yaml(upload: _Upload) -> GoldenSet:
    upload.text()
    if len(upload.content) > upload.limits.yaml:
        problem = f"has {len(upload.content):,} bytes of YAML, {upload.limits.yaml:,} are allowed"
        raise upload.place.error(problem, "send the same as JSON")
    upload.own.write_bytes(upload.content)
    value = read_yaml(upload.own, check=upload.spent.yaml)
    upload.spent.record(value, upload.place)
    return documents.parsed_test_set(value, upload.place, Complaints(), name=upload.id)


def _read_lines(upload: _Upload) -> GoldenSet:
    upload.text()
    lines = upload.content.split(b"\n", upload.limits.queries + 1)
    if len(lines) > upload.limits.queries + 1:  # behind the last line end
        raise upload.place.error(
            f"has more than {upload.limits.queries:,} lines, so many queries are allowed", "send a part of the set"
        )
    for number, line in enumerate(lines, 1):
        if line.strip():
            here = upload.place.on(number)
            upload.spent.structure(line, here)
            upload.spent.record(parse_json(line.decode("utf-8-sig"), here), here)
    return upload.read(_IN_LINES)


_READERS: dict[str, Callable[[_Upload], GoldenSet]] = {
    "json": _read_json,
    "yaml": _read_yaml,
    "jsonl": _read_lines,
}
