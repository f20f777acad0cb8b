"""Who may use the service for this project, and who changed what: ``/v1/keys`` and ``/v1/audit``, for admins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ringtrue.answers import AuditEntry, KeyState, MadeKey, Scope
from ringtrue.client.reading import read
from ringtrue.client.wire import Wire, encoded, given, segment, several


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
