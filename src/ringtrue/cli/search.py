"""``ringtrue search``: ask documents or a connected system, and see where every hit came from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ringtrue.cli.ingest import DEFAULT_FOLDER
from ringtrue.errors import InputError

if TYPE_CHECKING:
    from ringtrue.records import Hit
    from ringtrue.retrieve import Collection, Retriever


def search_command(
    text: Annotated[str | None, typer.Argument(help="The question.")] = None,
    folder: Annotated[Path, typer.Option("--in", help="Folder made by ringtrue ingest.")] = DEFAULT_FOLDER,
    retriever: Annotated[
        str,
        typer.Option("--retriever", "-r", help="Like bm25, 'rrf(bm25, dense)', \"connect('shop')\" or 'hybrid >> mmr(0.7)'."),
    ] = "hybrid",
    k: Annotated[int, typer.Option("-k", min=1, help="Number of hits.")] = 10,
    scope: Annotated[
        list[str] | None, typer.Option("--scope", help="Only documents with this metadata value: city=Bath. Repeatable.")
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show every stage's rank and score for every hit.")] = False,
    queries: Annotated[
        str | None, typer.Option("--queries", help="Answer every query of a golden set or BEIR folder; needs --run.")
    ] = None,
    run: Annotated[Path | None, typer.Option("--run", help="Write the answers to --queries as a run file.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Search documents, or a system that ringtrue.toml describes.

    Example: ringtrue search "quiet room with a pool" --explain
    Example: ringtrue search "refund policy" --retriever "connect('shop')" -k 5
    Example: ringtrue search --queries scifact/ --in scifact-index --run hybrid.run -k 100
    """
    from ringtrue.cli import show
    from ringtrue.retrieve import build, canonical, names_documents

    wanted = _scope(scope or [])
    if (text is None) == (queries is None):
        raise InputError("give either a question or --queries; see `ringtrue search --help`")
    if (queries is None) != (run is None):
        raise InputError("--queries and --run belong together: the answers to the queries become the run file")
    collection = _collection(folder) if names_documents(retriever) else None
    found = build(retriever, collection)
    if queries is not None and run is not None:
        _answer_all(found, queries, run, k=k, scope=wanted, name=retriever)
        return
    assert text is not None
    hits = found.search(text, k=k, scope=wanted or None)
    if json:
        show.as_json({"query": text, "retriever": str(canonical(retriever)), "k": k, "hits": [_as_dict(hit) for hit in hits]})
        return
    if not hits:
        show.note("nothing was found")
        return
    snippets = _snippets(collection, hits)
    rows = [(str(rank), hit.doc_id, snippets[rank - 1], show.number(hit.score)) for rank, hit in enumerate(hits, 1)]
    show.table(["rank", "document", "text", "score"], rows, text_columns=3)
    if explain:
        _explain(hits)


def _collection(folder: Path) -> Collection:
    from ringtrue.retrieve import Collection

    return Collection(folder)


def _scope(given: Sequence[str]) -> dict[str, str]:
    scope: dict[str, str] = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not equals or not name:
            raise InputError(f"--scope {item!r} names no value; write it like --scope city=Bath")
        scope[name] = value
    return scope


def _as_dict(hit: Hit) -> dict[str, object]:
    return {
        "doc_id": hit.doc_id,
        "score": hit.score,
        "chunk": hit.chunk,
        "channels": dict(hit.channels),
        "confidence": hit.confidence,
        "stages": [stage._asdict() for stage in hit.stages],
    }


def _snippets(collection: Collection | None, hits: Sequence[Hit], *, width: int = 72) -> list[str]:
    """Return a line of each document's text; nothing where the documents live elsewhere."""
    known = collection.texts_known(hit.doc_id for hit in hits) if collection is not None else {}
    texts = [" ".join(known.get(hit.doc_id, "").split()) for hit in hits]
    return [text if len(text) <= width else f"{text[: width - 1]}…" for text in texts]


def _explain(hits: Sequence[Hit]) -> None:
    from ringtrue.cli import show

    rows = []
    for place, hit in enumerate(hits, 1):
        for stage in hit.stages:
            rows.append((f"{place}", hit.doc_id, stage.name, str(stage.rank), show.number(stage.score)))
        if hit.chunk is not None:
            rows.append((f"{place}", hit.doc_id, f"passage {hit.chunk}", "", ""))
    print()
    show.table(["hit", "document", "stage", "rank", "score"], rows, title="where every hit came from", text_columns=3)


def _answer_all(found: Retriever, queries: str, run: Path, *, k: int, scope: dict[str, str], name: str) -> None:
    from ringtrue.cli.ingest import progress_bar
    from ringtrue.formats import write_run
    from ringtrue.golden import load
    from ringtrue.records import Run
    from ringtrue.retrieve.answers import answer_all

    golden = load(queries)
    with progress_bar("searching", len(golden.queries)) as step:
        answers = answer_all(found, golden, k=k, scope=scope, progress=step)
    write_run(Run.from_rankings(answers, name=name.replace(" ", "")), run)
    print(f"{run}: {len(answers)} queries answered by {name}; score it with: ringtrue score {queries} {run}")
