"""``ringtrue serve``, ``health`` and ``keys``: the service, its state, and who may call it."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, cast

import typer

from ringtrue.cli import lib, show
from ringtrue.cli.options import Project, StoreOptions, StoreUrl, Who, command_group, person, utc_now
from ringtrue.config import load_config
from ringtrue.errors import InputError, MissingInput, nearest
from ringtrue.store import MOST_KEY_DAYS

DEMO = Path(".ringtrue/demo")


def serve_command(
    host: Annotated[str, typer.Option(help="Address to listen on; other machines need keys.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", "-p", min=0, max=65535, help="Port; 0 takes any that is free.")] = 8080,
    demo: Annotated[bool, typer.Option("--demo", help="Serve sample data from a separate, prefilled store.")] = False,
    folder: Annotated[Path | None, typer.Option("--in", help="Folder made by ringtrue ingest, to search.")] = None,
    golden: Annotated[str | None, typer.Option("--golden", "-g", help="Search this set's own documents, without --in.")] = None,
    retriever: Annotated[str, typer.Option("--retriever", "-r", help="The retriever to serve and evaluate.")] = "hybrid",
    expression: Annotated[
        list[str] | None, typer.Option("--allow-retriever", help="Another retriever that requests may choose.")
    ] = None,
    keys: Annotated[bool, typer.Option("--keys", help="Require API keys on this machine, too.")] = False,
    allow_host: Annotated[list[str] | None, typer.Option(help="A host name of the service.")] = None,
    trusted_proxy: Annotated[
        list[str] | None, typer.Option(help="Proxy whose X-Forwarded-For is trusted: address or network.")
    ] = None,
    https: Annotated[bool, typer.Option("--https", help="A TLS proxy is in front; restrict cookies to TLS.")] = False,
    secret: Annotated[
        str, typer.Option(help="Secret that signs browser sessions, so that they survive a restart.", show_default=False)
    ] = "",
    prefix: Annotated[str, typer.Option("--metric-prefix", help="Prefix of the metric names.")] = "ringtrue",
    at_once: Annotated[int, typer.Option(min=0, help="Evaluations with more queries than this run as jobs.")] = 200,
    store: StoreUrl = None,
    project: Project = "default",
) -> None:
    """Run the dashboard, the REST API under /v1 and /metrics.

    Callers on this machine need no key. If it listens on other addresses (--host 0.0.0.0), callers need keys: `ringtrue keys
    create`. --demo adds sample data: a golden set, runs, a query log, reviews, shadow runs, tests, flags and experiments.

    Example: ringtrue serve --demo
    Example: ringtrue serve --in .ringtrue/index --retriever hybrid
    Example: ringtrue serve --host 0.0.0.0 --store postgresql://ringtrue@db/ringtrue --https --allow-host search.example.org
    """
    settings = lib.service.Settings(
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

    lib.service.run(settings, ready=ready)


def _demo(settings: lib.service.Settings) -> lib.service.Settings:
    """Return the settings of the demonstration, with its store filled; the user's own store is left alone."""
    from ringtrue.service.demo import demo_settings

    if settings.store is not None:
        raise InputError("--demo has its own store; leave out --store or --demo")
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
    from ringtrue.service.demo import fill

    if not path.exists():
        show.note("indexing the documents of a hotel; the first time their vectors take some seconds")
    with lib.store.Store.open(str(path)) as store:
        fill(store, now=utc_now(), project=project, tell=show.note)


def health_command(
    *,
    index: Annotated[Path | None, typer.Option(help="Folder made by ringtrue ingest; its indexes are checked, too.")] = None,
    retriever: Annotated[
        str, typer.Option("--retriever", "-r", help="With --index: the retriever that searches it.")
    ] = "hybrid",
    options: StoreOptions,
) -> None:
    """Show the state of logs, gates, tests, rollouts and indexes.

    Includes the agent memory if you use it. Exit code 0: healthy; 1: something is wrong; 3: something is unknown.

    Example: ringtrue health
    Example: ringtrue health --index .ringtrue/index --json
    """
    from ringtrue.memory.signals import health_with_memory

    now = utc_now()
    with options.existing_with_data() as opened:
        found = lib.rollout.health_of(opened, now=now, project=options.project, index=index, retriever=retriever)
        found = health_with_memory(found, opened, project=options.project, now=now)
    parts = {part.name: {"state": part.state, "says": part.says, **part.figures} for part in found.parts}
    show.result(
        options.json,
        {"state": found.state, "project": options.project, "parts": parts},
        show.Table(("part", "state", ""), [[part.name, part.state, part.says] for part in found.parts], 3),
        f"\n{options.project}: {found.state}",
        code=found.exit_code,
    )


app = command_group("Create, list and revoke API keys.")


@app.command()
def create(
    *,
    name: Annotated[str, typer.Argument(help="Who or what the key is for, such as ci or ada's laptop.")],
    scope: Annotated[list[str], typer.Option("--scope", "-s", help="Permission: read, write, review or admin (everything).")],
    days: Annotated[int, typer.Option(min=1, max=MOST_KEY_DAYS, help="Days until the key expires.")] = 90,
    who: Who = None,
    options: StoreOptions,
) -> None:
    """Create a key and print its token once. The store keeps only a hash.

    Example: ringtrue keys create ci --scope read --scope write
    Example: ringtrue keys create "judges of May" --scope review --days 30 --project shop --json
    """
    now = utc_now()
    with options.open() as opened:
        scopes = cast("list[lib.answers.Scope]", list(dict.fromkeys(scope)))
        key, token = opened.create_key(name, scopes, now=now, project=options.project, expires_at=now + timedelta(days=days))
        detail = {"name": key.name, "scopes": list(key.scopes), "expires_at": key.expires_at}
        opened.add_audit(lib.store.AuditEntry(key.created_at, person(who), "key created", key.key_id, detail, options.project))
    said = f"{key.key_id}: {', '.join(key.scopes)} in project '{options.project}', until {key.expires_at}"
    show.result(options.json, {"key": key, "token": token}, said, token)
    show.note("this is the only time the token is shown; keep it like a password, and revoke the key if it gets lost")


@app.command("list")
def list_keys(*, options: StoreOptions) -> None:
    """List the keys of a project, including expired and revoked ones. Tokens are not stored.

    Example: ringtrue keys list --project shop
    """
    now = lib.store.timestamp(utc_now())
    with options.existing() as opened:
        keys = opened.keys(project=options.project)
    listed = [{**show.plain(key), "state": _state(key, now)} for key in keys]
    rows = [
        [key.key_id, key.name, ", ".join(key.scopes), _state(key, now), key.expires_at or "never", key.last_used_at or "never"]
        for key in keys
    ]
    show.result(
        options.json,
        {"project": options.project, "keys": listed},
        show.Table(("key", "name", "scopes", "state", "expires", "last used"), rows, 6),
        "" if keys else f"project '{options.project}' has no key; create one: ringtrue keys create NAME --scope read",
    )


@app.command()
def revoke(
    *,
    key_id: Annotated[str, typer.Argument(metavar="KEY_ID", help="The key, like key_0123456789ab; see keys list.")],
    who: Who = None,
    options: StoreOptions,
) -> None:
    """Revoke a key. The next call with its token is refused.

    Example: ringtrue keys revoke key_0123456789ab
    """
    now = lib.store.timestamp(utc_now())
    with options.existing() as opened:
        there = {key.key_id: key for key in opened.keys(project=options.project)}
        if key_id not in there:
            hint = f"did you mean {nearest(key_id, there)}?" if there else "it has none at all"
            raise MissingInput(f"project '{options.project}' has no key '{key_id}'; {hint}")
        ended, key = opened.revoke_key(key_id, now=now, project=options.project), there[key_id]
        if ended:
            entry = lib.store.AuditEntry(now, person(who), "key revoked", key_id, {"name": key.name}, options.project)
            opened.add_audit(entry)
    record = {"key_id": key_id, "revoked_now": ended, "revoked_at": now if ended else key.revoked_at}
    said = "is revoked" if ended else f"was revoked already, at {key.revoked_at}"
    show.result(options.json, record, f"{key_id} ('{key.name}') {said}")


def _state(key: lib.store.ApiKey, now: str) -> str:
    if key.revoked_at is not None:
        return "revoked"
    return "ended" if key.expires_at is not None and key.expires_at <= now else "open"
