"""Bytes from strangers → GoldenSet: nothing they say is opened, and nothing they say costs more than it may.

A few bytes can stand for gigabytes, or for hours: nested lists, aliases, numbers to the base of 60, objects with a million
keys. Each is counted (``Spent``) while it is still text, or at the latest before a reader of a format takes longer over it
than over any honest set of its size.

A set comes in one file of any of our JSON, YAML or JSON-lines formats, or as a zip of a BEIR folder. Readers that want a file
get one of our own in a folder that nobody else sees; messages name it as its sender did.
"""

from __future__ import annotations

import io
import json
import math
import re
import stat
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Literal, get_args

from ringtrue.errors import InputError, RingtrueError, nearest
from ringtrue.formats import Place, decode, one_line, parse_json, read_yaml
from ringtrue.golden.formats import FORMATS, NotRecognised, collections, detect, documents, folders, format_of, read_value
from ringtrue.golden.formats.fields import METADATA, Complaints
from ringtrue.golden.formats.folders import MANIFEST
from ringtrue.golden.loading import with_corpus_hash
from ringtrue.golden.version import content_hash
from ringtrue.records import GoldenSet

Kind = Literal["json", "yaml", "jsonl", "zip"]
UNNAMED = "upload"
MEMBERS = 100
"""Files in a zip; a BEIR folder has three or four."""
QRELS_LINE = 4_000
"""Bytes of a line of judgments."""
_IN_LINES = ("gold-jsonl", "memory-bench", "agent-memory", "ragas", "openinference")
_IN_JSON = ("golden-dataset", "test-set", "dict", *_IN_LINES)
_MEMBER = re.compile(
    r"(?:(?P<top>[^/\\\x00-\x1f]{1,200})/)?"
    r"(?P<file>corpus\.jsonl|queries\.jsonl|golden\.json|qrels/[A-Za-z0-9_-]{1,60}\.tsv)"
)
_FOLDER = re.compile(r"(?:[^/\\\x00-\x1f]{1,200}/)?(?:qrels/)?")
_WANTED = "corpus.jsonl, queries.jsonl and qrels/*.tsv, in at most one folder"
_TAKEN = (
    "send JSON or YAML with 'queries' (each with query_id, query_text and relevant_docs or expected_results), JSON lines with "
    "one query each, {query: {document: grade}} as JSON, or a zip of a BEIR folder"
)
_ARCHIVES = (b"\x1f\x8b", b"PK\x03\x04")
_BLOCK = 1 << 20
_DAMAGE = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, RuntimeError, ValueError, OverflowError, LookupError)
"""What the zip module raises over bytes that are not zip, or no longer."""


# ── what it may cost ────────────────────────────────────────────────────────────────────────────────────────────────


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
_YAML_VALUE = 30
_TEXT_TAG = "tag:yaml.org,2002:str"
_LONG_NUMBER = re.compile(rf"[-+.0-9][-+.:_0-9a-fA-FxX]{{{NUMBER},}}")
_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)


@dataclass
class Spent:
    """What was found so far, in all files of an upload; every method raises InputError if a limit is passed."""

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
        if isinstance(event, yaml.ScalarEvent) and event.implicit[0] and _LONG_NUMBER.fullmatch(event.value):
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
        if key.rpartition(".")[2] in ("documents", METADATA) and text.lstrip()[:1] in ("[", "{"):
            self.structure(text.encode(), place)
            with suppress(InputError):  # a text like any other, or the reader says what is wrong
                return [parse_json(text, place)]
        return []

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
        if key == "annotations" and len(item) > RECORD:
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
        raise InputError(f"{called}: has {len(content):,} bytes, {bounds.content:,} are allowed; send a part of the set")
    with tempfile.TemporaryDirectory(prefix="ringtrue-") as scratch:
        own = Path(scratch) / f"golden-set.{kind}"
        try:
            golden = _READERS[kind](_Upload(content, called, own, bounds, Spent(bounds)))
        except RingtrueError as problem:
            raise type(problem)(str(problem).replace(str(own), called)) from None
    for what in ("queries", "documents", "judgments"):
        count, most = len(getattr(golden, what)), getattr(bounds, what)
        if count > most:
            raise InputError(f"{called}: has {count:,} {what}, {most:,} are allowed; send a part of the set")
    golden = with_corpus_hash(golden, called)
    # Sets that nobody named must not pass for versions of one set.
    unnamed = not name.strip() and golden.id == UNNAMED
    return replace(golden, id=f"{UNNAMED}-{content_hash(golden)[:8]}") if unnamed else golden


@dataclass(frozen=True)
class _Upload:
    """What was sent, how it is called, and the file or folder of our own that stands for it."""

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
        _refuse_archive(self.content[:4], self.place)
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
            raise self.place.error(f"looks like {found}", f"send one of {', '.join(allowed)}, or a zip of a BEIR folder")
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
    _check_records(_lines(io.BytesIO(upload.content), upload.place, upload.limits.queries, "queries"), upload.spent)
    return upload.read(_IN_LINES)


def _lines(stream: BinaryIO, place: Place, most: int, what: str, longest: int = -1) -> Iterator[tuple[Place, bytes]]:
    """Yield each line with its place, cut where it exceeds ``longest``; raises InputError for more than ``most`` lines."""
    for number, line in enumerate(iter(lambda: stream.readline(longest), b""), 1):
        if number > most:
            raise place.error(f"has more than {most:,} lines, so many {what} are allowed", "send a part of the set")
        yield place.on(number), line


def _check_records(lines: Iterable[tuple[Place, bytes]], spent: Spent, *, known: frozenset[str] = frozenset()) -> None:
    for here, line in lines:
        if line.strip():
            spent.structure(line, here)
            try:
                text = line.decode("utf-8-sig" if here.line == 1 else "utf-8")
            except UnicodeDecodeError as problem:
                raise here.error(f"byte 0x{line[problem.start]:02x} is not UTF-8", "save the file as UTF-8") from None
            spent.record(parse_json(text, here), here, known=known)


# ── a zip ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _read_zip(upload: _Upload) -> GoldenSet:
    upload.own.mkdir()
    try:
        files = _unpack(upload)
    except _DAMAGE as problem:
        raise upload.place.error(f"is not a zip that can be read ({problem})", "zip the folder again") from None
    known = frozenset({*folders.IDS, "title", "text", "tags", *collections.BEIR_QUERY.structure, METADATA})
    judged = 0
    for name in files:
        place = Place(f"{upload.name}/{name}")
        with (upload.own / name).open("rb") as stream:
            if name in (folders.CORPUS, collections.QUERIES):
                what = "documents" if name == folders.CORPUS else "queries"
                most: int = getattr(upload.limits, what)
                _check_records(_lines(stream, place, most, what), upload.spent, known=known)
            elif name != MANIFEST:
                for here, line in _lines(stream, place, upload.limits.judgments - judged, "judgments", QRELS_LINE + 1):
                    judged += 1
                    if len(line) > QRELS_LINE:
                        raise here.error(f"a line of more than {QRELS_LINE:,} bytes", "write query, document and grade")
    _write_manifest(upload)
    return collections.read_beir(upload.own, Complaints())


def _unpack(upload: _Upload) -> list[str]:
    """Put the files of a zip under our own names for them and return these; headers are not believed, bytes are counted."""
    # Each entry of the list of files begins so; the list is not built before it is known to be short.
    if upload.content.count(b"PK\x01\x02") > 2 * MEMBERS:
        raise upload.place.error(f"holds more than {MEMBERS} files", f"zip only {_WANTED}")
    found: dict[str, zipfile.ZipInfo] = {}
    left = upload.limits.unpacked
    with zipfile.ZipFile(io.BytesIO(upload.content)) as archive:
        for info in archive.infolist():
            name = _member(info, upload.place)
            if name in found:
                raise upload.place.error(f"holds '{name}' twice", "keep one of the two")
            if name is not None:
                found[name] = info
        if len(found) > MEMBERS:
            raise upload.place.error(f"holds more than {MEMBERS} files", f"zip only {_WANTED}")
        if len({info.filename.removesuffix(name) for name, info in found.items()}) > 1:
            raise upload.place.error("holds files of several folders", f"zip only {_WANTED}")
        for name, info in found.items():
            target = upload.own / name
            target.parent.mkdir(exist_ok=True)
            with archive.open(info) as packed, target.open("wb") as file:
                # In blocks: a few bytes may stand for gigabytes.
                for block in iter(lambda: packed.read(_BLOCK), b""):
                    left -= file.write(block)
                    if left < 0:
                        problem = f"holds more than {upload.limits.unpacked:,} bytes when unpacked"
                        raise upload.place.error(problem, "send a part of the set")
            with target.open("rb") as file:
                _refuse_archive(file.read(4), Place(f"{upload.name}/{name}"))
    return list(found)


def _member(info: zipfile.ZipInfo, place: Place) -> str | None:
    """Return which file of a BEIR folder an entry is, None for a folder; raises InputError for anything else."""
    shown = f"'{info.orig_filename:.80}'"
    mode = stat.S_IFMT(info.external_attr >> 16)
    if mode not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise place.error(f"{shown} is not a file but a link or a device", f"zip only {_WANTED}")
    match = _MEMBER.fullmatch(info.filename)
    if info.orig_filename != info.filename or (match is not None and match["top"] in (".", "..")):
        match = None
    elif match is None and info.filename.endswith("/") and _FOLDER.fullmatch(info.filename) and not info.file_size:
        return None
    if match is None:
        raise place.error(f"holds {shown}, which has no place in a BEIR folder", f"zip only {_WANTED}")
    if info.flag_bits & 1:
        raise place.error(f"{shown} is encrypted", "zip it without a password")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise place.error(f"{shown} is compressed in another way than deflate", "zip it as usual")
    return match["file"]


def _write_manifest(upload: _Upload) -> None:
    """Keep what the folder says about itself, but no word about where other files lie."""
    path, here = upload.own / MANIFEST, Place(f"{upload.name}/{MANIFEST}")
    record: Any = {}
    if path.exists():
        content = path.read_bytes()
        upload.spent.structure(content, here)
        record = parse_json(decode(content, here.file), here)
        if not isinstance(record, dict):
            raise here.error(f"the file holds {record!r:.40}, not an object", "write one object with 'id' and 'version'")
        upload.spent.record(record, here)
    facts = record.get(METADATA)
    split = record.get(collections.SPLIT, facts.get(collections.SPLIT, "") if isinstance(facts, dict) else "")
    if not isinstance(split, str):
        raise here.at(collections.SPLIT).error(f"{split!r:.60} is not the name of a part", "write it as text, like 'test'")
    for field, own in (("format", "beir"), ("corpus", folders.CORPUS), ("queries", collections.QUERIES)):
        if record.pop(field, own) != own:
            raise here.at(field).error("is not as in a BEIR folder", f"write '{own}', or leave it out")
    path.write_text(json.dumps({"id": upload.id, **record}))


def _refuse_archive(start: bytes, place: Place) -> None:
    if start.startswith(_ARCHIVES):
        raise place.error("is an archive itself", "unpack it first")


# ── any of them ─────────────────────────────────────────────────────────────────────────────────────────────────────

_READERS: dict[str, Callable[[_Upload], GoldenSet]] = {
    "json": _read_json,
    "yaml": _read_yaml,
    "jsonl": _read_lines,
    "zip": _read_zip,
}
