"""``ringtrue ingest`` and ``ringtrue search``: documents into a folder, and questions to it or to a connected system."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ringtrue.cli import lib, show
from ringtrue.cli.options import Json, pairs_of
from ringtrue.errors import CannotDecide, InputError, MissingInput
from ringtrue.traffic import marked

if TYPE_CHECKING:
    from ringtrue.retrieve.sources import Skipped, Source

DEFAULT_FOLDER = Path(".ringtrue/documents")
Paths = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH...",
        help="Files or folders (JSON, JSONL, CSV, TSV, Markdown, text, HTML, PDF, .gz), a BEIR folder, or a golden set.",
    ),
]


def ingest_command(
    paths: Paths,
    into: Annotated[Path, typer.Option(help="Folder for documents and indexes.")] = DEFAULT_FOLDER,
    retriever: Annotated[str, typer.Option("--retriever", "-r", help="Build indexes for this retriever; '': none.")] = "hybrid",
    chunk: Annotated[
        str | None,
        typer.Option(help="fixed(tokens=512, overlap=50), sentence, markdown, semantic or none; cannot change later."),
    ] = None,
    remove_missing: Annotated[bool, typer.Option("--remove-missing", help="Remove documents that PATH does not have.")] = False,
    id_field: Annotated[str | None, typer.Option(help="Field or column with the document id.")] = None,
    title_field: Annotated[str | None, typer.Option(help="Field or column with the title.")] = None,
    text_field: Annotated[str | None, typer.Option(help="Field or column with the text.")] = None,
    json: Json = False,
) -> None:
    """Index documents for search; only changes are processed.

    You can stop it at any time; the next run continues from there. A file that holds one document gets its path, relative to
    the current folder, as id.

    Example: ringtrue ingest docs/ --into .ringtrue/documents
    Example: ringtrue ingest hotel && ringtrue search "quiet room with a pool"
    """
    from ringtrue.retrieve.sources import Fields

    if retriever:
        lib.retrieve.canonical(retriever)  # a wrong one is refused before anything is read
    fields = Fields(id_field, title_field, text_field)
    golden, source = _sources(paths, guessed=fields == Fields())  # what is not there is said before a folder is made
    collection = lib.retrieve.Collection.create(into, chunks=chunk)
    skipped: list[Skipped] = []
    blank: list[str] = []
    with collection.writing():
        # Files advance the bar by their bytes, which are known beforehand; golden sets by their documents.
        with progress_bar("reading", source.size if source else len(golden), in_bytes=source is not None) as step:
            found = source.documents(fields, progress=step, skipped=skipped.append) if source else iter(())
            last = _only_if_all_was_read(skipped) if remove_missing else ()
            documents, counted = _watched(chain(golden, found, last), blank), None if source is not None else step
            done = collection.ingest(documents, remove_missing=remove_missing, progress=counted)
        indexes = lib.retrieve.indexes_of(lib.retrieve.build(retriever, collection)) if retriever else []
        for index in indexes:
            with progress_bar(index.folder.name.split("-")[0], index.pending()) as step:
                index.ready(progress=step)
    coverage = next((index.coverage() for index in indexes if hasattr(index, "coverage")), None)
    made = {index.folder.name: len(index.ids) for index in indexes}
    record = {"folder": into, "documents": len(collection), **vars(done), "blank": len(blank), "coverage": coverage}
    counts = ", ".join(f"{count} {what}" for what, count in vars(done).items())
    notes = (
        [f"{len(blank)} documents have no title and no text and cannot be found by words, such as '{blank[0]}'"]
        if blank
        else []
    )
    notes += [f"skipped {item}" for item in skipped[:10]] + [f"skipped {len(skipped) - 10} more"] * (len(skipped) > 10)
    show.result(
        json,
        record | {"indexes": made, "skipped": list(map(str, skipped))},
        f"{into}: {show.counted(len(collection), 'document')} ({counts})",
        f"vectors for {coverage[0]} of {coverage[1]} passages" if coverage is not None else "",
        notes=notes,
    )


def documents_in(path: str) -> Iterator[lib.records.Document]:
    """Yield the documents of a golden set, a file or a folder; raises InputError for the first that cannot be read."""
    from ringtrue.retrieve.sources import Fields

    golden, source = _sources([path], guessed=True)
    yield from golden
    if source is not None:
        yield from source.documents(Fields())


def _sources(paths: list[str], *, guessed: bool) -> tuple[list[lib.records.Document], Source | None]:
    """Return the documents of golden sets, and everything else as files; what lies there comes before a shipped name."""
    from ringtrue.retrieve.sources import find

    golden: list[lib.records.Document] = []
    files: list[str] = []
    for path in paths:
        place = Path(path)
        there, shipped = place.exists() or place.is_symlink(), path in lib.golden.shipped()
        if there and shipped:
            show.note(f"'{path}' is read from the current folder; the shipped set of that name is not")
        if shipped and not there:
            golden += lib.golden.load(path).documents
        elif guessed and lib.golden.holds_golden_set(place, with_documents=True):
            golden += lib.golden.load(place).documents
        elif place.suffix in (".yaml", ".yml") and lib.golden.holds_golden_set(place):
            raise MissingInput(f"{path}: the golden set brings no documents; give the files of the documents it judges")
        else:
            files.append(path)
    return golden, find(files) if files else None


def _watched(documents: Iterable[lib.records.Document], blank: list[str]) -> Iterator[lib.records.Document]:
    """Yield the documents; those with neither title nor text are remembered."""
    for document in documents:
        if not document.title.strip() and not document.text.strip():
            blank.append(document.doc_id)
        yield document


def _only_if_all_was_read(skipped: list[Skipped]) -> Iterator[lib.records.Document]:
    """Yield nothing after the last document; raise InputError if a file could not be read.

    Its documents would be missing, and be removed, though they are there.
    """
    unread = [item for item in skipped if item.unreadable]
    if unread:
        which = f"{unread[0]}" + (f" and {len(unread) - 1} more" if len(unread) > 1 else "")
        cure = "fix or move it, or run without --remove-missing"
        raise InputError(f"nothing was removed, because some files could not be read ({which}); {cure}")
    yield from ()


@contextmanager
def progress_bar(what: str, total: int | None, *, in_bytes: bool = False) -> Iterator[Callable[[int], None] | None]:
    """Show a bar on a terminal; nothing in a pipe."""
    with show.bar(quiet=not total, in_bytes=in_bytes) as bar:
        task = bar.add_task(what, total=total) if bar else None
        yield None if bar is None or task is None else lambda count: bar.update(task, advance=count)


def search_command(
    text: Annotated[str | None, typer.Argument(help="The query.")] = None,
    folder: Annotated[Path, typer.Option("--in", help="Folder made by ringtrue ingest.")] = DEFAULT_FOLDER,
    retriever: Annotated[
        str,
        typer.Option("--retriever", "-r", help="Like bm25, 'rrf(bm25, dense)', \"connect('shop')\" or 'hybrid >> mmr(0.7)'."),
    ] = "hybrid",
    k: Annotated[int, typer.Option("-k", min=1, help="Number of hits.")] = 10,
    scope: Annotated[list[str] | None, typer.Option(help="Only documents with this metadata value: city=Bath.")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show every stage's rank and score for every hit.")] = False,
    queries: Annotated[str | None, typer.Option(help="Answer every query of a golden set or BEIR folder; needs --run.")] = None,
    run: Annotated[Path | None, typer.Option(help="Write the answers to --queries as a run file.")] = None,
    json: Json = False,
) -> None:
    """Search indexed documents or a connected system.

    Example: ringtrue search "quiet room with a pool" --explain
    Example: ringtrue search "refund policy" --retriever "connect('shop')" -k 5
    Example: ringtrue search --queries scifact/ --in scifact-index --run hybrid.run -k 100
    """
    wanted = pairs_of(scope or (), "--scope", "city=Bath")
    if (text is None) == (queries is None) or (queries is None) != (run is None) or (explain and text is None):
        raise InputError("give one query, with --explain if you like, or --queries with --run for the file of answers")
    collection = opened(folder) if lib.retrieve.names_documents(retriever) else None
    found = lib.retrieve.build(retriever, collection)
    if queries is not None and run is not None:
        _answer_all(found, queries, run, collection, k=k, scope=wanted, retriever=retriever, json=json)
        return
    assert text is not None
    hits = found.search(text, k=k, scope=wanted or None)
    record = {"query": text, "retriever": str(lib.retrieve.canonical(retriever)), "k": k}
    known = {doc_id: " ".join(filter(None, passage)) for doc_id, passage in lib.run.answered_passages(found).items()}
    known |= collection.texts_known(hit.doc_id for hit in hits) if collection is not None else {}
    rows = [
        (rank, hit.doc_id, show.short(known.get(hit.doc_id, ""), 72), show.score(hit.score)) for rank, hit in enumerate(hits, 1)
    ]
    show.result(
        json,
        record | {"hits": [_as_dict(hit) for hit in hits]},
        show.Table(("rank", "document", "text", "score"), rows, 3),
        _explained(hits) if explain else None,
        notes=[] if hits else ["nothing was found"],
    )


def opened(folder: Path) -> lib.retrieve.Collection:
    """Return the documents in a folder; raises MissingInput if there are none, and notes an ingest that did not finish."""
    collection = lib.retrieve.Collection(folder)
    if not len(collection):
        raise MissingInput(f"{folder}: holds no documents; run `ringtrue ingest PATH… --into {folder}` first")
    if collection.unfinished:
        show.note(f"{folder}: the last ingest did not finish; run it again")
    return collection


def _as_dict(hit: lib.records.Hit) -> dict[str, object]:
    stages = [stage._asdict() for stage in hit.stages]
    return {**show.pick(hit, "doc_id", "score", "chunk", "channels", "confidence"), "stages": stages}


def _explained(hits: Sequence[lib.records.Hit]) -> show.Table:
    rows: list[list[object]] = []
    for place, hit in enumerate(hits, 1):
        rows += [[place, hit.doc_id, stage.name, stage.rank, show.score(stage.score)] for stage in hit.stages]
        rows += [[place, hit.doc_id, f"passage {hit.chunk}", "", ""]] * (hit.chunk is not None)
    return show.Table(("hit", "document", "stage", "rank", "score"), rows, 3, title="where every hit came from")


EMPTY_ANSWERS = ("json", "jsonl", "yaml")
"""The kinds of run file that can say that a query found nothing."""


def _answer_all(
    found: lib.retrieve.Retriever,
    queries: str,
    target: Path,
    collection: lib.retrieve.Collection | None,
    *,
    k: int,
    scope: Mapping[str, str],
    retriever: str,
    json: bool,
) -> None:
    """Answer the queries of a set into a run file; what would spoil it is said before anything is asked."""

    kind = _check_target(target)
    golden = lib.golden.load(queries)
    if collection is not None:
        others = any(part.name == "connect" for part in lib.retrieve.parts_of(retriever))  # which may know other documents
        _check_judged(golden, collection, certain=not others)
    if kind == "trec":
        for name in (*(query.query_id for query in golden.queries), *(collection.ids().values() if collection else ())):
            lib.formats.check_field(name)
    with marked("evaluation", whole_process=True), progress_bar("searching", len(golden.queries)) as step:
        answers = lib.retrieve.answer_all(found, golden, k=k, scope=scope, progress=step)
    run = _as_run(answers, re.sub(r"\s+", "", retriever), kind)
    unanswered = [answer.query_id for answer in answers if not answer.hits]
    flag = ""
    if unanswered and kind not in EMPTY_ANSWERS:
        if len(unanswered) == len(answers):
            raise CannotDecide(
                f"{target}: none of the {len(answers)} queries found anything, which {kind} has no line for; "
                "check --scope and the documents, or name the file .json"
            )
        run, flag = replace(run, answered=frozenset()), " -c"
        show.note(
            f"{len(unanswered)} of {len(answers)} queries found nothing, and {kind} has no line for that; "
            "`ringtrue score -c` counts them as 0, a .json file keeps them"
        )
    lib.formats.write_run(run, target)
    record = {"run": target, "queries": len(answers), "retriever": str(lib.retrieve.canonical(retriever))}
    said = f"{target}: {len(answers)} queries answered by {retriever}; score it with: ringtrue score {queries} {target}{flag}"
    show.result(json, {**record, "unanswered": unanswered}, said)


def _check_target(target: Path) -> str:
    """Return the kind of file to write; raises InputError if it cannot be written, before hours of asking."""
    if target.is_dir() or not os.access(target if target.exists() else target.parent, os.W_OK):
        raise InputError(f"{target}: cannot be written; name a file in a folder that exists and that you may write to")
    kind = lib.formats.kind_of_new(target)
    if kind == "parquet" and target.suffix.lower() == ".gz":
        raise InputError(f"{target}: Parquet is compressed in itself; name the file without .gz")
    return kind


def _check_judged(golden: lib.records.GoldenSet, collection: lib.retrieve.Collection, *, certain: bool) -> None:
    """Raise CannotDecide if the documents are not those that a set judges; otherwise note how many are missing."""
    judged = dict.fromkeys(judgment.doc_id for judgment in golden.judgments)
    here = set(collection.ids().values())
    missing = [doc_id for doc_id in judged if doc_id not in here]
    if judged and len(missing) == len(judged) and certain:
        raise CannotDecide(
            f"{collection.folder}: has none of the {len(judged)} documents that '{golden.id}' judges, such as '{missing[0]}', "
            f"but {len(here)} others, such as '{min(here)}'; ingest the set's documents, or name their folder with --in"
        )
    if missing:
        show.note(
            f"{len(missing)} of {len(judged)} documents that '{golden.id}' judges are not in {collection.folder}, "
            f"such as '{missing[0]}'"
        )


def _as_run(answers: Sequence[lib.records.Ranking], name: str, kind: str) -> lib.records.Run:
    """Return answers as a run, with their scores if a reader who sorts by them gets the same order."""

    # If one hit has no score, the rank in its place would stand among the scores of the others.
    unscored = {answer.query_id for answer in answers if any(math.isnan(hit.score) for hit in answer.hits)}
    bare = {one.query_id: tuple(lib.records.Hit(hit.doc_id) for hit in one.hits) for one in answers if one.query_id in unscored}
    kept = (replace(answer, hits=bare.get(answer.query_id, answer.hits)) for answer in answers)
    run = lib.records.Run.from_rankings(kept, name=name)
    contrary = lib.formats.reordered(run)
    by_rank = contrary | unscored
    if by_rank:
        reason = "their scores would be sorted into another order" if contrary else "some of their hits have no score"
        written = f"have ranks in place of scores in {kind}" if kind == "trec" else f"make {kind} hold ranks, not scores"
        show.note(f"{len(by_rank)} of {len(answers)} queries {written}, because {reason}")
    # Other kinds hold either scores or the order; TREC takes what fits each query.
    return run if by_rank or kind == "trec" else replace(run, ordered=False)
