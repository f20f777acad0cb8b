"""Files and folders → documents, one after the other: JSON, JSON lines, CSV, TSV, Markdown, plain text, HTML and PDF.

Text formats may be gzipped. A file of records gives one document a record, told by its fields (``_id``, ``title``, ``text``
or ``content`` …, what is left becomes metadata); any other file is one document, called by its path from the current folder.
JSON lines, CSV and TSV are streamed; the other formats are held in memory one file at a time. Nothing is left out in
silence: a file of a folder that is not or cannot be read is reported with the reason; a file given by name that cannot be
read, and records that cannot be understood, raise InputError with file, line or record, field and cure.

``files`` finds what there is to read, opens and decodes it; ``readers`` makes documents of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ringtrue.errors import InputError, MissingInput
from ringtrue.formats import Place, one_line, usable_id
from ringtrue.records import Document
from ringtrue.retrieve.sources.files import (
    KINDS as KINDS,
    KNOWN,
    Empty,
    File as File,
    Meter,
    Skipped as Skipped,
    Unreadable,
    kind_of as kind_of,
    lines_of,
    named_file,
    opened,
    refuse_binary,
    text_of,
    walk,
)
from ringtrue.retrieve.sources.readers import (
    GUESSED as GUESSED,
    Fields as Fields,
    from_rows,
    html_document,
    json_documents,
    json_lines,
    markdown_document,
    pdf_document,
    table_rows,
)

_OTHER_ID = "give each document its own id"
_RECORDS = ("json", "jsonl", "csv", "tsv")


@dataclass(frozen=True)
class Source:
    """What the given paths hold: the files to read in their order, and what is not read."""

    files: tuple[File, ...]
    skipped: tuple[Skipped, ...] = ()

    @property
    def size(self) -> int:
        """The bytes on disk that reading will go through."""
        return sum(file.size for file in self.files)

    def documents(
        self,
        fields: Fields = GUESSED,
        *,
        progress: Callable[[int], None] | None = None,
        skipped: Callable[[Skipped], None] | None = None,
    ) -> Iterator[Document]:
        """Yield the documents; ``progress`` hears of bytes gone through since its last call, ``skipped`` of what is left out.

        A file of a folder that cannot be read is left out; one that was given by name, and records that cannot be understood,
        raise InputError. So do an id that comes twice, and folders of which nothing at all could be read.
        """
        report = skipped or (lambda _: None)
        for one in self.skipped:
            report(one)
        seen: dict[str, int | str] = {}
        left_out: list[Skipped] = []
        for index, file in enumerate(self.files):
            meter, given = Meter(progress), False
            try:
                for place, document in _read(file, fields, meter):
                    given = True
                    # Millions of lines are remembered as numbers; the few places without a line as they read.
                    here = str(place) if place.line is None else place.line * len(self.files) + index
                    first = seen.setdefault(document.doc_id, here)
                    if first is not here:
                        raise place.error(f"the id '{document.doc_id:.80}' is taken by {self._shown(first)}", _OTHER_ID)
                    yield document
                    meter.tell()
            except Empty as nothing:
                if file.named:
                    raise Place(str(file.path)).error(nothing.reason, nothing.cure) from None
                left_out.append(Skipped(file.path, nothing.reason))
                report(left_out[-1])
            except InputError as problem:
                # Half a file of records that looks whole helps nobody.
                if file.named or given or (file.kind in _RECORDS and not isinstance(problem, Unreadable)):
                    raise
                line, _, reason = str(problem).removeprefix(one_line(str(file.path))).partition(": ")
                reason = f"line {line.removeprefix(':')}: {reason}" if line else reason
                left_out.append(Skipped(file.path, reason, unreadable=True))
                report(left_out[-1])
            meter.finish(file.size)
        if left_out and not seen:
            more = f", and {len(left_out) - 1} more" if len(left_out) > 1 else ""
            raise InputError(one_line(f"no file could be read ({left_out[0]}{more}); fix these files, or name others"))

    def _shown(self, place: int | str) -> str:
        if isinstance(place, str):
            return place
        line, index = divmod(place, len(self.files))
        return str(Place(str(self.files[index].path), line))


def _read(file: File, fields: Fields, meter: Meter) -> Iterator[tuple[Place, Document]]:
    """Yield the documents of one file, each with its place; raises Empty if there are none."""
    place = Place(str(file.path))
    with opened(file.path, meter) as content:
        if file.kind == "pdf":
            yield place, pdf_document(file, content, place)
            return
        refuse_binary(content, place)
        if file.kind in ("csv", "tsv"):
            yield from from_rows(table_rows(content, place, tabs=file.kind == "tsv"), fields, table=True)
        elif file.kind == "jsonl":
            yield from from_rows(json_lines(lines_of(content, place), place), fields)
        elif file.kind == "json":
            yield from json_documents(file, content, place, fields)
        elif file.kind == "markdown":
            yield place, markdown_document(file, text_of(content, place), place, fields)
        elif file.kind == "html":
            yield place, html_document(file, text_of(content, place), place)
        else:
            yield place, Document(usable_id(file.doc_id, place), text_of(content, place))


def read_documents(
    paths: Sequence[Path | str] | Path | str,
    *,
    id_field: str | None = None,
    title_field: str | None = None,
    text_field: str | None = None,
    progress: Callable[[int], None] | None = None,
    skipped: Callable[[Skipped], None] | None = None,
) -> Iterator[Document]:
    """Yield the documents of files and folders; the fields are guessed if they are not named.

    Raises MissingInput at once when a path is not there, InputError while reading. ``find(paths)`` tells sizes beforehand.
    """
    return find(paths).documents(Fields(id_field, title_field, text_field), progress=progress, skipped=skipped)


def find(paths: Sequence[Path | str] | Path | str) -> Source:
    """Return what files and folders hold, folders to their depths in the order of names; raises MissingInput.

    Hidden files, links to folders and unknown endings are skipped in folders; a file given by name must be readable.
    """
    given = [Path(paths)] if isinstance(paths, str | Path) else [Path(path) for path in paths]
    if not given:
        raise InputError("no file or folder of documents is given; name at least one")
    files: dict[str, File] = {}
    skipped: list[Skipped] = []
    for path in given:
        before = len(files), len(skipped)
        found = walk(path, skipped) if path.is_dir() else [named_file(path)]
        for file in found:
            known = files.setdefault(os.path.realpath(file.path), file)
            if known is not file:
                skipped.append(Skipped(file.path, f"is read as {known.path}"))
        if (len(files), len(skipped)) == before:
            raise MissingInput(one_line(f"{path}: the folder is empty; put documents into it ({KNOWN})"))
        if len(files) == before[0] and not found:
            seen = f"{skipped[before[1]]}" + (f", and {more} more" if (more := len(skipped) - before[1] - 1) else "")
            raise MissingInput(one_line(f"{path}: no file in it can be read ({seen}); use {KNOWN}"))
    return Source(tuple(files.values()), tuple(skipped))
