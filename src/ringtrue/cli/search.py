"""``ringtrue ingest`` and ``ringtrue search``: documents into a folder, and questions to it or to a connected system."""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ringtrue.cli import lib, show
from ringtrue.cli.options import Json
from ringtrue.errors import CannotDecide, InputError, MissingInput, nearest
from ringtrue.traffic import marked

if TYPE_CHECKING:
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

    Stop it whenever you like: the next run goes on where this one ended. A file that is one document is called by its path
    from the current folder.

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
    record = {"folder": into, "documents": len(collection), **vars(done), "blank": len(blank), "coverage": coverage}
    made = {index.folder.name: len(index.ids) for index in indexes}
    show.end_if_json(json, record | {"indexes": made, "skipped": list(map(str, skipped))})
    counts = ", ".join(f"{count} {what}" for what, count in vars(done).items())
    print(f"{into}: {show.counted(len(collection), 'document')} ({counts})")
    if coverage is not None:
        print(f"vectors for {coverage[0]} of {coverage[1]} passages")
    if blank:
        several = show.counted(len(blank), "document has", "documents have")
        show.note(f"{several} neither title nor text and cannot be found by words, such as '{blank[0]}'")
    note_skipped(skipped, "; --json lists them all")


def note_skipped(skipped: Sequence[Skipped], more: str = "") -> None:
    """Say which files were not read, the first ten by name."""
    show.notes(f"skipped {item}" for item in skipped[:10])
    if len(skipped) > 10:
        show.note(f"skipped {len(skipped) - 10} more{more}")


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
        if not place.exists() and not place.is_symlink():
            golden += lib.golden.load(path if path in lib.golden.shipped() else _missing(path)).documents
            continue
        if path in lib.golden.shipped():
            show.note(f"'{path}' is read from the current folder; the shipped set of that name is not")
        if guessed and lib.golden.holds_golden_set(place, with_documents=True):
            golden += lib.golden.load(place).documents
        elif place.suffix in (".yaml", ".yml") and lib.golden.holds_golden_set(place):
            raise MissingInput(f"{path}: the golden set brings no documents; give the files of the documents it judges")
        else:
            files.append(path)
    return golden, find(files) if files else None


def _missing(path: str) -> str:
    """Raise MissingInput: there is neither a path nor a shipped set of that name."""
    folder = Path(path).parent
    beside = sorted(item.name for item in folder.iterdir())[:500] if folder.is_dir() else []
    near = nearest(Path(path).name, [*beside, *lib.golden.shipped()])
    raise MissingInput(
        f"{path}: there is no such file or folder; did you mean {near}? "
        f"(shipped golden sets: {', '.join(lib.golden.shipped())})"
    )


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
        cure = "mend or move it, or run without --remove-missing"
        raise InputError(f"nothing was removed, because not all could be read ({which}); {cure}")
    yield from ()


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
    wanted = _scope(scope or [])
    if (text is None) == (queries is None):
        raise InputError("give either a question or --queries; see `ringtrue search --help`")
    if (queries is None) != (run is None):
        raise InputError("--queries and --run belong together: the answers to the queries become the run file")
    if explain and queries is not None:
        raise InputError("--explain shows one answer; leave it out with --queries, or ask one question")
    collection = opened(folder) if lib.retrieve.names_documents(retriever) else None
    found = lib.retrieve.build(retriever, collection)
    if queries is not None and run is not None:
        _answer_all(found, queries, run, collection, k=k, scope=wanted, retriever=retriever, json=json)
        return
    assert text is not None
    hits = found.search(text, k=k, scope=wanted or None)
    record = {"query": text, "retriever": str(lib.retrieve.canonical(retriever)), "k": k}
    show.end_if_json(json, record | {"hits": [_as_dict(hit) for hit in hits]})
    if not hits:
        show.note("nothing was found")
        return
    known = {doc_id: " ".join(filter(None, passage)) for doc_id, passage in lib.run.answered_passages(found).items()}
    known |= collection.texts_known(hit.doc_id for hit in hits) if collection is not None else {}
    rows = [
        (rank, hit.doc_id, show.short(known.get(hit.doc_id, ""), 72), show.score(hit.score)) for rank, hit in enumerate(hits, 1)
    ]
    show.table(["rank", "document", "text", "score"], rows, text_columns=3)
    if explain:
        _explain(hits)


def opened(folder: Path) -> lib.retrieve.Collection:
    """Return the documents in a folder; raises MissingInput if there are none, and notes an ingest that did not finish."""
    collection = lib.retrieve.Collection(folder)
    if not len(collection):
        raise MissingInput(f"{folder}: holds no documents; run `ringtrue ingest PATH… --into {folder}` first")
    if collection.unfinished:
        show.note(f"{folder}: the last ingest did not finish; run it again")
    return collection


def _scope(given: Sequence[str]) -> dict[str, str]:
    scope: dict[str, str] = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not equals or not name:
            raise InputError(f"--scope {item!r} names no value; write it like --scope city=Bath")
        if name in scope:
            raise InputError(f"--scope names '{name}' twice ({scope[name]!r} and {value!r}); give one value for a field")
        scope[name] = value
    return scope


def _as_dict(hit: lib.records.Hit) -> dict[str, object]:
    stages = [stage._asdict() for stage in hit.stages]
    return {**show.pick(hit, "doc_id", "score", "chunk", "channels", "confidence"), "stages": stages}


def _explain(hits: Sequence[lib.records.Hit]) -> None:
    rows: list[list[object]] = []
    for place, hit in enumerate(hits, 1):
        for stage in hit.stages:
            rows.append([place, hit.doc_id, stage.name, stage.rank, show.score(stage.score)])
        if hit.chunk is not None:
            rows.append([place, hit.doc_id, f"passage {hit.chunk}", "", ""])
    print()
    show.table(["hit", "document", "stage", "rank", "score"], rows, title="where every hit came from", text_columns=3)


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
        check_judged(golden, collection, certain=not asks_others(retriever))
    if kind == "trec":
        for name in (*(query.query_id for query in golden.queries), *(collection.ids().values() if collection else ())):
            lib.formats.check_field(name)
        found = _Fitting(found)
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
    show.end_if_json(json, {**record, "unanswered": unanswered})
    print(f"{target}: {len(answers)} queries answered by {retriever}; score it with: ringtrue score {queries} {target}{flag}")


def _check_target(target: Path) -> str:
    """Return the kind of file to write; raises InputError if it cannot be written, before hours of asking."""
    if target.is_dir():
        raise InputError(f"{target}: is a folder; name the file in it, like {target / 'hybrid.run'}")
    if not target.parent.is_dir():
        raise MissingInput(f"{target}: there is no folder '{target.parent}'; make it first")
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise InputError(f"{target}: cannot be written; check the permissions there")
    kind = lib.formats.kind_of_new(target)
    if kind == "parquet" and target.suffix.lower() == ".gz":
        raise InputError(f"{target}: Parquet is compressed in itself; name the file without .gz")
    return kind


def asks_others(retriever: str) -> bool:
    """Return whether a connected system answers too, which may know documents that are not in the folder."""

    def asks(part: object) -> bool:
        if isinstance(part, lib.spec.Pipeline):
            return any(map(asks, part.stages))
        return isinstance(part, lib.spec.Expression) and (part.name == "connect" or any(map(asks, part.args)))

    return asks(lib.retrieve.canonical(retriever))


def check_judged(golden: lib.records.GoldenSet, collection: lib.retrieve.Collection, *, certain: bool) -> None:
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


class _Fitting:
    """A retriever whose hits must have ids that a TREC file can hold: said at the first of them, not after the last query."""

    def __init__(self, inner: lib.retrieve.Retriever) -> None:
        self.inner = inner

    def search(self, text: str, *, k: int = 10, scope: Mapping[str, str] | None = None) -> Sequence[lib.records.Hit]:
        return self.search_many([text], k=k, scope=scope)[0]

    def search_many(
        self, texts: Sequence[str], *, k: int = 10, scope: Mapping[str, str] | None = None
    ) -> list[Sequence[lib.records.Hit]]:

        answers = lib.retrieve.search_many(self.inner, texts, k=k, scope=scope)
        for hits in answers:
            for hit in hits:
                lib.formats.check_field(hit.doc_id)
        return answers


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
