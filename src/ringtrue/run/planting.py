"""Planting: a golden set's documents are put into a connected system, waited for, and taken out again.

They go in under ids of their own (``golden:hotel:entity-pool``) with a source hash that is sealed with id and tenant, so that a
second run writes only what changed, and that neither writing nor removing them touches anything else. A connected system that
cannot store that hash, or not show it again, is not written.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ringtrue.errors import BadAnswer, InputError, RingtrueError, SearchFailed, TimedOut
from ringtrue.records import GoldenSet
from ringtrue.retrieve import plain
from ringtrue.retrieve.connectors.writing import SEAL, Planted, Writable, sealed
from ringtrue.traffic import marked

PREFIX = "golden"
BATCH = 64
POLL = 0.5
"""Seconds between two looks whether documents can be found."""
SAMPLE = 5
"""Documents that must be found by a search, besides being known by id: being stored is not being found."""
DEPTH = 20
"""How deep a document may stand among the answers to its own words; others may have the same title."""
_SIGNS = re.compile(r"[^\s:]+")


class PartlyPlanted(SearchFailed):
    """Some documents were refused; ``failed`` says which and why. The others are there."""

    def __init__(self, message: str, failed: Mapping[str, str]) -> None:
        super().__init__(message)
        self.failed = dict(failed)


@dataclass(frozen=True)
class Planting:
    """What became of a golden set's documents in a system."""

    system: str
    documents: int
    written: int
    unchanged: int
    """Documents that were there already, with the same source hash."""
    searchable: int
    namespace: str
    """What stands before a document's own id there, ``golden:hotel:``."""
    tenant: str | None
    id_pattern: str
    """A pattern whose first group is a document's own id, for ``ringtrue eval --id-pattern``."""


def plant(
    connector: Any,
    golden: GoldenSet,
    *,
    tenant: str | None = None,
    prefix: str = PREFIX,
    timeout: float = 60.0,
    progress: Callable[[int], None] | None = None,
) -> Planting:
    """Write the documents of a set into a system and return when all can be found.

    What is there with the same source hash is not written again, so that an interrupted run is mended by another. A record of
    the same id that was not planted for this tenant stays as it is, and its document is refused. Raises InputError for a system
    that cannot be written or does not tell what it holds, PartlyPlanted when it refused some documents, TimedOut when some
    cannot be found after ``timeout`` seconds, and SearchFailed.
    """
    documents, system = plantings(golden, tenant=tenant, prefix=prefix), _writable(connector)
    changed = _changed(system, documents)
    unchanged = len(documents) - len(changed)
    tell = progress or (lambda count: None)
    tell(unchanged)
    _write(system, changed, tell)
    _await(system, documents, timeout)
    return Planting(
        system=_name(system),
        documents=len(documents),
        written=len(changed),
        unchanged=unchanged,
        searchable=len(documents),
        namespace=namespace(golden, prefix=prefix),
        tenant=tenant,
        id_pattern=id_pattern(golden, prefix=prefix),
    )


@contextmanager
def planted(connector: Any, golden: GoldenSet, *, tenant: str | None = None, timeout: float = 60.0) -> Iterator[Planting]:
    """Plant a set for as long as a block runs; what was written is removed again, also after an error.

    Documents that were there before, unchanged, stay: somebody planted them to be kept.
    """
    system = _writable(connector)
    changed = _changed(system, plantings(golden, tenant=tenant))
    try:
        yield plant(connector, golden, tenant=tenant, timeout=timeout)
    except BaseException as problem:
        try:
            _removed(system, changed, tenant)
        except RingtrueError as second:  # what went wrong first is what the user must hear
            problem.add_note(f"and the planted documents could not be removed: {second}")
        raise
    else:
        _removed(system, changed, tenant)


def remove_planted(
    connector: Any,
    golden: GoldenSet,
    *,
    tenant: str | None = None,
    prefix: str = PREFIX,
    progress: Callable[[int], None] | None = None,
) -> int:
    """Remove the documents of a set that were planted for a tenant, and return how many.

    What cannot be proven to be planted, by the seal of its source hash, stays: it is not counted, whatever its id.
    """
    documents = plantings(golden, tenant=tenant, prefix=prefix)
    return _removed(_writable(connector), documents, tenant, progress or (lambda count: None))


def plantings(golden: GoldenSet, *, tenant: str | None = None, prefix: str = PREFIX) -> list[Planted]:
    """Return the documents of a set as they are planted; raises InputError if there are none.

    >>> from ringtrue.golden import load
    >>> plantings(load("hotel"))[0].id.startswith("golden:hotel:")
    True
    """
    if not golden.documents:
        raise InputError(f"golden set '{golden.id}' brings no documents to ingest; name one with a corpus")
    if tenant is not None and not tenant.strip():
        raise InputError("the tenant is blank; name one, or leave it out")
    found, start = [], namespace(golden, prefix=prefix)
    for document in golden.documents:
        tags = {"tags": list(document.tags)} if document.tags and "tags" not in document.metadata else {}
        facts, doc_id = {**document.metadata, **tags}, f"{start}{document.doc_id}"
        said = json.dumps([document.title, document.text, facts], sort_keys=True, default=str)
        digest = sealed(hashlib.sha256(said.encode()).hexdigest()[: 32 - SEAL], doc_id, tenant)
        found.append(Planted(doc_id, plain(document.title), plain(document.text), facts, digest, tenant))
    return found


def namespace(golden: GoldenSet, *, prefix: str = PREFIX) -> str:
    """Return what stands before the ids of a set's documents, ``golden:hotel:``; raises InputError for an odd prefix."""
    if not _SIGNS.fullmatch(prefix):
        raise InputError(f"the prefix {prefix!r:.40} is invalid; leave out blanks and colons, as in 'golden'")
    return f"{prefix}:{golden.id}:"


def id_pattern(golden: GoldenSet, *, prefix: str = PREFIX) -> str:
    """Return the pattern whose first group is the judged id of a planted document."""
    start = re.escape(namespace(golden, prefix=prefix)).replace(r"\-", "-")
    return f"^{start}(.+)$"


def _writable(connector: Any) -> Writable:
    if not isinstance(connector, Writable):
        cure = "name the connection of the system that holds the documents"
        raise InputError(f"{_name(connector)} cannot be written, it only answers; {cure}")
    check: Callable[[Sequence[Planted]], None] | None = getattr(connector, "check_planting", None)
    if check is not None:
        check([])
    return connector


def _changed(system: Writable, documents: Sequence[Planted]) -> list[Planted]:
    """Return the documents that are not there as they are; all of them where the system cannot tell."""
    ask: Callable[[Sequence[str]], Mapping[str, Any] | None] | None = getattr(system, "held", None)
    there = (ask([document.id for document in documents]) if ask is not None else None) or {}
    return [
        document
        for document in documents
        if document.id not in there
        or there[document.id].source_hash != document.source_hash
        or there[document.id].tenant not in (None, document.tenant)  # the write will say whose it is
    ]


def _write(system: Writable, documents: Sequence[Planted], progress: Callable[[int], None]) -> None:
    failed: dict[str, RingtrueError] = {}
    done = 0
    for start in range(0, len(documents), BATCH):
        part = documents[start : start + BATCH]
        try:
            refused = _write_some(system, part)
        except SearchFailed as problem:
            if not done:
                raise
            said = f"{problem} ({done} of {len(documents)} documents were written; run again to go on)"
            raise type(problem)(said) from problem
        if not done and len(refused) == len(part):  # it is not about the documents
            raise next(iter(refused.values()))
        failed |= refused
        done += len(part) - len(refused)
        progress(len(part))
    if failed:
        first = next(iter(failed))
        others = "".join(f", '{doc_id}'" for doc_id in list(failed)[1:5]) + (" …" if len(failed) > 5 else "")
        raise PartlyPlanted(
            f"{_name(system)} took {done} of {len(documents)} documents and refused '{first}' ({failed[first]!s:.200}){others}"
            "; fix them and run again; only these are written then",
            {doc_id: str(reason) for doc_id, reason in failed.items()},
        )


def _write_some(system: Writable, part: Sequence[Planted]) -> dict[str, RingtrueError]:
    """Write a few documents and return why which were refused: one that cannot be taken must not keep the others out."""
    try:
        system.write(part)
    except (BadAnswer, InputError) as problem:
        if len(part) == 1:
            return {part[0].id: problem}
        refused = [_write_some(system, [document]) for document in part]
        return {doc_id: reason for some in refused for doc_id, reason in some.items()}
    return {}


def _await(system: Writable, documents: Sequence[Planted], timeout: float) -> None:
    """Return when every document can be found; raises TimedOut."""
    end = time.monotonic() + timeout
    known: Callable[[Sequence[str]], set[str]] | None = getattr(system, "known", None)
    unknown: set[str] = set()
    unfound = [document for document in documents if document.whole]
    if known is not None:
        unknown, unfound = {one.id for one in documents}, unfound[:: max(1, len(unfound) // SAMPLE)][:SAMPLE]
    while True:
        if known is not None and unknown:
            unknown -= known(sorted(unknown))
        if not unknown:
            unfound = [document for document in unfound if not _finds(system, document)]
        if not unknown and not unfound:
            return
        if time.monotonic() >= end:
            missing = sorted(unknown) or [document.id for document in unfound]
            how = "known to it" if unknown else "found by their own words"
            raise TimedOut(
                f"{_name(system)}: {len(missing)} of {len(documents)} documents are not {how} {timeout:g} s after "
                f"writing, '{missing[0]}' for one; wait longer (--wait), or look at its indexing"
            )
        time.sleep(POLL)


@marked("test")
def _finds(system: Any, document: Planted) -> bool:
    """Whether a search by a document's title, or else by how its text begins, finds it."""
    for text in dict.fromkeys((document.title.strip(), document.whole[:300])):
        if text and any(hit.doc_id == document.id for hit in system.search(text, k=DEPTH)):
            return True
    return False


def _removed(
    system: Writable, documents: Sequence[Planted], tenant: str | None, progress: Callable[[int], None] = lambda count: None
) -> int:
    count = 0
    for start in range(0, len(documents), BATCH):
        part = documents[start : start + BATCH]
        count += len(system.remove([document.id for document in part], tenant=tenant))
        progress(len(part))
    return count


def _name(system: Any) -> str:
    return str(getattr(system, "name", type(system).__name__))
