"""The same documents cut in other ways: one collection per chunker, beside the one they come from."""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

from ringtrue.retrieve import Collection
from ringtrue.retrieve.chunk import LIKE
from ringtrue.spec import parse

FOLDER = "chunked"
_CACHES = ("vectors-*.sqlite", "splade-*.sqlite")


class Variants:
    """Collections of the documents of ``base`` by chunker, made on first use and kept in a folder within it.

    A passage that two chunkers cut alike, such as a document short enough for both, is encoded once: the caches of
    vectors that ``base`` has are the caches of its variants. Passages that differ, and the indexes, are each one's own.
    """

    def __init__(self, base: Collection) -> None:
        self.base = base
        self._open: dict[str, Collection] = {base.chunks: base}

    def __call__(self, chunks: str | None) -> Collection:
        """Return the documents cut by this chunker, those of the base where none is named; raises SpecError for a wrong one."""
        if chunks is None:
            return self.base
        text = str(parse(chunks, like=LIKE))
        if text not in self._open:
            self._open[text] = self._made(text)
        self._share(self._open[text])
        return self._open[text]

    def _made(self, chunks: str) -> Collection:
        label = hashlib.sha256(chunks.encode()).hexdigest()[:16]
        found = Collection.create(self.base.folder / FOLDER / label, chunks=chunks)
        if found.unfinished or found.content_hash() != self.base.content_hash():
            found.ingest((document for _, document in self.base.documents()), remove_missing=True)
        return found

    def _share(self, variant: Collection) -> None:
        if variant is self.base:
            return
        for pattern in _CACHES:
            for cache in self.base.folder.glob(pattern):
                link = variant.folder / cache.name
                # Where links cannot be made, or vectors were made here before, there is less sharing and nothing wrong.
                with contextlib.suppress(OSError):
                    link.symlink_to(_from(cache, link.parent))


def _from(cache: Path, folder: Path) -> Path:
    return Path(*[".."] * len(folder.relative_to(cache.parent).parts), cache.name)
