"""Who may use the service for this project, and who changed what: ``/v1/keys`` and ``/v1/audit``, for admins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ringtrue.client.reading import read
from ringtrue.client.wire import Wire, encoded, given, segment, several

Scope = Literal["read", "write", "review", "admin"]


@dataclass(frozen=True, slots=True)
class KeyState:
    """A key; its token is nowhere but with its holder."""

    key_id: str
    name: str
    scopes: tuple[Scope, ...]
    created_at: str
    expires_at: str | None
    revoked_at: str | None
    last_used_at: str | None
    """To the minute."""


@dataclass(frozen=True, slots=True)
class MadeKey(KeyState):
    """A new key with its token, which cannot be had a second time and does not show where the record is printed."""

    token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One change: who, what, when and why."""

    at: str
    who: str
    what: str
    subject: str
    detail: Mapping[str, Any]


class Keys:
    """The keys of the project; all of this needs a key with scope 'admin'."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def list(self) -> tuple[KeyState, ...]:
        """Return the keys of the project, those that ended or were revoked too."""
        return read(tuple[KeyState, ...], self._wire.get("/v1/keys"))

    def create(self, name: str, scopes: Scope | Sequence[Scope], *, expires_at: str | None = None) -> MadeKey:
        """Make a key and return it with its token.

        This request is sent once and carries no Idempotency-Key: for that the service would have to keep its answer, and the
        token with it.
        """
        body = encoded(given({"name": name, "scopes": several(scopes), "expires_at": expires_at}))
        return read(MadeKey, self._wire.send("POST", "/v1/keys", content=body, again=False).json)

    def revoke(self, key_id: str) -> KeyState:
        """Revoke a key, which opens nothing from now on, and return it; raises MissingInput."""
        return self._wire.write_as(KeyState, "DELETE", f"/v1/keys/{segment(key_id, 'key_id')}")

    def audit(self, *, subject: str | None = None, what: str | None = None, since: str | None = None) -> Iterator[AuditEntry]:
        """Yield changes, the newest first."""
        return self._wire.items(AuditEntry, "/v1/audit", subject=subject, what=what, since=since)
