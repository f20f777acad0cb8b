"""What is evaluated and how it is asked: ``ringtrue eval``, and the options that ``gate`` and ``ci`` share with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from ringtrue.cli import lib, show
from ringtrue.cli.options import Json, Project, utc_now
from ringtrue.cli.search import opened
from ringtrue.config import configured_store, store_url
from ringtrue.errors import OK, UNDECIDED, InputError, RingtrueError
from ringtrue.traffic import marked

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
    route_by: Annotated[str, typer.Option(help="The query field that --route matches.")] = "corpus"
    folder: Annotated[Path | None, typer.Option("--in", help="Folder made by ringtrue ingest; default: the set's own.")] = None
    chunk: Annotated[str | None, typer.Option(help="How to chunk the set's own documents: fixed(tokens=256, overlap=25).")] = (
        None
    )
    k: Annotated[
        int | None, typer.Option("-k", min=1, help="Hits per query; default: 100, connected systems as many as needed.")
    ] = None
    split: Annotated[str, typer.Option(help="all, tuning or held_out (80 to 20, by kind of query).")] = "all"
    sample: Annotated[float, typer.Option(help="Share of the queries to send, such as 0.1.")] = 1.0
    session: Annotated[bool, typer.Option("--session", help="Send the earlier turns of the conversation with each query.")] = (
        False
    )
    scope: Annotated[str | None, typer.Option(help="Search only documents with the query's value of this field.")] = None
    workers: Annotated[int | None, typer.Option(min=1, help="Concurrent queries; default: 1, connected systems 4.")] = None
    timeout: Annotated[float, typer.Option(min=0.001, help="Seconds that one search may take.")] = 30.0
    retries: Annotated[int, typer.Option(min=0, help="Retries after a lost connection or timeout (own search).")] = 1
    passes: Annotated[int, typer.Option(min=1, help="Times to send each query, for timing; the first answer is scored.")] = 1
    id_pattern: Annotated[str | None, typer.Option(help="Regular expression; its group is the judged id: '^mem:(.+)$'.")] = None
    allow: Annotated[
        list[str] | None, typer.Option(help="A precondition that is allowed to fail: index, documents, cut-off, ids, depth.")
    ] = None
    failed: Annotated[str, typer.Option(help="Queries without an answer: list (exit 3), exclude, or zero.")] = "list"
    version: Annotated[str, typer.Option(help="Version of the connected system, as you name it; enables caching.")] = ""
    watch: Annotated[list[str] | None, typer.Option(help="Files that are part of the fingerprint: 'search/*.py'.")] = None
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Send every query again, even if nothing changed.")] = False

    @property
    def names_search(self) -> bool:
        """Whether a search is named at all."""
        return any(getattr(self, name) for name in SEARCHES)

    def search(self) -> lib.run.Search:
        """Return the search that is named, ``hybrid`` if none is; raises InputError."""
        return lib.run.search_named(self.retriever, self.python, self.route or ())


def evaluated(
    asked: Asked,
    *,
    measures: Sequence[str] = (),
    components: bool = False,
    resume: bool = False,
    name: str = "",
    quiet: bool = False,
) -> lib.run.Evaluation:
    """Return the evaluation a user asked for; looks at a held-out part are counted."""
    if asked.golden is None:
        raise InputError("no golden set is named; write --golden hotel, or golden = '…' under [eval] in ringtrue.toml")
    search = asked.search()
    local = any(lib.retrieve.names_documents(text) for text in lib.run.expressions_of(search))
    with marked("evaluation", whole_process=True), watching(quiet=quiet) as watcher:
        options = {
            **show.pick(
                asked, "k", "workers", "timeout", "retries", "passes", "sample", "session", "scope", "route_by", "failed"
            ),
            "version": asked.version,
            "chunks": asked.chunk,
            "ids": asked.id_pattern,
            "allow": asked.allow or (),
            "cache": not asked.no_cache,
            "split": asked.split.replace("-", "_"),
            "watch": lib.run.files_matching(asked.watch or ()),
            "collection": opened(asked.folder) if asked.folder is not None and local else None,
            "measures": measures or lib.run.usual_measures(asked.k),
        }
        try:
            found = lib.run.evaluate(search, asked.golden, components=components, resume=resume, watcher=watcher, **options)
        except KeyboardInterrupt:
            show.note("the answers so far are kept: the same command continues (--resume, if Ringtrue cannot see the system)")
            raise
    count_look(found.setup.golden, asked.golden, who="ringtrue eval", what=found.name)
    found = replace(found, setup=replace(found.setup, arguments=_arguments(asked)))
    name = name or lib.run.branch_and_commit(Path.cwd()) or ""
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
def watching(*, quiet: bool = False) -> Iterator[lib.run.Watcher]:
    """Show a bar of the questions asked, on a terminal."""
    with show.bar(quiet=quiet, transient=True) as bar:
        if bar is None:
            yield lib.run.Watcher()
            return
        task = bar.add_task("preparing", total=None)
        yield lib.run.Watcher(
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


@dataclass(frozen=True)
class ResultOptions:
    """The store that a result is added to."""

    store: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            show_default=False,
            help="Add the result and its run to this store: a file or postgresql://…; default: the configured store.",
        ),
    ] = None
    no_store: Annotated[bool, typer.Option("--no-store", help="Do not store the result.")] = False
    project: Project = "default"
    feature: Annotated[str | None, typer.Option(help="The flag whose candidate this is; default: production.")] = None

    def destination(self, *, create: bool = False) -> str | None:
        """Return where the result will go; a store that was named is opened, so that a wrong name fails at once.

        The store that nobody named, ``.ringtrue/store.sqlite``, is created only if ``create`` says so.
        """
        if self.no_store:
            return None
        if self.store is not None:
            lib.store.Store.open(self.store).close()
            return self.store
        return configured_store() or (store_url() if create or Path(store_url()).is_file() else None)

    def add(
        self, destination: str | None, evaluation: lib.run.Evaluation, verdict: lib.verdict.Verdict | None = None
    ) -> str | None:
        """Add a result and return its id; None if there is no store for it, or if one that nobody named cannot take it."""
        if destination is None:
            return None
        where: dict[str, Any] = {"feature_id": self.feature, "project": self.project}
        try:
            with lib.store.Store.open(destination) as store:
                return lib.rollout.record_evaluation(store, evaluation, now=utc_now(), verdict=verdict, **where).run_id
        except (RingtrueError, OSError) as problem:  # the run is packed on the disk, which may be full
            if self.store is not None:
                raise
            show.note(f"the result was not added to the store: {problem}")
            return None


def count_look(at: lib.records.Qrels | lib.records.GoldenSet | lib.run.Origin, source: str, *, who: str, what: str) -> None:
    """Record a look in the ledger beside the set, and say which one it was; do nothing if no held-out part was looked at."""
    if (
        isinstance(at, lib.records.Qrels)
        or (at.metadata.get("split") if isinstance(at, lib.records.GoldenSet) else at.split) != "held_out"
    ):
        return
    when = utc_now().isoformat(timespec="seconds")
    version = lib.golden.version_name(at) if isinstance(at, lib.records.GoldenSet) else at.version
    count = lib.golden.record_look(lib.golden.ledger_beside(source), who=who, what=what, when=when, version=version)
    show.note(f"this was look {count} at the held-out part; each look makes it a little less held out")


REPORTS = Path("reports")


def eval_command(
    *,
    context: typer.Context,
    asked: Asked,
    measure: Annotated[list[str] | None, typer.Option("--measure", "-m", help="Like nDCG@10; default: usual eight.")] = None,
    components: Annotated[bool, typer.Option("--components", "-c", help="Also score each channel and step.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Resume an interrupted evaluation of a connected system.")] = False,
    name: Annotated[str, typer.Option(help="Name of the run; default: branch@commit or, outside git, the search.")] = "",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Run folder; .ringtrue/runs/… unless given.")] = None,
    reports: Annotated[Path, typer.Option(help="Folder for the Markdown report.")] = REPORTS,
    no_report: Annotated[bool, typer.Option("--no-report", help="Do not write a Markdown report.")] = False,
    html: Annotated[Path | None, typer.Option(help="Also write an HTML report to this file.")] = None,
    result: ResultOptions,
    no_advice: Annotated[bool, typer.Option("--no-advice", hidden=True, help="Do not suggest next steps.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Also print how the numbers were computed.")] = False,
    json: Json = False,
) -> None:
    """Measure a search on a golden set.

    Sends every query of the set and scores the answers, provided that the index holds the set's documents. Writes a run folder
    (for compare, gate and report) and a Markdown report, and adds the result to the store (for `ringtrue serve`). If nothing
    changed since the last evaluation, the result comes from the cache and is marked as cached.

    Example: ringtrue eval --golden hotel --retriever hybrid --components
    Example: ringtrue eval --golden my-set.yaml --retriever "connect('shop')" --out runs/today
    Example: ringtrue eval --golden my-set.yaml --python my_search.py:find -m nDCG@10 -m R@20
    """
    from ringtrue.cli.report import print_evaluation

    place = result.destination(create=True)
    found = evaluated(
        settled(asked, context), measures=measure or (), components=components, resume=resume, name=name, quiet=json
    )
    now = utc_now()
    found = lib.run.save(found, out or lib.run.new_run_folder(found, now))
    report = lib.report.report_on(found, made_at=now.isoformat(timespec="seconds"))
    written = (
        None if no_report else lib.run.write_new(reports / lib.report.file_name(report.made_at), lib.report.markdown(report))
    )
    if html is not None:
        html.parent.mkdir(parents=True, exist_ok=True)
        html.write_text(lib.report.html(report), encoding="utf-8")
    stored = result.add(place, found)  # before anything is printed: a pipe may be closed by then
    if not json:
        print_evaluation(report, verbose=verbose, advice=not no_advice)
    places = {"run": found.run_dir, "report": written, "html": html, "stored": stored}
    show.result(
        json,
        record(found) | {"report": written, "stored": stored},
        "\n" + "\n".join(f"{what}: {place}" for what, place in places.items() if place is not None),
        code=UNDECIDED if found.failures and asked.failed == "list" else OK,
    )


def record(found: lib.run.Evaluation) -> dict[str, Any]:
    """Return an evaluation under the stable keys of ``--json``."""
    return {
        **show.pick(found, "name", "run_dir", "metrics", "failures", "cached", "setup", "notes"),
        "summary": {str(measure): found.scores.summary(measure) for measure in found.scores.measures},
        "intervals": found.intervals,
        "per_slice": {
            field: {
                value: {str(m): found.scores.by(field, m)[value].mean for m in found.scores.measures}
                for value in found.scores.by(field, found.scores.measures[0])
            }
            for field in found.setup.golden.slices
        },
        "components": {part.name: part.scores.aggregate for part in found.components},
        "latency_ms": show.pick(found.latency, "p50", "p95", "p99"),
        "missing": found.scores.counted.missing,
        "queries": len(found.queries),
        "lost": len(found.losses),
    }
