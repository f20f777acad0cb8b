"""What is evaluated and how it is asked: options and work that ``eval``, ``gate`` and ``ci`` share."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ringtrue.cli import show
from ringtrue.errors import InputError
from ringtrue.traffic import marked

if TYPE_CHECKING:
    from ringtrue.run import Evaluation
    from ringtrue.run.evaluator import Watcher
    from ringtrue.run.named import Search

ORDER = ("COMMANDLINE", "ENVIRONMENT", "DEFAULT_MAP", "DEFAULT")
"""Where a value comes from, the strongest first."""
SEARCHES = ("retriever", "python", "route")
"""The three options that name a search."""


@dataclass(frozen=True)
class Named:
    """The golden set and the search."""

    golden: Annotated[str | None, typer.Option("--golden", "-g", help="A golden set: a file, folder or shipped name.")] = None
    retriever: Annotated[
        str | None,
        typer.Option("--retriever", "-r", help="Like bm25, 'rrf(bm25, dense)', \"connect('shop')\"; hybrid unless given."),
    ] = None
    python: Annotated[str | None, typer.Option(help="A function search(text, k): module:name or path/to/file.py:name.")] = None


@dataclass(frozen=True)
class Asked(Named):
    """What a user wants evaluated, and how it is asked."""

    route: Annotated[list[str] | None, typer.Option(help="Send queries of a corpus to another retriever: laws=bm25.")] = None
    route_by: Annotated[str, typer.Option(help="The query field that --route goes by.")] = "corpus"
    folder: Annotated[Path | None, typer.Option("--in", help="Folder made by ringtrue ingest; default: the set's own.")] = None
    chunk: Annotated[str | None, typer.Option(help="How the set's own documents are cut: fixed(tokens=256, overlap=25).")] = (
        None
    )
    k: Annotated[int | None, typer.Option("-k", min=1, help="Hits to ask for (own search 100, connected ones as needed).")] = (
        None
    )
    split: Annotated[str, typer.Option(help="all, tuning or held_out (80 to 20, by kind of query).")] = "all"
    sample: Annotated[float, typer.Option(help="Share of the queries to ask.")] = 1.0
    session: Annotated[bool, typer.Option("--session", help="Pass on the conversation before a question.")] = False
    scope: Annotated[str | None, typer.Option(help="Each query only among documents with the same value of this field.")] = None
    workers: Annotated[int | None, typer.Option(min=1, help="Questions at once (own search 1, connected ones 4).")] = None
    timeout: Annotated[float, typer.Option(min=0.001, help="Seconds that one search may take.")] = 30.0
    retries: Annotated[int, typer.Option(min=0, help="Retries after a lost connection or timeout (own search).")] = 1
    passes: Annotated[int, typer.Option(min=1, help="Ask every query so often, for timing; the first answer is scored.")] = 1
    id_pattern: Annotated[str | None, typer.Option(help="Regular expression; its group is the judged id: '^mem:(.+)$'.")] = None
    allow: Annotated[
        list[str] | None, typer.Option(help="A precondition that may fail: index, documents, cut-off, ids, depth.")
    ] = None
    failed: Annotated[str, typer.Option(help="Queries without an answer: list (exit 3), exclude, or zero.")] = "list"
    version: Annotated[str, typer.Option(help="Your own version of a connected system; allows caching.")] = ""
    watch: Annotated[list[str] | None, typer.Option(help="Files that are part of the fingerprint: 'search/*.py'.")] = None
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Ask again, even if nothing changed.")] = False

    @property
    def names_search(self) -> bool:
        """Whether a search is named at all."""
        return any(getattr(self, name) for name in SEARCHES)

    def search(self) -> Search:
        """Return the search that is named, ``hybrid`` if none is; raises InputError."""
        from ringtrue.run.named import search_named

        return search_named(self.retriever, self.python, self.route or ())


def evaluated(
    asked: Asked,
    *,
    measures: Sequence[str] = (),
    components: bool = False,
    resume: bool = False,
    name: str = "",
    quiet: bool = False,
) -> Evaluation:
    """Return the evaluation a user asked for; looks at a held-out part are counted."""
    from ringtrue.cli.held_out import count_look
    from ringtrue.cli.ingest import progress_bar
    from ringtrue.cli.search import opened
    from ringtrue.golden import load
    from ringtrue.retrieve import names_documents
    from ringtrue.run import branch_and_commit, evaluate, usual_measures
    from ringtrue.run.named import expressions_of, files_matching, index_documents

    if asked.golden is None:
        raise InputError("no golden set is named; write --golden hotel, or golden = '…' under [eval] in ringtrue.toml")
    search = asked.search()
    golden = load(asked.golden)
    local = any(names_documents(text) for text in expressions_of(search))
    with marked("evaluation", whole_process=True), watching(quiet=quiet) as watcher, _kept_when_stopped():
        collection = opened(asked.folder) if asked.folder is not None and local else None
        if collection is None:
            index_documents(
                golden, search, chunks=asked.chunk, progress=lambda what, total: progress_bar(what, 0 if quiet else total)
            )
        found = evaluate(
            search,
            golden,
            measures=measures or usual_measures(asked.k),
            k=asked.k,
            collection=collection,
            chunks=asked.chunk,
            components=components,
            workers=asked.workers,
            timeout=asked.timeout,
            retries=asked.retries,
            passes=asked.passes,
            sample=asked.sample,
            split=asked.split.replace("-", "_"),  # type: ignore[arg-type]  # evaluate() checks it and names the legal values
            session=asked.session,
            scope=asked.scope,
            route_by=asked.route_by,
            ids=asked.id_pattern,
            failed=asked.failed,  # type: ignore[arg-type]  # likewise
            allow=asked.allow or (),
            version=asked.version,
            watch=files_matching(asked.watch or ()),
            cache=not asked.no_cache,
            resume=resume,
            watcher=watcher,
        )
    count_look(found.setup.golden, asked.golden, who="ringtrue eval", what=found.name)
    found = replace(found, setup=replace(found.setup, arguments=_arguments(asked)))
    name = name or branch_and_commit(Path.cwd()) or ""
    return found.named(name) if name else found


def _arguments(asked: Asked) -> tuple[str, ...]:
    """Return the options that name golden set and search, for who measures the same again."""
    search = None if asked.python or asked.route else asked.retriever or "hybrid"
    options = [
        ("--golden", asked.golden), ("--in", asked.folder), ("--chunk", asked.chunk), ("--retriever", search),
        ("--python", asked.python), *(("--route", route) for route in asked.route or ()), ("--id-pattern", asked.id_pattern),
        ("--scope", asked.scope), *(("--allow", name) for name in asked.allow or ()),
    ]  # fmt: skip
    return tuple(text for option, value in options if value for text in (option, str(value)))


@contextmanager
def _kept_when_stopped() -> Iterator[None]:
    """Say, if the user stops an evaluation, that nothing is lost."""
    try:
        yield
    except KeyboardInterrupt:
        show.note(
            "the answers so far are kept: the same command goes on there (with --resume if Ringtrue cannot see the system)"
        )
        raise


@contextmanager
def watching(*, quiet: bool = False) -> Iterator[Watcher]:
    """Show a bar of the questions asked, on a terminal."""
    from ringtrue.run.evaluator import Watcher

    if quiet or not sys.stderr.isatty():
        yield Watcher()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("preparing", total=None)
        yield Watcher(
            start=lambda what, total: bar.reset(task, description=what, total=total or None),
            step=lambda count: bar.update(task, advance=count),
        )


def settled(named: Named, context: typer.Context, section: Mapping[str, Any] | None = None) -> Asked:
    """Return what is evaluated, as far as it is not this command's own option, and with one search.

    ``RINGTRUE_EVAL_…`` holds for every command that evaluates, like ``[eval]``, for which ``section`` stands in. If a flag
    names a search, another one in the environment or the file does not count; two of equal strength are left for
    ``Asked.search`` to refuse.
    """
    root: Any = context.parent
    instead = {} if section is None else {"default_map": section}
    plain = root.command.commands["eval"].make_context("eval", [], parent=root, **instead)
    changed: dict[str, Any] = {}
    strength: dict[str, int] = {}
    for field in fields(Asked):
        name, value = field.name, plain.params[field.name]
        own = _strength(context, name) if name in context.params else len(ORDER)
        strength[name] = min(own, _strength(plain, name))
        if strength[name] < own:
            changed[name] = field.default if value is None else Path(value) if name == "folder" else value
    found = replace(Asked(**vars(named)), **changed)
    searches = [name for name in SEARCHES if getattr(found, name)]
    best = min((strength[name] for name in searches), default=0)
    weaker: dict[str, Any] = {name: None for name in searches if strength[name] > best}
    return replace(found, **weaker)


def _strength(context: typer.Context, option: str) -> int:
    source = context.get_parameter_source(option)
    return ORDER.index(source.name) if source is not None and source.name in ORDER else ORDER.index("DEFAULT")
