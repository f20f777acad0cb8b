"""``ringtrue keys``: who may call the service, and for what."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, cast

import typer

from ringtrue.cli import show
from ringtrue.cli.options import StoreOptions, Who, command_group, person
from ringtrue.errors import MissingInput, nearest

if TYPE_CHECKING:
    from ringtrue.answers import Scope
    from ringtrue.store import ApiKey

app = command_group("Create, list and revoke API keys.")


@app.command()
def create(
    *,
    name: Annotated[str, typer.Argument(help="Who or what the key is for, such as ci or ada's laptop.")],
    scope: Annotated[list[str], typer.Option("--scope", "-s", help="What it allows: read, write, review or admin (all).")],
    days: Annotated[int, typer.Option(min=1, max=3650, help="Days until the key expires.")] = 90,
    who: Who = None,
    options: StoreOptions,
) -> None:
    """Create a key and print its token once. The store keeps only a hash.

    \b
    Example: ringtrue keys create ci --scope read --scope write
    Example: ringtrue keys create "judges of May" --scope review --days 30 --project shop --json
    """
    from ringtrue.store import AuditEntry

    now = datetime.now(UTC)
    with options.open() as opened:
        scopes = cast("list[Scope]", list(dict.fromkeys(scope)))
        key, token = opened.create_key(name, scopes, now=now, project=options.project, expires_at=now + timedelta(days=days))
        detail = {"name": key.name, "scopes": list(key.scopes), "expires_at": key.expires_at}
        opened.add_audit(AuditEntry(key.created_at, person(who), "key created", key.key_id, detail, options.project))
    if options.json:
        show.as_json({"key": key, "token": token})
    else:
        print(f"{key.key_id}: {', '.join(key.scopes)} in project '{options.project}', until {key.expires_at}")
        print(token)
    show.note("this is the only time the token is shown; keep it like a password, and revoke the key if it gets lost")


@app.command("list")
def list_keys(*, options: StoreOptions) -> None:
    """List the keys of a project, including expired and revoked ones. Tokens are not stored.

    Example: ringtrue keys list --project shop
    """
    from ringtrue.store import timestamp

    now = timestamp(datetime.now(UTC))
    with options.existing() as opened:
        keys = opened.keys(project=options.project)
    if options.json:
        show.end_with_json(
            {"project": options.project, "keys": [{**show.plain(key), "state": _state(key, now)} for key in keys]}
        )
    if not keys:
        print(f"project '{options.project}' has no key; make one: ringtrue keys create NAME --scope read")
        return
    rows = [
        [key.key_id, key.name, ", ".join(key.scopes), _state(key, now), key.expires_at or "never", key.last_used_at or "never"]
        for key in keys
    ]
    show.table(["key", "name", "scopes", "state", "ends", "last used"], rows, text_columns=6)


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
    from ringtrue.store import AuditEntry, timestamp

    now = timestamp(datetime.now(UTC))
    with options.existing() as opened:
        there = {key.key_id: key for key in opened.keys(project=options.project)}
        if key_id not in there:
            hint = f"did you mean {nearest(key_id, there)}?" if there else "it has none at all"
            raise MissingInput(f"project '{options.project}' has no key '{key_id}'; {hint}")
        ended = opened.revoke_key(key_id, now=now, project=options.project)
        if ended:
            opened.add_audit(AuditEntry(now, person(who), "key revoked", key_id, {"name": there[key_id].name}, options.project))
    if options.json:
        show.as_json({"key_id": key_id, "revoked_now": ended, "revoked_at": now if ended else there[key_id].revoked_at})
    elif ended:
        print(f"{key_id} ('{there[key_id].name}') is revoked")
    else:
        print(f"{key_id} ('{there[key_id].name}') was revoked already, at {there[key_id].revoked_at}")


def _state(key: ApiKey, now: str) -> str:
    if key.revoked_at is not None:
        return "revoked"
    return "ended" if key.expires_at is not None and key.expires_at <= now else "open"
