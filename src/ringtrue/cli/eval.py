"""``ringtrue eval``: how good is a search on a golden set (chapter 04, E-1 to E-6)."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from ringtrue.cli import show
from ringtrue.cli.keep import Feature, NoStore, keeper
from ringtrue.cli.options import Json, Project, StoreUrl
from ringtrue.errors import UNDECIDED, InputError
from ringtrue.traffic import marked

if TYPE_CHECKING:
    from ringtrue.run import Evaluation
    from ringtrue.run.evaluator import Watcher

REPORTS = Path("reports")
ORDER = ("COMMANDLINE", "ENVIRONMENT", "DEFAULT_MAP", "DEFAULT")
"""Where a value comes from, the strongest first."""
WAYS = {"retriever": "retriever", "python": "python", "route": "routes"}
"""The three options that name a search → the field of ``Asked``."""
NOT_SHARED = {"measures", "components", "resume"}
"""What ``eval`` may be asked for and the commands that judge settle themselves."""

Golden = Annotated[str | None, typer.Option("--golden", "-g", help="A golden set: a file, a folder or a shipped name (hotel).")]
RetrieverText = Annotated[
    str | None,
    typer.Option("--retriever", "-r", help="Like bm25, 'rrf(bm25, dense)', \"connect('shop')\"; hybrid unless given."),
]
Python = Annotated[
    str | None, typer.Option("--python", help="A Python function search(text, k): module:name or path/to/file.py:name.")
]
Route = Annotated[
    list[str] | None,
    typer.Option("--route", help="Queries of one corpus go to a retriever of their own: laws=bm25. Repeatable."),
]
Folder = Annotated[
    Path | None, typer.Option("--in", help="Folder made by ringtrue ingest; the set's own documents unless given.")
]
Chunk = Annotated[
    str | None, typer.Option("--chunk", help="How the set's own documents are cut: fixed(tokens=256, overlap=25).")
]
MeasureNames = Annotated[
    list[str] | None, typer.Option("--measure", "-m", help="Like nDCG@10; repeatable. Defaults: the usual eight.")
]
Sample = Annotated[float, typer.Option("--sample", help="Share of the queries to ask.")]
SplitName = Annotated[str, typer.Option("--split", help="all, tuning or held_out (80 to 20, by kind of query).")]
Workers = Annotated[int | None, typer.Option("--workers", min=1, help="Questions at once (own search 1, connected ones 4).")]
Timeout = Annotated[float, typer.Option("--timeout", min=0.001, help="Seconds that one search may take.")]
Retries = Annotated[
    int,
    typer.Option(
        "--retries", min=0, help="Further attempts after a lost connection or a timeout; connections use their own setting."
    ),
]
Passes = Annotated[
    int, typer.Option("--passes", min=1, help="Ask every query this many times, to time more answers; the first is scored.")
]
IdPattern = Annotated[
    str | None, typer.Option("--id-pattern", help="Regular expression; its first group is the judged id: '^mem:(.+)$'.")
]
Allow = Annotated[
    list[str] | None,
    typer.Option("--allow", help="A precondition that may fail: index, documents, cut-off, ids or depth. Repeatable."),
]
FailedQueries = Annotated[
    str, typer.Option("--failed", help="Queries without an answer: list (exit 3), exclude, or zero (count as empty).")
]
Vouched = Annotated[
    str, typer.Option("--version", help="Your word for the state of a system that cannot be seen; lets it be cached.")
]
Watch = Annotated[
    list[str] | None,
    typer.Option("--watch", help="Files that are part of the retriever's fingerprint: 'search/*.py'. Repeatable."),
]
Scope = Annotated[
    str | None, typer.Option("--scope", help="Each query only among documents with the same value of this field.")
]
Session = Annotated[bool, typer.Option("--session", help="Pass on what was said before a question, where the set tells.")]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Ask again, even if nothing changed.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with an interrupted evaluation of a system that cannot be seen.")]


@dataclass(frozen=True)
class Asked:
    """What a user wants evaluated; the commands that evaluate all come down to this."""

    golden: str | None = None
    retriever: str | None = None
    python: str | None = None
    routes: Sequence[str] = ()
    route_by: str = "corpus"
    folder: Path | None = None
    chunk: str | None = None
    measures: Sequence[str] = ()
    k: int | None = None
    components: bool = False
    sample: float = 1.0
    split: str = "all"
    session: bool = False
    scope: str | None = None
    workers: int | None = None
    timeout: float = 30.0
    retries: int = 1
    id_pattern: str | None = None
    allow: Sequence[str] = ()
    failed: str = "list"
    version: str = ""
    watch: Sequence[str] = ()
    cache: bool = True
    resume: bool = False
    name: str = ""
    passes: int = 1


def evaluated(asked: Asked, *, quiet: bool = False) -> Evaluation:
    """Return the evaluation a user asked for; looks at a held-out part are counted (G-4)."""
    from ringtrue.cli.looks import count_look
    from ringtrue.cli.search import opened
    from ringtrue.golden import load
    from ringtrue.retrieve import names_documents
    from ringtrue.run import branch_and_commit, evaluate, usual_measures

    if asked.golden is None:
        raise InputError("no golden set is named; write --golden hotel, or golden = '…' under [eval] in ringtrue.toml")
    retriever = retriever_of(asked)
    golden = load(asked.golden)
    texts = retriever.values() if isinstance(retriever, dict) else [retriever]
    local = any(isinstance(text, str) and names_documents(text) for text in texts)
    with marked("evaluation", whole_process=True), watching(quiet=quiet) as watcher, _kept_when_stopped():
        collection = opened(asked.folder) if asked.folder is not None and local else None
        if collection is None and local and golden.documents:
            prepare(golden, [text for text in texts if isinstance(text, str)], chunk=asked.chunk, quiet=quiet)
        found = evaluate(
            retriever,
            golden,
            measures=asked.measures or usual_measures(asked.k),
            k=asked.k,
            collection=collection,
            chunks=asked.chunk,
            components=asked.components,
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
            allow=asked.allow,
            version=asked.version,
            watch=watched(asked.watch),
            cache=asked.cache,
            resume=asked.resume,
            watcher=watcher,
        )
    count_look(found.setup.golden, asked.golden, who="ringtrue eval", what=found.name)
    found = replace(found, setup=replace(found.setup, arguments=_arguments(asked)))
    name = asked.name or branch_and_commit(Path.cwd())
    return found.named(name) if name else found


def _arguments(asked: Asked) -> tuple[str, ...]:
    """Return the options that name golden set and search, for who measures the same again."""
    search = None if asked.python or asked.routes else asked.retriever or "hybrid"
    options = [
        ("--golden", asked.golden), ("--in", asked.folder), ("--chunk", asked.chunk), ("--retriever", search),
        ("--python", asked.python), *(("--route", route) for route in asked.routes), ("--id-pattern", asked.id_pattern),
        ("--scope", asked.scope), *(("--allow", name) for name in asked.allow),
    ]  # fmt: skip
    return tuple(text for option, value in options if value for text in (option, str(value)))


@contextmanager
def _kept_when_stopped() -> Iterator[None]:
    """Tell who stops an evaluation that nothing is lost."""
    try:
        yield
    except KeyboardInterrupt:
        show.note(
            "the answers so far are kept: the same command goes on there (with --resume if Ringtrue cannot see the system)"
        )
        raise


def retriever_of(asked: Asked) -> Any:
    """Return what a user names as the retriever: an expression, a Python function, or routes; raises InputError."""
    given = [
        name
        for name, value in (("--retriever", asked.retriever), ("--python", asked.python), ("--route", asked.routes))
        if value
    ]
    if len(given) > 1:
        raise InputError(f"{' and '.join(given)} both name the retriever; give one of them")
    if asked.python:
        return function_at(asked.python)
    if asked.routes:
        routes: dict[str, str] = {}
        for route in asked.routes:
            value, equals, text = route.partition("=")
            if not equals or not value.strip() or not text.strip():
                raise InputError(f"--route {route!r} names no retriever; write it like --route laws=bm25")
            if value.strip() in routes:
                raise InputError(f"--route names '{value.strip()}' twice; give each corpus one retriever")
            routes[value.strip()] = text.strip()
        return routes
    text = asked.retriever or "hybrid"
    if text.lstrip().startswith("{"):  # a configuration is named by what it means
        from ringtrue.retrieve import as_expression

        return str(as_expression(text))
    return text


def function_at(place: str) -> Callable[..., Any]:
    """Return the function at ``module:name`` or ``file.py:name``; raises InputError naming what is wrong."""
    import importlib
    import importlib.util

    where, colon, name = place.rpartition(":")
    if not colon or not where or not name:
        raise InputError(f"--python {place!r} names no function; write it like my_search:find or search/find.py:find")
    try:
        if where.endswith(".py"):
            file = Path(where)
            if not file.is_file():
                raise InputError(f"--python {place!r}: there is no file '{where}'")
            spec = importlib.util.spec_from_file_location(file.stem, file)
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            sys.path.append(str(file.parent.resolve()))  # it may import what lies beside it, but not replace what we import
            sys.modules.setdefault(file.stem, module)
            spec.loader.exec_module(module)
        else:
            sys.path.append(str(Path.cwd()))
            module = importlib.import_module(where)
    except InputError:
        raise
    except Exception as problem:
        raise InputError(f"--python {place!r}: cannot be imported ({type(problem).__name__}: {problem})") from problem
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise InputError(f"--python {place!r}: '{where}' has no '{part}'")
        found = getattr(found, part)
    if not callable(found) and not hasattr(found, "search"):
        raise InputError(f"--python {place!r} is {type(found).__name__}, which cannot search; name a function (text, k)")
    return cast("Callable[..., Any]", found)


def watched(patterns: Sequence[str]) -> list[Path]:
    """Return the files of some patterns; raises InputError for a pattern that matches none, which would watch nothing."""
    files: dict[Path, None] = {}
    for pattern in patterns:
        rooted = Path(pattern)
        start, below = (
            (Path(rooted.anchor), str(rooted.relative_to(rooted.anchor))) if rooted.is_absolute() else (Path(), pattern)
        )
        found = sorted(path for path in start.glob(below) if path.is_file())
        if not found:
            raise InputError(f"--watch {pattern!r} matches no file; write it from the current folder, like 'search/*.py'")
        files |= dict.fromkeys(found)
    return list(files)


def prepare(golden: Any, retrievers: Sequence[str], *, chunk: str | None, quiet: bool) -> None:
    """Index a set's own documents before anything is measured, with a bar for each index."""
    from ringtrue.cli.ingest import progress_bar
    from ringtrue.config import cache_folder
    from ringtrue.retrieve import build, indexes_of, names_documents
    from ringtrue.run import corpus_of

    collection = corpus_of(golden, cache_folder() / "corpora", chunks=chunk)
    for text in retrievers:
        if names_documents(text):
            for index in indexes_of(build(text, collection)):
                with progress_bar(f"indexing {index.folder.name.split('-')[0]}", 0 if quiet else index.pending()) as step:
                    index.ready(progress=step)


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


def settled(asked: Asked, context: typer.Context, section: Mapping[str, Any] | None = None) -> Asked:
    """Return what is evaluated, as far as it is not this command's own option, and with one search.

    ``RINGTRUE_EVAL_…`` holds for every command that evaluates, like ``[eval]``, for which ``section`` stands in. If a flag
    names a search, another one in the environment or the file does not count; two of equal strength are left for
    ``retriever_of`` to refuse.
    """
    root: Any = context.parent
    instead = {} if section is None else {"default_map": section}
    plain = root.command.commands["eval"].make_context("eval", [], parent=root, **instead)
    defaults: dict[str, Any] = {field.name: field.default for field in fields(Asked) if field.name not in NOT_SHARED}
    changed: dict[str, Any] = {}
    strength: dict[str, int] = {}
    for option, value in plain.params.items():
        name = WAYS.get(option, option)
        if name not in defaults:
            continue
        own = _strength(context, option) if option in context.params else len(ORDER)
        strength[name] = min(own, _strength(plain, option))
        if strength[name] < own:
            changed[name] = defaults[name] if value is None else Path(value) if name == "folder" else value
    found = replace(asked, **changed)
    named = [name for name in WAYS.values() if getattr(found, name)]
    best = min((strength[name] for name in named), default=0)
    return replace(found, **{name: defaults[name] for name in named if strength[name] > best})


def _strength(context: typer.Context, option: str) -> int:
    source = context.get_parameter_source(option)
    return ORDER.index(source.name) if source is not None and source.name in ORDER else ORDER.index("DEFAULT")


def eval_command(
    context: typer.Context,
    golden: Golden = None,
    retriever: RetrieverText = None,
    python: Python = None,
    route: Route = None,
    route_by: Annotated[str, typer.Option("--route-by", help="The query field that --route goes by.")] = "corpus",
    folder: Folder = None,
    chunk: Chunk = None,
    measure: MeasureNames = None,
    k: Annotated[
        int | None, typer.Option("-k", min=1, help="Hits to ask for (own search 100, connected ones as needed).")
    ] = None,
    components: Annotated[
        bool, typer.Option("--components", "-c", help="Also every channel alone, each left out, and every step.")
    ] = False,
    split: SplitName = "all",
    sample: Sample = 1.0,
    session: Session = False,
    scope: Scope = None,
    workers: Workers = None,
    timeout: Timeout = 30.0,
    retries: Retries = 1,
    passes: Passes = 1,
    id_pattern: IdPattern = None,
    allow: Allow = None,
    failed: FailedQueries = "list",
    version: Vouched = "",
    watch: Watch = None,
    no_cache: NoCache = False,
    resume: Resume = False,
    name: Annotated[
        str, typer.Option("--name", help="Name of the run; default: branch@commit or, outside git, the search.")
    ] = "",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Run folder; .ringtrue/runs/… unless given.")] = None,
    reports: Annotated[Path, typer.Option("--reports", help="Folder for the Markdown report.")] = REPORTS,
    no_report: Annotated[bool, typer.Option("--no-report", help="Write no Markdown report.")] = False,
    html: Annotated[Path | None, typer.Option("--html", help="Also write an HTML report to this file.")] = None,
    store: StoreUrl = None,
    no_store: NoStore = False,
    project: Project = "default",
    feature: Feature = None,
    no_advice: Annotated[bool, typer.Option("--no-advice", hidden=True, help="Print no next steps.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Also print notes on how the numbers were computed.")
    ] = False,
    json: Json = False,
) -> None:
    """Measure a search on a golden set.

    Asks every question of the set and scores the answers, if the set's documents are in the index. Writes a run folder (which
    compare, gate and report read) and a Markdown report, and adds the result to the store, where `ringtrue serve` shows it.
    Repeating the same evaluation reads the cache and says so.

    \b
    Example: ringtrue eval --golden hotel --retriever hybrid --components
    Example: ringtrue eval --golden my-set.yaml --retriever "connect('shop')" --out runs/today
    Example: ringtrue eval --golden my-set.yaml --python my_search.py:find -m nDCG@10 -m R@20
    """
    from ringtrue.cli.show_evaluation import print_evaluation
    from ringtrue.report import file_name, markdown, report_on
    from ringtrue.run import save

    asked = Asked(
        golden, retriever, python, route or (), route_by, folder, chunk, measure or (), k,
        components, sample, split, session, scope, workers, timeout, retries, id_pattern, allow or (), failed, version,
        watch or (), not no_cache, resume, name, passes,
    )  # fmt: skip
    keeping = keeper(store, no_store=no_store, project=project, feature=feature, make=True)
    found = evaluated(settled(asked, context), quiet=json)
    now = datetime.now(UTC)
    found = save(found, out or new_run_folder(found, now))
    report = report_on(found, made_at=now.isoformat(timespec="seconds"))
    written = None if no_report else write_new(reports / file_name(report.made_at), markdown(report))
    if html is not None:
        from ringtrue.report import html as as_html

        html.parent.mkdir(parents=True, exist_ok=True)
        html.write_text(as_html(report), encoding="utf-8")
    kept = keeping.add(found)
    if json:
        show.as_json(record(found) | {"report": written, "stored": kept.run_id})
    else:
        print_evaluation(report, verbose=verbose, advice=not no_advice)
        places = {"run": found.run_dir, "report": written, "html": html, "stored": kept.run_id}
        print("\n" + "\n".join(f"{what}: {place}" for what, place in places.items() if place is not None))
    kept.tell()
    if found.failures and failed == "list":
        raise typer.Exit(UNDECIDED)


def record(found: Evaluation) -> dict[str, Any]:
    """Return an evaluation under the stable keys of ``--json``."""
    return {
        "name": found.name,
        "run_dir": found.run_dir,
        "metrics": found.metrics,
        "summary": {str(measure): found.scores.summary(measure) for measure in found.scores.measures},
        "intervals": {name: list(ends) for name, ends in found.intervals.items()},
        "per_slice": {
            field: {
                value: {str(m): found.scores.by(field, m)[value].mean for m in found.scores.measures}
                for value in found.scores.by(field, found.scores.measures[0])
            }
            for field in found.setup.golden.slices
        },
        "components": {part.name: part.scores.aggregate for part in found.components},
        "latency_ms": {name: getattr(found.latency, name) for name in ("p50", "p95", "p99")},
        "missing": list(found.scores.counted.missing),
        "failures": found.failures,
        "cached": found.cached,
        "queries": len(found.queries),
        "setup": found.setup,
        "lost": len(found.losses),
        "notes": list(found.notes),
    }


def new_run_folder(found: Evaluation, now: datetime) -> Path:
    """Return a new folder for a run, made at once: of two evaluations in one second each gets its own."""
    from ringtrue.run import RUNS

    slug = re.sub(r"[^A-Za-z0-9]+", "-", found.search).strip("-")[:40] or "run"
    wanted = RUNS / f"{now:%Y%m%dT%H%M%SZ}-{found.setup.golden.id}-{slug}"
    RUNS.mkdir(parents=True, exist_ok=True)
    for candidate in numbered(wanted):
        with suppress(FileExistsError):
            candidate.mkdir()
            return candidate
    raise AssertionError("names do not end")


def write_new(path: Path, text: str) -> Path:
    """Write a text to a file that does not exist yet, with a number in its name where one does; return where it lies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for candidate in numbered(path):
        with suppress(FileExistsError), candidate.open("x", encoding="utf-8") as file:
            file.write(text)
            return candidate
    raise AssertionError("names do not end")


def numbered(path: Path) -> Iterator[Path]:
    """Yield a path, and then the same with 002, 003 … in its name."""
    yield path
    yield from (path.with_name(f"{path.stem}-{number:03}{path.suffix}") for number in count(2))
