"""``/v1/keys``: who may use the service for this project."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter
from pydantic import Field

from ringtrue.answers import KeyState, MadeKey, Scope
from ringtrue.errors import MissingInput
from ringtrue.service.auth import Admin, Caller
from ringtrue.service.context import Here, Service
from ringtrue.service.errors import ERRORS, Refused
from ringtrue.service.incoming import At
from ringtrue.service.models import Label, Strict, record_from
from ringtrue.service.routes.queries import PathName
from ringtrue.store import MOST_KEY_DAYS, ApiKey, timestamp

router = APIRouter(prefix="/v1/keys", tags=["keys"], responses=ERRORS)
KEY_DAYS = 90
"""Days that a key made over REST works unless its maker says otherwise; `ringtrue keys create` has the same default."""


class NewKey(Strict, examples=[{"name": "hotel app", "scopes": ["write"]}]):
    """A key to be made, for the project of the caller."""

    name: Label = Field(description="Owner or purpose; for reviewers, the name shown.")
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=4)]
    expires_at: At | None = Field(None, description=f"Expiry; default: {KEY_DAYS} days from now, {MOST_KEY_DAYS:,} at most.")


@router.get("")
def list_keys(service: Here, caller: Admin) -> list[KeyState]:
    """List the keys of the project, those that ended or were revoked too."""
    return list(service.of(caller).keys(project=caller.project))


@router.post("", status_code=201)
def create(service: Here, caller: Admin, given: NewKey) -> MadeKey:
    """Make a key. The token is shown this once; only its hash is kept."""
    end = given.expires_at or timestamp(service.now() + timedelta(days=KEY_DAYS))
    key, token = create_key(service, caller, given.name, given.scopes, expires_at=end)
    return record_from(MadeKey, key, token=token)


def create_key(
    service: Service, caller: Caller, name: str, scopes: Sequence[Scope], *, expires_at: str | None = None
) -> tuple[ApiKey, str]:
    """Make a key of the caller's project and return it with its token, which nobody can see a second time.

    Raises Refused for a scope that the caller does not have, InputError for a key that could open nothing.
    """
    beyond = [scope for scope in scopes if not caller.may(scope)]
    if beyond:
        said = f"a key cannot grant what its maker may not do: {', '.join(beyond)}"
        raise Refused(403, "forbidden", said, field="body.scopes")
    unique: list[Scope] = list(dict.fromkeys(scopes))
    made = service.of(caller).create_key(name, unique, now=service.now(), project=caller.project, expires_at=expires_at)
    detail = {"name": made[0].name, "scopes": list(made[0].scopes), "expires_at": made[0].expires_at, "by_key": caller.key_id}
    service.note(caller, "key.create", made[0].key_id, detail)
    return made


@router.delete("/{key_id}")
def revoke(service: Here, caller: Admin, key_id: PathName) -> KeyState:
    """Revoke a key: it opens nothing from now on."""
    store = service.of(caller)
    if not store.revoke_key(key_id, now=service.now(), project=caller.project):
        raise MissingInput(f"no key '{key_id}' that is not revoked already; look it up in the list of keys")
    service.keyring.forget()
    found = next(key for key in store.keys(project=caller.project) if key.key_id == key_id)
    service.note(caller, "key.revoke", key_id, {"name": found.name, "by_key": caller.key_id})
    return found
