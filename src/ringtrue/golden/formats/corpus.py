"""Documents as JSON lines ``{"_id", "title", "text", "metadata", "tags"}``: BEIR's corpus file, and ours elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ringtrue.errors import MissingInput
from ringtrue.formats.text import Place
from ringtrue.golden.formats.draft import Draft
from ringtrue.golden.formats.fields import Record, facts_of, id_of, ids_of, json_lines, mapping_of, text_of
from ringtrue.golden.formats.output import write_json_lines
from ringtrue.records import Document, GoldenSet

IDS = ("_id", "id", "doc_id")
"""Names for the id of a document; the first that a line has counts."""
STRUCTURE = ("title", "text", "tags")


def read_documents(path: Path, draft: Draft, *, belongs: tuple[str, str] | None = None) -> None:
    """Read a corpus file into the draft; ``belongs`` is a metadata field and value that each of its documents has."""
    for place, record in json_lines(path, draft.complaints):
        with draft.complaints.about(place):
            name = next((name for name in IDS if name in record), IDS[0])
            facts = facts_of(record, (name, *STRUCTURE), place)
            if belongs is not None and facts.setdefault(belongs[0], belongs[1]) != belongs[1]:
                problem = f"{facts[belongs[0]]!r:.80} in the file of '{belongs[1]}'"
                raise place.at(belongs[0]).error(problem, f"write '{belongs[1]}' or move the document to its own file")
            document = Document(
                doc_id=id_of(record, name, place),
                text=text_of(record, "text", place),
                title=text_of(record, "title", place, default=""),
                metadata=facts,
                tags=tuple(ids_of(record, "tags", place, default=[])),
            )
            draft.add_document(document, place)


def document_row(document: Document) -> Record:
    """Return one line of a corpus file."""
    row: Record = {"_id": document.doc_id, "title": document.title, "text": document.text}
    # BEIR's own readers look for a metadata object, so facts stay nested here whatever they are called.
    if document.metadata:
        row["metadata"] = dict(document.metadata)
    return row | ({"tags": list(document.tags)} if document.tags else {})


def write_documents(golden: GoldenSet, path: Path) -> None:
    """Write the documents of a set as a corpus file."""
    write_json_lines((document_row(document) for document in golden.documents), path)


def corpus_paths(record: Record, place: Place, folder: Path | None) -> dict[str, Path]:
    """Return the corpus files that a ``corpus`` field names: one path (under ''), or several by name.

    Without a folder there are none, and naming one is an error: a path in what a stranger sent is never opened.
    """
    value: Any = record.get("corpus")
    if value is None:
        return {}
    if folder is None:
        cure = "put both into one file (ringtrue golden convert SET gold.json) and send that, or a zip of a BEIR folder"
        raise place.at("corpus").error(f"the documents are in another file, {value!r:.60}, which was not sent", cure)
    names = {"": value} if isinstance(value, str) else mapping_of(record, "corpus", place)
    paths = {}
    for name in names:
        here = place.at("corpus") if not name else place.at("corpus").at(name)
        relative = names[name]
        if not isinstance(relative, str) or not relative.strip():
            raise here.error(f"{relative!r:.80} is not a path", "write a file or folder, relative to this file")
        path = folder / relative
        if not path.exists():
            raise MissingInput(f"{here}: there is no '{relative}' in {folder}; put the corpus there or correct the path")
        paths[name] = path
    return paths
