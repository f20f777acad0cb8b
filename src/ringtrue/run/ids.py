"""Ids of the system under test → ids of the golden set: chunks and prefixes are mapped explicitly, never guessed (E-2)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from ringtrue.errors import InputError
from ringtrue.records import Hit

IdOf = Callable[[str], str]


def same(doc_id: str) -> str:
    """Return the id as it is."""
    return doc_id


def mapping(pattern: str | IdOf | None) -> IdOf:
    """Return how ids of the system become ids of the set: by the first group of a regular expression, or by a function.

    An id that the expression does not match stays as it is. Raises InputError for an expression without a group.

    >>> mapping(r"^golden:hotel:(.+)$")("golden:hotel:pool")
    'pool'
    """
    if pattern is None:
        return same
    if callable(pattern):
        return pattern
    option = f"--id-pattern (ids= in Python) {pattern!r}"
    try:
        compiled = re.compile(pattern)
    except re.error as problem:
        raise InputError(f"{option} is no regular expression ({problem}); write it like '^mem:(.+)$'") from None
    if compiled.groups < 1:
        raise InputError(f"{option} has no group; put the judged id into brackets, like '^mem:(.+)$'")

    def id_of(doc_id: str) -> str:
        match = compiled.match(doc_id)
        return doc_id if match is None or not match[1] else match[1]

    return id_of


def unmapping(pattern: str | IdOf | None) -> IdOf | None:
    r"""Return how ids of the set become ids of the system again; None if an expression cannot be turned round.

    Only expressions with fixed text around the judged id can: a chunk's number is not known from its document.

    >>> turned = unmapping(r"^golden:hotel:(.+)$")
    >>> turned("pool") if turned else None
    'golden:hotel:pool'
    """
    if pattern is None:
        return same
    if callable(pattern):
        return None
    fixed = r"(?:[^\\.^$*+?{}\[\]|()]|\\\W)*"
    simple = re.fullmatch(rf"\^?({fixed})\(\.[+*]\??\)({fixed})\$?", pattern)
    if simple is None:
        return None
    before, after = (re.sub(r"\\(.)", r"\1", part) for part in simple.groups())
    return lambda doc_id: f"{before}{doc_id}{after}"


def mapped(hits: Iterable[Hit], id_of: IdOf) -> tuple[Hit, ...]:
    """Return hits in the ids of the set; several passages of one document count once, at the best rank."""
    found: dict[str, Hit] = {}
    for hit in hits:
        doc_id = id_of(hit.doc_id)
        if doc_id not in found:
            found[doc_id] = hit if doc_id == hit.doc_id else replace(hit, doc_id=doc_id, chunk=hit.chunk or hit.doc_id)
    return tuple(found.values())
