"""Names for what is logged: ``eq_`` + time + hash, unique across threads, processes and machines, ordered within a process."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import threading
import time
from functools import lru_cache
from typing import NamedTuple


class Moment(NamedTuple):
    """When something was asked, in microseconds since 1970."""

    micros: int
    """One of a kind in this process, and later than all before."""
    clock: int
    """What the clock said, which may go back."""


class Namer:
    """Gives ids whose time never goes back, even where the clock does; so the ids of one process sort as they were given.

    The hash is keyed by a secret of this process: it tells nothing about the query, and two processes never agree by chance.
    """

    def __init__(self, prefix: str = "eq_") -> None:
        self.prefix = prefix
        self.renew()

    def renew(self) -> None:
        """Begin anew, as a forked child must: it would give its parent's ids again."""
        self._key = secrets.token_bytes(16)
        self._last = 0
        self._lock = threading.Lock()

    def tick(self, now: int | None = None) -> Moment:
        """Return a moment that no other has; ``now`` is the clock in nanoseconds since 1970, read unless given."""
        clock = (time.time_ns() if now is None else now) // 1000
        with self._lock:
            self._last = max(clock, self._last + 1)
            return Moment(self._last, clock)

    def name(self, moment: Moment, text: str) -> str:
        """Return the id of what was asked at a moment; later calls give the same."""
        said = b"%d %s" % (moment.micros, text.encode("utf-8", "surrogatepass"))
        return f"{self.prefix}{_digits(moment.micros)}_{hashlib.blake2b(said, key=self._key, digest_size=6).hexdigest()}"

    def __call__(self, text: str = "") -> str:
        """Return the next id."""
        return self.name(self.tick(), text)


@lru_cache(maxsize=16)
def _second(seconds: int) -> tuple[str, str]:
    """Return a second since 1970 as UTC digits that sort by time, and as ISO 8601; most events share theirs with others."""
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)).zfill(19)
    return re.sub(r"\D", "", moment), moment


def _digits(micros: int) -> str:
    seconds, rest = divmod(micros, 1_000_000)
    return f"{_second(seconds)[0]}{rest:06}"


def iso(micros: int) -> str:
    """Return microseconds since 1970 as ISO 8601 in UTC, in the store's form.

    >>> iso(1_767_528_000_000_000)
    '2026-01-04T12:00:00.000000Z'
    """
    seconds, rest = divmod(micros, 1_000_000)
    return f"{_second(seconds)[1]}.{rest:06}Z"


def imported_id(prefix: str, micros: int, *parts: str) -> str:
    """Return the id of something that another system logged: the same parts always give the same id.

    >>> imported_id("eq_", 1_767_528_000_000_000, "trace", "span")
    'eq_20260104120000000000_b66cbdcb92e1'
    """
    spoken = hashlib.blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
    return f"{prefix}{_digits(micros)}_{spoken}"


query_name = Namer("eq_")
event_name = Namer("ef_")


def _renew_all() -> None:
    query_name.renew()
    event_name.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
