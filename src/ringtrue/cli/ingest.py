"""``ringtrue ingest``: documents into a folder that can be searched."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ringtrue.cli import show
from ringtrue.cli.options import Json
from ringtrue.errors import InputError, MissingInput, nearest

if TYPE_CHECKING:
    from ringtrue.records import Document
    from ringtrue.retrieve import Collection
    from ringtrue.retrieve.sources import Skipped, Source

DEFAULT_FOLDER = Path(".ringtrue/documents")


def ingest_command(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH...",
            help="Files or folders (JSON, JSONL, CSV, TSV, Markdown, text, HTML, PDF, .gz), a BEIR folder, or a golden set.",
        ),
    ],
    into: Annotated[Path, typer.Option(help="Folder for documents and indexes.")] = DEFAULT_FOLDER,
    retriever: Annotated[str, typer.Option("--retriever", "-r", help="Make indexes for this retriever; '': none.")] = "hybrid",
    chunk: Annotated[
        str | None, typer.Option(help="fixed(tokens=512, overlap=50), sentence, markdown, semantic or none; once per folder.")
    ] = None,
    remove_missing: Annotated[bool, typer.Option("--remove-missing", help="Remove documents that PATH does not have.")] = False,
    id_field: Annotated[str | None, typer.Option(help="Field or column with the document id.")] = None,
    title_field: Annotated[str | None, typer.Option(help="Field or column with the title.")] = None,
    text_field: Annotated[str | None, typer.Option(help="Field or column with the text.")] = None,
    json: Json = False,
) -> None:
    """Index documents for search; only changes are processed.

    Stop it whenever you like: the next run goes on where this one ended. A file that is one document is called by its path
    from the current folder.

    \b
    Example: ringtrue ingest docs/ --into .ringtrue/documents
    Example: ringtrue ingest hotel && ringtrue search "quiet room with a pool"
    """
    from ringtrue.retrieve import Collection, build, indexes_of
    from ringtrue.retrieve.sources import Fields

    if retriever:
        from ringtrue.retrieve import canonical

        canonical(retriever)  # a wrong one is refused before anything is read
    fields = Fields(id_field, title_field, text_field)
    golden, source = _sources(paths, guessed=fields == Fields())  # what is not there is said before a folder is made
    collection = Collection.create(into, chunks=chunk)
    skipped: list[Skipped] = []
    blank: list[str] = []
    with collection.writing():
        # Files advance the bar by their bytes, which are known beforehand; golden sets by their documents.
        with progress_bar("reading", source.size if source else len(golden), in_bytes=source is not None) as step:
            found = source.documents(fields, progress=step, skipped=skipped.append) if source else iter(())
            last = _only_if_all_was_read(skipped) if remove_missing else ()
            done = collection.ingest(
                _watched(chain(golden, found, last), blank),
                remove_missing=remove_missing,
                progress=None if source is not None else step,
            )
        made: dict[str, int] = {}
        for index in indexes_of(build(retriever, collection)) if retriever else []:
            with progress_bar(index.folder.name.split("-")[0], index.pending()) as step:
                index.ready(progress=step)
            made[index.folder.name] = len(index.ids)
    coverage = _coverage(collection, retriever) if retriever else None
    if json:
        show.end_with_json(
            {
                "folder": into,
                "documents": len(collection),
                **vars(done),
                "blank": len(blank),
                "indexes": made,
                "coverage": coverage,
                "skipped": [str(item) for item in skipped],
            }
        )
    counts = ", ".join(f"{count} {what}" for what, count in vars(done).items())
    print(f"{into}: {len(collection)} documents ({counts})")
    if coverage is not None:
        print(f"vectors for {coverage[0]} of {coverage[1]} passages")
    if blank:
        several = f"{len(blank)} documents have" if len(blank) > 1 else "1 document has"
        show.note(f"{several} neither title nor text and cannot be found by words, such as '{blank[0]}'")
    for item in skipped[:10]:
        show.note(f"skipped {item}")
    if len(skipped) > 10:
        show.note(f"skipped {len(skipped) - 10} more; --json lists them all")


def documents_in(path: str) -> Iterator[Document]:
    """Yield the documents of a golden set, a file or a folder; raises InputError for the first that cannot be read."""
    from ringtrue.retrieve.sources import Fields

    golden, source = _sources([path], guessed=True)
    yield from golden
    if source is not None:
        yield from source.documents(Fields())


def _sources(paths: list[str], *, guessed: bool) -> tuple[list[Document], Source | None]:
    """Return the documents of golden sets, and everything else as files; what lies there comes before a shipped name."""
    from ringtrue.golden import holds_golden_set, load, shipped
    from ringtrue.retrieve.sources import find

    golden: list[Document] = []
    files: list[str] = []
    for path in paths:
        place = Path(path)
        if not place.exists() and not place.is_symlink():
            golden += load(path if path in shipped() else _missing(path)).documents
            continue
        if path in shipped():
            show.note(f"'{path}' is read from the current folder; the shipped set of that name is not")
        if guessed and holds_golden_set(place, with_documents=True):
            golden += load(place).documents
        elif place.suffix in (".yaml", ".yml") and holds_golden_set(place):
            raise MissingInput(f"{path}: the golden set brings no documents; give the files of the documents it judges")
        else:
            files.append(path)
    return golden, find(files) if files else None


def _missing(path: str) -> str:
    """Raise MissingInput: there is neither a path nor a shipped set of that name."""
    from ringtrue.golden import shipped

    folder = Path(path).parent
    beside = sorted(item.name for item in folder.iterdir())[:500] if folder.is_dir() else []
    near = nearest(Path(path).name, [*beside, *shipped()])
    raise MissingInput(
        f"{path}: there is no such file or folder; did you mean {near}? (shipped golden sets: {', '.join(shipped())})"
    )


def _watched(documents: Iterable[Document], blank: list[str]) -> Iterator[Document]:
    """Yield the documents; those with neither title nor text are remembered."""
    for document in documents:
        if not document.title.strip() and not document.text.strip():
            blank.append(document.doc_id)
        yield document


def _only_if_all_was_read(skipped: list[Skipped]) -> Iterator[Document]:
    """Yield nothing after the last document; raise InputError if a file could not be read.

    Its documents would be missing, and be removed, though they are there.
    """
    unread = [item for item in skipped if item.unreadable]
    if unread:
        more = f" and {len(unread) - 1} more" if len(unread) > 1 else ""
        raise InputError(
            f"nothing was removed, because not all could be read ({unread[0]}{more}); mend or move it, "
            "or run without --remove-missing"
        )
    yield from ()


def _coverage(collection: Collection, retriever: str) -> tuple[int, int] | None:
    from ringtrue.retrieve import build, indexes_of

    found = [index.coverage() for index in indexes_of(build(retriever, collection)) if hasattr(index, "coverage")]
    return found[0] if found else None


@contextmanager
def progress_bar(what: str, total: int | None, *, in_bytes: bool = False) -> Iterator[Callable[[int], None] | None]:
    """Show a bar on a terminal; nothing in a pipe."""
    if not sys.stderr.isatty() or not total:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    done = DownloadColumn() if in_bytes else MofNCompleteColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), done, TimeRemainingColumn(elapsed_when_finished=True))
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(what, total=total)
        yield lambda count: bar.update(task, advance=count)
