"""Files and folders → documents, one after the other: JSON, JSON lines, CSV, TSV, Markdown, plain text, HTML and PDF.

Text formats may be gzipped. A file of records gives one document a record, told by its fields (``_id``, ``title``, ``text``
or ``content`` …, what is left becomes metadata); any other file is one document, called by its path from the current folder.
JSON lines, CSV and TSV are streamed; the other formats are held in memory one file at a time. Nothing is left out in
silence: a file of a folder that is not or cannot be read is reported with the reason; a file given by name that cannot be
read, and records that cannot be understood, raise InputError with file, line or record, field and cure.

``files`` finds what there is to read, opens and decodes it, ``source`` goes through it; ``records`` makes documents of what
JSON and tables hold, ``pages`` of the other formats.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ringtrue.errors import InputError, MissingInput
from ringtrue.formats import one_line
from ringtrue.records import Document
from ringtrue.retrieve.sources.files import (
    KINDS as KINDS,
    KNOWN,
    File as File,
    Skipped as Skipped,
    kind_of as kind_of,
    named_file,
    walk,
)
from ringtrue.retrieve.sources.records import GUESSED as GUESSED, Fields as Fields
from ringtrue.retrieve.sources.source import Source as Source


def read_documents(
    paths: Sequence[Path | str] | Path | str,
    *,
    id_field: str | None = None,
    title_field: str | None = None,
    text_field: str | None = None,
    progress: Callable[[int], None] | None = None,
    skipped: Callable[[Skipped], None] | None = None,
) -> Iterator[Document]:
    """Yield the documents of files and folders; the fields are guessed where they are not named.

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
