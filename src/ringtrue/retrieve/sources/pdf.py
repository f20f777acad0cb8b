"""PDF → a document. In: an open file; out: the text of its pages, its title and the number of pages."""

from __future__ import annotations

from io import BufferedReader

from ringtrue.errors import MissingInput
from ringtrue.extras import install_command
from ringtrue.formats import Place, one_line, usable_id
from ringtrue.records import Document
from ringtrue.retrieve.protocol import plain
from ringtrue.retrieve.sources.files import File
from ringtrue.retrieve.sources.opening import Empty


def no_pypdf() -> str:
    """Return why a PDF cannot be read without pypdf, with the cure."""
    return f"pypdf is not installed; {install_command('pdf')}"


def pdf_document(file: File, content: BufferedReader, place: Place) -> Document:
    """Return a PDF; raises Empty where its pages hold no text."""
    try:
        from pypdf import PdfReader
    except ImportError as problem:
        raise MissingInput(one_line(f"{file.path}: {no_pypdf()}")) from problem
    try:
        reader = PdfReader(content)
        locked = reader.is_encrypted and not reader.decrypt("")
        pages = [] if locked else [page.extract_text().strip() for page in reader.pages]
        title = None if locked or reader.metadata is None else reader.metadata.title
    except Exception as problem:  # a damaged PDF makes its library fail in more ways than it has errors for
        reason = f"{type(problem).__name__}: {problem}".split("\n")[0]
        raise place.error(f"cannot be read as PDF ({reason:.120})", "open it and save it again") from problem
    if locked:
        raise place.error("the PDF asks for a password", "save it without one")
    text = "\n\n".join(page for page in pages if page)
    if not text:
        raise Empty("there is no text in the PDF (are its pages pictures?)", "run text recognition on it first")
    return Document(usable_id(file.doc_id, place), plain(text), plain(str(title or "").strip()), {"pages": len(pages)})
