"""``/v1/keys``: who may use the service for this project."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter
from pydantic import ConfigDict, Field

from ringtrue.answers import KeyState, MadeKey, Scope
from ringtrue.service.auth import Admin
from ringtrue.service.context import Here
from ringtrue.service.errors import ERRORS
from ringtrue.service.incoming import At
from ringtrue.service.models import Label, Strict, record_from
from ringtrue.service.routes.queries import PathName
from ringtrue.service.work.keyring import KEY_DAYS, create_key, keys, revoke_key
from ringtrue.store import timestamp

router = APIRouter(prefix="/v1/keys", tags=["keys"], responses=ERRORS)


class NewKey(Strict):
    """A key to be made, for the project of the caller."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"name": "hotel app", "scopes": ["write"], "expires_at": "2099-12-31T00:00:00Z"}]}
    )
    name: Label = Field(description="Owner or purpose; for reviewers, the name shown.")
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=4)]
    expires_at: At | None = Field(None, description=f"Expiry; default: {KEY_DAYS} days from now.")


@router.get("")
def list_keys(service: Here, caller: Admin) -> list[KeyState]:
    """List the keys of the project, those that ended or were revoked too."""
    return list(keys(service, caller))


@router.post("", status_code=201)
def create(service: Here, caller: Admin, given: NewKey) -> MadeKey:
    """Make a key. The token is shown this once; only its hash is kept."""
    end = given.expires_at or timestamp(service.now() + timedelta(days=KEY_DAYS))
    key, token = create_key(service, caller, given.name, given.scopes, expires_at=end)
    return record_from(MadeKey, key, token=token)


@router.delete("/{key_id}")
def revoke(service: Here, caller: Admin, key_id: PathName) -> KeyState:
    """Revoke a key: it opens nothing from now on."""
    return revoke_key(service, caller, key_id)
