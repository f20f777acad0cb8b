"""The searches a server answers: its documents, opened once, and retrievers over them, built once each.

What answers ``/v1/search`` is what an evaluation asks: both are made by the same function from the same text and the same
documents.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from ringtrue.config import cache_folder
from ringtrue.errors import InputError, MissingInput, SpecError
from ringtrue.golden import load
from ringtrue.records import Hit
from ringtrue.retrieve import (
    Collection,
    Seen,
    as_expression,
    build,
    canonical,
    indexes_of,
    names_documents,
    observing,
)
from ringtrue.run import Subject, corpus_of, subject_of
from ringtrue.service.errors import Refused
from ringtrue.service.settings import Settings

MOST = 16
"""Retrievers that are kept open; the one that was asked longest ago is closed for a new one."""
MOST_INDEXES = 24
"""Kinds of indexes that requests may make over the documents: each takes as much room on the disk as the texts."""


class Passage(NamedTuple):
    """What a reader sees of a document."""

    title: str
    text: str


@dataclass(frozen=True, eq=False)
class FoundHits:
    """What a search found, and how that came about."""

    subject: Subject
    hits: tuple[Hit, ...]
    seen: Seen | None
    ms: float
    """Around the retriever alone."""


@dataclass(eq=False)
class _OpenRetriever:
    """One retriever, made by the first who needs it while others wait for it, and only for it."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    subject: Subject | None = None

    def close(self) -> None:
        """End its connections, and programs that answer."""
        parts = [] if self.subject is None else [self.subject.retriever]
        for part in parts:
            parts += getattr(part, "parts", ())
            if callable(close := getattr(part, "close", None)):
                with suppress(Exception):  # what cannot be closed is gone already
                    close()


def check_settings(settings: Settings) -> None:
    """Raise InputError, naming the option, for a search that cannot be read or a set that is not there.

    Asked before a server listens: its first caller would be told otherwise, who can do nothing about it.
    """
    written = [("--retriever", settings.retriever), *(("--allow-retriever", one) for one in settings.expressions)]
    if settings.folder is None and settings.golden is not None:
        try:
            load(settings.golden)
        except InputError as problem:
            raise type(problem)(f"--golden: {problem}") from None
    for option, text in written:
        try:
            canonical(text)
        except (SpecError, InputError) as problem:
            raise InputError(f"{option}: {problem}") from None


class Searches:
    """The documents and retrievers of one server; any thread may use it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._kept: OrderedDict[str, _OpenRetriever] = OrderedDict()
        self._lock = threading.Lock()
        self._opening = threading.Lock()
        self._documents: Collection | None = None
        self._closed = False

    @property
    def documents(self) -> Collection:
        """The documents that are searched; raises MissingInput if the settings name none, or what they name is not there."""
        with self._opening:
            if self._documents is None:
                self._documents = self._opened()
            return self._documents

    def _opened(self) -> Collection:
        if self.settings.folder is not None:
            found = Collection(self.settings.folder)
            if not len(found):
                raise MissingInput("the server's folder holds no documents; its operator must run `ringtrue ingest` first")
            return found
        if self.settings.golden is not None:
            try:
                return corpus_of(load(self.settings.golden), cache_folder() / "corpora")
            except MissingInput:  # which would name the files that lie beside it
                raise MissingInput("the server's golden set is not there any more; its operator must bring it back") from None
        raise MissingInput("the server has no documents to search; start it with --in FOLDER or --golden NAME")

    def retriever(self, text: str | None = None) -> Subject:
        """Return the retriever of an admitted expression, the server's own unless given, with its text and fingerprint.

        Raises what building it raises, and Refused (409) if it needs an index and there are many already.
        """
        # As it is written: the names of channels in hits and logs are those that somebody wrote.
        wanted = str(as_expression(self.settings.retriever if text is None else text))
        with self._lock:
            if self._closed:
                raise Refused(503, "unavailable", "the service is stopping; ask again soon")
            entry = self._kept.setdefault(wanted, _OpenRetriever())
            self._kept.move_to_end(wanted)
        with entry.lock:
            if entry.subject is None:
                try:
                    if names_documents(wanted):
                        self.check_room(wanted, self.documents)
                    entry.subject = subject_of(wanted, collection=lambda: self.documents)
                except BaseException:
                    with self._lock:
                        if self._kept.get(wanted) is entry:
                            del self._kept[wanted]
                    raise
        with self._lock:
            gone = [self._kept.popitem(last=False)[1] for _ in range(len(self._kept) - MOST)]
        for one in gone:
            one.close()
        return entry.subject

    def check_room(self, text: str, documents: Collection) -> None:
        """Raise Refused (409) for a retriever that would make one index more over documents than a server keeps."""
        if str(canonical(text)) in {str(canonical(one)) for one in self.settings.own_retrievers}:
            return
        new = [index for index in indexes_of(build(text, documents)) if not index.folder.exists()]
        folder = documents.folder / "indexes"
        there = sum(1 for _ in folder.iterdir()) if folder.is_dir() else 0
        if new and there + len(new) > MOST_INDEXES:
            raise Refused(
                409, "too_many_indexes",
                f"this retriever needs a new index, and the documents have {there} already; use options of one that was asked, "
                "or ask the operator to name this retriever",
            )  # fmt: skip

    def passages(self, doc_ids: Iterable[str]) -> dict[str, Passage]:
        """Return title and text of documents by id; those that lie elsewhere, with a connected system, are absent."""
        try:
            documents = self.documents
        except InputError:  # none are configured, or the golden set has none
            return {}
        wanted = list(doc_ids)
        titles = documents.titles(wanted)
        return {
            doc_id: Passage(titles[doc_id], text.removeprefix(titles[doc_id]).strip())
            for doc_id, text in documents.texts_known(wanted).items()
            if doc_id in titles
        }

    def ask(self, query: str, *, k: int, retriever: str | None = None, scope: Mapping[str, str] | None = None) -> FoundHits:
        """Return what an admitted retriever, the server's own unless given, finds; raises SearchFailed and InputError."""
        subject = self.retriever(retriever)
        began = time.perf_counter()
        with observing() as seen:
            hits = tuple(subject.retriever.search(query, k=k, scope=scope or None))
        return FoundHits(subject, hits, seen.root, (time.perf_counter() - began) * 1000)

    def close(self) -> None:
        """End what was opened: connections, and programs that answer."""
        with self._lock:
            self._closed = True
            entries = list(self._kept.values())
            self._kept.clear()
        for entry in entries:
            entry.close()
