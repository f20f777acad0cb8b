"""Bytes on disk or standard input → checked text, JSON, JSON lines and YAML, with a place for every complaint."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import re
import secrets
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from ringtrue.errors import InputError, MissingInput, nearest

T = TypeVar("T")
STDIN = "-"
_DEEPEST = 100
_WORD = re.compile(r"\S")
_WIDE = ((b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16"))
_UNSHOWABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def one_line(message: str) -> str:
    """Return a message with line breaks, control characters and half characters written as escapes."""
    return _UNSHOWABLE.sub(lambda found: found[0].encode("unicode_escape").decode(), message)


@dataclass(frozen=True)
class Place:
    """Where in the input something stands, so that an error can name it: file, line, field."""

    file: str
    line: int | None = None
    field: str = ""

    def __str__(self) -> str:
        where = "standard input" if self.file == STDIN else self.file
        where += "" if self.line is None else f":{self.line}"
        return where + (f": field '{self.field}'" if self.field else "")

    def at(self, field: str | int) -> Place:
        """Return the place of a field or list item inside this one."""
        if isinstance(field, int):
            return replace(self, field=f"{self.field}[{field}]")
        return replace(self, field=f"{self.field}.{field}" if self.field else field)

    def on(self, line: int | None) -> Place:
        """Return the place with its line."""
        return replace(self, line=line)

    def error(self, problem: str, cure: str) -> InputError:
        """Return the error to raise: one line with place, problem and cure."""
        error = InputError(one_line(f"{self}: {problem}; {cure}"))
        error.place = one_line(str(self))
        return error


def read_bytes(path: str | Path) -> bytes:
    """Return the content of a file, gunzipped where it is gzip; ``-`` is standard input. Raises on an empty one."""
    name = str(path)
    if name == STDIN:
        content = sys.stdin.buffer.read()
    else:
        content = _file_bytes(Path(name))
    if content[:2] == b"\x1f\x8b":
        try:
            content = gzip.decompress(content)
        except (EOFError, OSError, zlib.error) as problem:
            raise Place(name).error(f"the gzip data is damaged ({problem})", "download or compress the file again") from problem
    if not content.strip():
        raise Place(name).error("the file is empty", "write at least one record into it")
    return content


def _file_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise MissingInput(one_line(f"{path}: there is no such file; {_similar_files(path)}")) from None
    except IsADirectoryError:
        raise MissingInput(one_line(f"{path}: is a folder, not a file; name the file inside it")) from None
    except OSError as problem:
        raise Place(str(path)).error(f"cannot be read ({problem.strerror})", "check its permissions") from problem


def _similar_files(path: Path) -> str:
    names: list[str] = []
    with contextlib.suppress(OSError):
        names = sorted(item.name for item in path.parent.iterdir() if not item.name.startswith("."))[:500]
    return f"did you mean {nearest(path.name, names)}?" if names else "check the path"


def decode(content: bytes, path: str | Path) -> str:
    """Return UTF-8 bytes as text (a byte-order mark is dropped); raises InputError naming the line of a wrong byte."""
    place = Place(str(path))
    for mark, encoding in _WIDE:
        if content.startswith(mark):
            raise place.error(f"the file is {encoding}", "save it as UTF-8")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = content.count(b"\n", 0, problem.start) + 1
        raise place.on(line).error(f"byte 0x{content[problem.start]:02x} is not UTF-8", "save the file as UTF-8") from problem
    if "\x00" in text:
        line = text.count("\n", 0, text.index("\x00")) + 1
        raise place.on(line).error("a NUL character", "remove it, or save the file as plain UTF-8 text")
    return text


def read_text(path: str | Path) -> str:
    """Return the checked text of a file."""
    return decode(read_bytes(path), path)


def lines(path: str | Path) -> Iterator[tuple[int, str]]:
    """Yield (line number, line) without line ends; CRLF reads like LF."""
    return ((number, line.removesuffix("\r")) for number, line in enumerate(read_text(path).split("\n"), 1))


def read_json(path: str | Path) -> Any:
    """Return a JSON document; a repeated key is an error, since the earlier value would vanish."""
    return parse_json(read_text(path), Place(str(path)))


def parse_json(text: str, place: Place) -> Any:
    """Return the JSON value in ``text``; errors name the place, within a document by its line."""
    return _parsed(text, place, lambda decoder: decoder.decode(text))


def _parsed(text: str, place: Place, parse: Callable[[json.JSONDecoder], T]) -> T:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        record = dict(pairs)
        if len(record) != len(pairs):
            repeated = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
            raise place.error(f"the key '{repeated:.60}' is given twice in one object", "keep one of the two")
        return record

    def refuse(constant: str) -> Any:
        # The parser does not say where it is; the first such word outside a text is the one it stumbled over.
        words = re.finditer(r'"(?:[^"\\]|\\.)*"|-?[A-Za-z]+', text)
        start = next((word.start() for word in words if word[0] == constant), 0)
        line = text.count("\n", 0, start) + 1 if place.line is None else place.line
        raise place.on(line).error(f"{constant} is not a JSON number", "write a finite number or null")

    try:
        return parse(json.JSONDecoder(object_pairs_hook=unique, parse_constant=refuse))
    except json.JSONDecodeError as problem:
        line = problem.lineno if place.line is None else place.line
        near = text[problem.pos : problem.pos + 20]
        found = f"{problem.msg} at column {problem.colno}, near {near!r}" if near else f"{problem.msg}, at the end"
        raise place.on(line).error(f"not valid JSON: {found}", "fix the JSON there") from problem
    except ValueError as problem:  # a whole number of thousands of digits
        raise place.error(f"not usable JSON: {str(problem).split(';')[0]}", "write a shorter number") from problem
    except RecursionError:
        raise place.error("the JSON is nested too deeply", "flatten it") from None


def read_jsonl(path: str | Path) -> Iterator[tuple[Place, dict[str, Any]]]:
    """Yield (place, object) per object of a file, however ``json_records`` finds it written; other values are errors."""
    for place, read in json_records(path):
        yield place, read()


def json_records(path: str | Path) -> Iterator[tuple[Place, Callable[[], dict[str, Any]]]]:
    """Yield (place, read) per object of a file: one object a line, objects over several lines each, or one list of objects.

    ``read`` returns the object or raises InputError; the objects after a broken line can still be read.
    """
    text, place = read_text(path), Place(str(path))
    start = len(text) - len(text.lstrip())
    if text.startswith("[", start):
        values = parse_json(text, place)
        if not values:
            raise place.error("the list is empty", "write at least one record into it")
        for index, value in enumerate(values):
            yield place.at(index), partial(_object, value, place.at(index))
    elif _over_lines(text, start, one_document=Path(path).suffix.lower() == ".json"):
        line, counted = 1, 0
        while (found := _WORD.search(text, start)) is not None:
            value, start = _parsed(text, place, partial(json.JSONDecoder.raw_decode, s=text, idx=found.start()))
            line, counted = line + text.count("\n", counted, found.start()), found.start()
            yield place.on(line), partial(_object, value, place.on(line))
    else:
        for number, written in enumerate(text.split("\n"), 1):
            if written.strip():
                here = place.on(number)
                yield here, partial(lambda text, here: _object(parse_json(text, here), here), written, here)


def _over_lines(text: str, start: int, *, one_document: bool) -> bool:
    """True if the first object goes on after its first line, as in indented JSON."""
    first, end, _ = text[start:].partition("\n")
    decode = json.JSONDecoder().raw_decode
    with contextlib.suppress(ValueError, RecursionError):
        decode(first)
        return False
    with contextlib.suppress(ValueError, RecursionError):
        decode(text, start)
        return True
    # Neither can be read: the line to name is the one at which the object breaks, or the first of many lines.
    return one_document or not end or first.strip() == "{"


def _object(value: Any, place: Place) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    what = "the line" if place.line is not None else "the item"
    cure = 'write one {"key": value} object per line' if place.line is not None else 'write objects: {"key": value}'
    raise place.error(f"{what} holds {_KINDS.get(type(value), 'an object')}, not an object: {value!r:.40}", cure)


class Located(dict[str, Any]):
    """A mapping read from YAML that remembers the line it began on."""

    line: int | None = None


def read_yaml(path: str | Path, *, check: Callable[[Any, Place, int], None] | None = None) -> Any:
    """Return a YAML document whose mappings know their lines; keys are the text as written.

    Repeated keys, aliases and numbers that YAML reads otherwise than they look (010, 12:30) are errors. ``check`` sees each
    event with its place and depth before anything is built.
    """
    return parse_yaml(read_text(path), Place(str(path)), check=check)


def parse_yaml(
    text: str,
    place: Place,
    *,
    scalar: Callable[[Any, Any, Place], Any] | None = None,
    cure: str = "fix the YAML there",
    check: Callable[[Any, Place, int], None] | None = None,
) -> Any:
    """Return a YAML text as ``read_yaml`` does; ``scalar`` gives a value of its own to (node, loader, place)."""
    import yaml  # costs 20 ms that no other format needs

    try:
        depth = 0
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            here = place.on(event.start_mark.line + 1)
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if check is not None:
                check(event, here, depth)
            if depth > _DEEPEST:  # the parser's time grows with the square of the depth
                raise here.error("the YAML is nested too deeply", "flatten it")
            # Aliases allow a few lines to stand for gigabytes, and a golden set has no use for them.
            if isinstance(event, yaml.AliasEvent):
                raise here.error(f"the alias '*{event.anchor:.60}'", "write the value out")
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        return None if node is None else _yaml_value(node, loader, place, scalar or _yaml_scalar)
    except yaml.YAMLError as problem:
        mark = getattr(problem, "problem_mark", None)
        reason = getattr(problem, "problem", None) or str(problem).split("\n")[0]
        line = None if mark is None else mark.line + 1
        if isinstance(problem, yaml.reader.ReaderError):
            line = text.count("\n", 0, problem.position) + 1
        raise place.on(line).error(f"not valid YAML: {reason}", cure) from problem
    except RecursionError:
        raise place.error("the YAML is nested too deeply", "flatten it") from None


def _yaml_value(node: Any, loader: Any, place: Place, scalar: Callable[[Any, Any, Place], Any]) -> Any:
    """Return what a node of YAML means."""
    if node.id == "scalar":
        return scalar(node, loader, place.on(node.start_mark.line + 1))
    if node.id == "sequence":
        return [_yaml_value(item, loader, place, scalar) for item in node.value]
    record = Located()
    record.line = node.start_mark.line + 1
    for key_node, value_node in node.value:
        here = place.on(key_node.start_mark.line + 1)
        if key_node.id != "scalar":
            raise here.error("a list or mapping stands as a key", "write a text before the colon")
        key = key_node.value  # as written: a key 010 or yes is that text, not 8 or True
        if key in record:
            raise here.error(f"the key '{key}' is given twice", "keep one of the two")
        record[key] = _yaml_value(value_node, loader, place, scalar)
    return record


def _yaml_scalar(node: Any, loader: Any, here: Place) -> Any:
    try:
        value = loader.construct_object(node)
    except (ArithmeticError, AttributeError, LookupError, ValueError) as problem:  # 2024-13-45, !!bool maybe
        kind = node.tag.split(":")[-1]
        raise here.error(f"'{node.value[:60]}' cannot be read as {kind}", "put it in quotes") from problem
    if type(value) is int and str(value) != node.value.removeprefix("+"):
        raise here.error(f"'{node.value[:60]}' means {value} in YAML", "put an id in quotes, or write the plain number")
    return value


def yaml_text(value: Any) -> str:
    """Return a value as YAML without anchors, which ``read_yaml`` refuses."""
    import yaml  # costs 20 ms that no other format needs

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, data: Any) -> bool:
            return True

        def represent_text(self, text: str) -> yaml.ScalarNode:
            # These end a line in YAML and would come back as a blank, unless they are escaped.
            style = '"' if re.search("[\x85\u2028\u2029\ufeff]", text) else None
            return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)

    Dumper.add_representer(str, Dumper.represent_text)
    return str(yaml.dump(value, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=120))


_KINDS: dict[type, str] = {
    list: "a list", str: "a text", int: "a number", float: "a number", bool: "a truth value", type(None): "null"
}  # fmt: skip
_WANTED: dict[type, str] = {
    str: "a text in quotes", int: "a whole number", float: "a number", bool: "true or false", list: "a list",
    dict: "an object with named fields", type(None): "null",
}  # fmt: skip


def required(record: Mapping[str, Any], name: str, place: Place) -> Any:
    """Return one field of a record; raises InputError naming the fields it has if this one is missing."""
    if name in record:
        return record[name]
    seen = ", ".join(f"'{key}'" for key in record) or "no field"
    raise place.error(f"the field '{name}' is missing", f"add it (this record has {seen:.200})")


def field_of(
    record: Mapping[str, Any], name: str, kind: type[T] | tuple[type[T], ...], place: Place, *, default: Any = ...
) -> T:
    """Return one field of a record, checked for its type; raises InputError naming field, value and what to write."""
    if name not in record and default is not ...:
        return default  # type: ignore[no-any-return]
    value = required(record, name, place)
    kinds = kind if isinstance(kind, tuple) else (kind,)
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        wanted = " or ".join(_WANTED[one] for one in kinds)
        raise place.at(name).error(f"{value!r:.80} is {_KINDS.get(type(value), 'an object')}", f"write {wanted}")
    return value


def usable_id(text: str, place: Place) -> str:
    """Return an id that can be told from others and written anywhere; raises InputError otherwise."""
    if not text.strip():
        raise place.error(f"the id {text!r} is blank", "write a non-blank text")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise place.error(f"the id {text!r:.60} holds half of a character pair", "write the whole character")
    return text


def encoded(text: str, path: Path) -> bytes:
    """Return text as UTF-8; raises InputError for half of a character pair, which has no form there."""
    try:
        return text.encode()
    except UnicodeEncodeError as problem:
        half = text[problem.start]
        raise Place(str(path)).error(f"the character '{half}' is half of a pair", "remove it, UTF-8 cannot hold it") from None


def write_text(text: str, path: Path) -> None:
    """Write a UTF-8 text file, gzipped where its name ends in ``.gz``; raises InputError when that is not possible."""
    content = encoded(text, path)
    try:
        path.write_bytes(gzip.compress(content, mtime=0) if path.suffix.lower() == ".gz" else content)
    except OSError as problem:
        cure = "check the folder and its permissions"
        raise Place(str(path)).error(f"cannot be written ({problem.strerror})", cure) from None


def write_whole(text: str, path: Path) -> None:
    """Write a UTF-8 text file so that a reader sees the old one or the new one, never a part; raises InputError."""
    content = encoded(text, path)
    # The name of the temporary file is new, so that two writers never share one.
    aside = path.with_name(f".{path.name[:40]}.{secrets.token_hex(6)}.tmp")
    try:
        try:
            with aside.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            if path.exists():
                aside.chmod(path.stat().st_mode & 0o777)
            aside.replace(path)
        except BaseException:
            aside.unlink(missing_ok=True)
            raise
    except OSError as problem:
        raise InputError(f"{path}: cannot be written ({problem.strerror}); check the folder and its permissions") from None
