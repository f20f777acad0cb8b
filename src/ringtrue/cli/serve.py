"""``ringtrue serve``: REST, metrics and the dashboard in one process."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from ringtrue.cli import show
from ringtrue.cli.options import Project, StoreUrl
from ringtrue.errors import InputError

if TYPE_CHECKING:
    from ringtrue.service import Settings

DEMO = Path(".ringtrue/demo")


def serve_command(
    host: Annotated[str, typer.Option(help="Address to listen on; other machines need keys.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", "-p", min=0, max=65535, help="Port; 0 takes any that is free.")] = 8080,
    demo: Annotated[bool, typer.Option("--demo", help="Serve shipped data with a filled store of its own.")] = False,
    folder: Annotated[Path | None, typer.Option("--in", help="Folder made by ringtrue ingest, to be searched.")] = None,
    golden: Annotated[str | None, typer.Option("--golden", "-g", help="Search this set's own documents, without --in.")] = None,
    retriever: Annotated[str, typer.Option("--retriever", "-r", help="The search that is served and evaluated.")] = "hybrid",
    expression: Annotated[list[str] | None, typer.Option("--allow-retriever", help="A further retriever for requests.")] = None,
    keys: Annotated[bool, typer.Option("--keys", help="Callers need keys on this machine, too.")] = False,
    allow_host: Annotated[list[str] | None, typer.Option(help="A name under which the service is called.")] = None,
    trusted_proxy: Annotated[
        list[str] | None, typer.Option(help="Proxy whose X-Forwarded-For is trusted: address or network.")
    ] = None,
    https: Annotated[bool, typer.Option("--https", help="A proxy in front speaks TLS; cookies are for TLS only.")] = False,
    secret: Annotated[str, typer.Option(help="Signs browser sessions, which then outlive a restart.", show_default=False)] = "",
    prefix: Annotated[str, typer.Option("--metric-prefix", help="How the names of metrics begin.")] = "ringtrue",
    at_once: Annotated[int, typer.Option(min=0, help="Evaluations with more queries than this become jobs.")] = 200,
    store: StoreUrl = None,
    project: Project = "default",
) -> None:
    """Run the dashboard, the REST API under /v1 and /metrics.

    On this machine no key is needed. If it listens elsewhere (--host 0.0.0.0), callers need keys: `ringtrue keys create`.
    With --demo everything is filled: a golden set, runs, a query log, reviews, shadow runs, tests, flags and experiments.

    \b
    Example: ringtrue serve --demo
    Example: ringtrue serve --in .ringtrue/index --retriever hybrid
    Example: ringtrue serve --host 0.0.0.0 --store postgresql://ringtrue@db/ringtrue --https --allow-host search.example.org
    """
    from ringtrue.config import load_config
    from ringtrue.service import Settings, run

    settings = Settings(
        store=store, host=host, port=port, project=project, keys=keys, hosts=tuple(allow_host or ()),
        proxies=tuple(trusted_proxy or ()), https=https, secret=secret, retriever=retriever, folder=folder, golden=golden,
        expressions=tuple(expression or ()),
        prefix=prefix, gauges=load_config().gauges, at_once=at_once,
    )  # fmt: skip
    if folder is not None and not folder.is_dir():
        raise InputError(f"--in {folder}: there is no such folder; make it with `ringtrue ingest PATH --into {folder}`")
    if demo:
        settings = _demo(settings)

    def ready(url: str) -> None:
        show.note(f"listening on {url}" + ("" if settings.open else ", with keys"))
        if not settings.open and not settings.demo:
            show.note("make a key with: ringtrue keys create NAME --scope read")
        show.note("stop with Ctrl+C")
        sys.stderr.flush()

    run(settings, ready=ready)


def _demo(settings: Settings) -> Settings:
    """Return the settings of the demonstration, with its store filled; the user's own store is left alone."""
    from ringtrue.service.demo import demo_settings

    if settings.store is not None:
        raise InputError("--demo has a store of its own; leave --store out, or --demo")
    made = demo_settings(DEMO, host=settings.host, port=settings.port, keys=settings.keys)
    path = Path(str(made.store))
    if path.exists():
        _fill(path, made.project)
        return made
    DEMO.mkdir(parents=True, exist_ok=True)
    # Whoever stops it half-way begins anew with the same command: the store gets its name when it is complete.
    with TemporaryDirectory(dir=DEMO, prefix="filling-") as folder:
        filling = Path(folder) / path.name
        _fill(filling, made.project)
        filling.replace(path)
    return made


def _fill(path: Path, project: str) -> None:
    from ringtrue.cli.ingest import progress_bar
    from ringtrue.golden import load
    from ringtrue.run.named import index_documents
    from ringtrue.service.demo import HYBRID, SHIPPED, fill
    from ringtrue.store import Store

    if not path.exists():
        show.note("indexing the documents of a hotel; the first time their vectors take some seconds")
        index_documents(load(SHIPPED), HYBRID, progress=progress_bar)
    with Store.open(str(path)) as store:
        fill(store, now=datetime.now(UTC), project=project, tell=show.note)
