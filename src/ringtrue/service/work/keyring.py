"""Keys of a project: made, listed and revoked by who may do everything there (V-4)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ringtrue.answers import Scope
from ringtrue.errors import MissingInput
from ringtrue.service.errors import Refused
from ringtrue.store import ApiKey, AuditEntry, timestamp

KEY_DAYS = 90
"""Days that a key made over REST works unless its maker says otherwise; `ringtrue keys create` has the same default."""

if TYPE_CHECKING:
    from ringtrue.service.auth import Caller
    from ringtrue.service.context import Service


def create_key(
    service: Service, caller: Caller, name: str, scopes: Sequence[Scope], *, expires_at: str | None = None
) -> tuple[ApiKey, str]:
    """Make a key of the caller's project and return it with its token, which cannot be had a second time.

    Raises Refused for a scope that the caller does not have, InputError for a key that could open nothing.
    """
    beyond = [scope for scope in scopes if not caller.may(scope)]
    if beyond:
        said = f"a key cannot grant what its maker may not do: {', '.join(beyond)}"
        raise Refused(403, "forbidden", said, field="body.scopes")
    store, now = service.of(caller), service.now()
    unique: list[Scope] = list(dict.fromkeys(scopes))
    key, token = store.create_key(name, unique, now=now, project=caller.project, expires_at=expires_at)
    detail = {"name": key.name, "scopes": list(key.scopes), "expires_at": key.expires_at, "by_key": caller.key_id}
    store.add_audit(AuditEntry(timestamp(now), caller.who, "key.create", key.key_id, detail, caller.project))
    return key, token


def keys(service: Service, caller: Caller) -> list[ApiKey]:
    """Return the keys of the caller's project in the order they were made, those that ended or were revoked too."""
    return service.of(caller).keys(project=caller.project)


def revoke_key(service: Service, caller: Caller, key_id: str) -> ApiKey:
    """End a key at once and return it; raises MissingInput where the project has none that still opens something."""
    store, now = service.of(caller), service.now()
    if not store.revoke_key(key_id, now=now, project=caller.project):
        raise MissingInput(f"there is no key '{key_id}' that is not revoked already; look it up in the list of keys")
    service.keyring.forget()  # it opens nothing from now on, not even for a moment
    found = next(key for key in store.keys(project=caller.project) if key.key_id == key_id)
    detail = {"name": found.name, "by_key": caller.key_id}
    store.add_audit(AuditEntry(timestamp(now), caller.who, "key.revoke", key_id, detail, caller.project))
    return found
