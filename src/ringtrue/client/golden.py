"""Golden sets, version by version: ``/v1/golden``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from ringtrue.answers import GoldenDifference, GoldenItem, GoldenVersion
from ringtrue.client.reading import read
from ringtrue.client.wire import Wire, encoded, segment
from ringtrue.errors import InputError, nearest

KINDS = {
    "json": "application/json",
    "yaml": "application/yaml",
    "jsonl": "application/x-ndjson",
    "zip": "application/zip",
}
"""What an upload may be, and the content type that says so."""


class Golden:
    """The golden sets of the project, and those that come with Ringtrue."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def list(self) -> Iterator[GoldenItem]:
        """Yield the golden sets by name."""
        return self._wire.items(GoldenItem, "/v1/golden")

    def versions(self, name: str) -> Iterator[GoldenItem]:
        """Yield the versions of a set, the last saved first; raises MissingInput where there is no such set."""
        return self._wire.items(GoldenItem, f"/v1/golden/{segment(name, 'name')}/versions")

    def get(self, name: str, version: str | None = None, *, content: bool = False) -> GoldenVersion:
        """Return a version of a set, the last saved unless one is named; with ``content`` the whole set.

        Raises MissingInput where there is none.
        """
        path = f"/v1/golden/{segment(name, 'name')}"
        if version is not None:
            path += f"/{segment(version, 'version')}"
        return self._wire.get_as(GoldenVersion, path, content="true" if content else None)

    def upload(
        self, content: Mapping[str, Any] | bytes, *, kind: Literal["json", "yaml", "jsonl", "zip"] = "json"
    ) -> GoldenVersion:
        """Keep a set under the name and version that it has, and return it with what validation found.

        ``content`` is the set itself, such as ``ringtrue.golden.record_of`` makes, or the bytes of a file of that ``kind``.
        Raises InputError for what cannot be read, and where this version is there already with another content.
        """
        if kind not in KINDS:
            raise InputError(f"a set cannot be uploaded as {kind!r}; did you mean {nearest(str(kind), KINDS)}?")
        if not isinstance(content, bytes):
            if kind != "json":
                raise InputError(f"a dictionary is sent as json, not as {kind}; leave kind out, or give the bytes of the file")
            content = encoded(dict(content))
        reply = self._wire.send("POST", "/v1/golden", content=content, headers={"Content-Type": KINDS[kind]})
        return read(GoldenVersion, reply.json)

    def keep_shipped(self, name: str) -> GoldenVersion:
        """Keep a copy of a set that comes with Ringtrue, so that versions of one's own can follow it."""
        return self._wire.write_as(GoldenVersion, "POST", "/v1/golden/shipped", {"name": name})

    def diff(self, name: str, old: str, new: str | None = None) -> GoldenDifference:
        """Return what changed from version ``old`` to ``new``, the last saved unless given."""
        params = {"from": old, "to": new}
        return self._wire.get_as(GoldenDifference, f"/v1/golden/{segment(name, 'name')}/diff", **params)
