"""Files → documents. In: the files that were found; out: their documents, each id once, read by the format of each file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ringtrue.formats.text import Place, usable_id
from ringtrue.records import Document
from ringtrue.retrieve.sources.files import File, Skipped
from ringtrue.retrieve.sources.html import html_document
from ringtrue.retrieve.sources.json_files import json_documents, json_lines
from ringtrue.retrieve.sources.markdown import markdown_document
from ringtrue.retrieve.sources.opening import Empty, Meter, lines_of, opened, refuse_binary, text_of
from ringtrue.retrieve.sources.pdf import pdf_document
from ringtrue.retrieve.sources.records import GUESSED, Fields, from_rows
from ringtrue.retrieve.sources.tables import table_rows

_OTHER_ID = "give each document its own id; files are called by their path in the folder given, so give the folder above both"


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

        Raises InputError for what cannot be understood, and for an id that comes twice.
        """
        report = skipped or (lambda _: None)
        for one in self.skipped:
            report(one)
        seen: dict[str, int | str] = {}
        for index, file in enumerate(self.files):
            meter = Meter(progress)
            try:
                for place, document in _read(file, fields, meter):
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
                report(Skipped(file.path, nothing.reason))
            meter.finish(file.size)

    def _shown(self, place: int | str) -> str:
        if isinstance(place, str):
            return place
        line, index = divmod(place, len(self.files))
        return str(Place(str(self.files[index].path), line))


def _read(file: File, fields: Fields, meter: Meter) -> Iterator[tuple[Place, Document]]:
    """Yield the documents of one file, each with its place; raises Empty where there are none."""
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
