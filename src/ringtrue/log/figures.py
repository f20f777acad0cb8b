"""The log in numbers: how much, how fast, how often nothing was found, what a process took on and what became of it.

The counts of a process lie in a page of memory that a file backs. A store to such a page costs no system call, and the page
outlives its process: after a ``kill -9`` the next start reads how many events had been accepted and how many of them were
acknowledged, and can say how many were lost.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import secrets
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ringtrue.log.linking import grouped
from ringtrue.log.redact import ERROR
from ringtrue.store import DEFAULT_PROJECT, LoggedQuery

if TYPE_CHECKING:
    from ringtrue.store import Store


try:
    import fcntl
except ImportError:  # Windows: no way to tell a dead process from a living one, so counts end with their process
    fcntl = None  # type: ignore[assignment]

LOST = "log.lost"
"""What the audit trail calls events that are not in the log."""
FIELDS = ("accepted", "written", "spooled", "dropped", "unspooled", "lost", "forgotten")
REASONS = (
    "no record", "another project", "no answer", "unreadable answer", "not redacted", "not storable", "not spoolable",
    "refused by the database",
)  # fmt: skip
"""Why an event is refused."""
SIZE = mmap.PAGESIZE
_PROJECT, _TEXT = 256, 1280
"""Where the page's texts begin: whose log it is, and the batch on its way into the database."""
ENDING, SPOOL, NEW = ".tally", ".spool", ".new"
SURELY_DEAD = 3600
"""Seconds after which the process of an unnamed tally must be dead: a living one names it within milliseconds."""


@dataclass(frozen=True)
class Losses:
    """Searches and events that are not in the log."""

    lost: int = 0
    """Accepted, and gone with the process that was killed, or damaged on the disk."""
    dropped: int = 0
    """Not accepted: the queue was full, or the log closed."""
    refused: int = 0
    """No row could be made of them, or they could not be redacted."""
    reasons: Mapping[str, int] = field(default_factory=dict)
    """The refused by their reason, as far as it is known."""

    @property
    def total(self) -> int:
        return self.lost + self.dropped + self.refused

    def since(self, earlier: Losses) -> Losses:
        """Return what was lost since an earlier count."""
        reasons = Counter(self.reasons) - Counter(earlier.reasons)
        return Losses(self.lost - earlier.lost, self.dropped - earlier.dropped, self.refused - earlier.refused, dict(reasons))


@dataclass(frozen=True, slots=True)
class Counts:
    """What became of the events of one process."""

    accepted: int = 0
    """Taken into the queue."""
    written: int = 0
    """Committed to the database."""
    spooled: int = 0
    """Committed to the spool file, while the database could not be written to."""
    dropped: int = 0
    """Never accepted: the queue was full, or the log closed."""
    unspooled: int = 0
    """Of the spooled, those that never reached the database: they are among the refused, the lost or the forgotten."""
    lost: int = 0
    """Acknowledged, and then damaged on the disk."""
    forgotten: int = 0
    """In the spool while their user was deleted, and so not brought in."""
    reasons: Mapping[str, int] = field(default_factory=dict)
    """The refused by their reason, one of ``REASONS``."""
    told: Losses = Losses()
    """What the store's audit trail tells of already."""

    @property
    def refused(self) -> int:
        """Could not be made into a row that a database holds, or be redacted."""
        return sum(self.reasons.values())

    @property
    def acknowledged(self) -> int:
        """Events that a crash can no longer take away."""
        return max(0, self.written + self.spooled - self.unspooled)

    @property
    def losses(self) -> Losses:
        """What is not in the log."""
        return Losses(self.lost, self.dropped, self.refused, self.reasons)

    @property
    def untold(self) -> Losses:
        """What the audit trail does not tell of yet."""
        return self.losses.since(self.told)

    @property
    def waiting(self) -> int:
        """Accepted, and nothing has become of them yet; what a crash now would lose."""
        return max(0, self.accepted - self.acknowledged - self.refused - self.lost - self.forgotten)


@dataclass(frozen=True, slots=True)
class Recovered:
    """What became of the events of a process that ended without closing its log."""

    run: str
    project: str
    replayed: int
    """From its spool into the database, now."""
    counts: Counts
    """As they are now that the log is settled: nothing waits."""


class Tally:
    """The counts of a log; with a folder also in a file that others can read while and after its process lives."""

    def __init__(self, folder: Path | None, *, project: str = "") -> None:
        self.path: Path | None = None
        self._values = memoryview(bytearray(_NUMBERS)).cast("Q")
        self._page: mmap.mmap | None = None
        self._file = -1
        if folder is not None and fcntl is not None:
            with contextlib.suppress(OSError):  # no room or no right: counts are then kept in memory only
                self._open(folder, project)

    def _open(self, folder: Path, project: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{os.getpid()}-{secrets.token_hex(6)}"
        new = folder / f"{name}{NEW}"
        file = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            # The page is written in full before it is mapped: a hole in a file would need room later, when there may be none.
            whose = json.dumps(project).encode()
            told = whose if len(whose) < _TEXT - _PROJECT else b'""'
            os.write(file, (bytes(_PROJECT) + told).ljust(SIZE, b"\0"))
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            page = mmap.mmap(file, SIZE)
            new.rename(new.with_suffix(ENDING))  # only now, locked, can others see it
        except OSError:
            os.close(file)
            new.unlink(missing_ok=True)
            raise
        self.path, self._file, self._page = new.with_suffix(ENDING), file, page
        self._values = memoryview(page)[:_NUMBERS].cast("Q")

    def add(self, name: str, count: int = 1) -> None:
        """Count events; ``name`` is one of ``FIELDS``, or one of ``REASONS`` for refusing them."""
        self._values[_PLACES[name]] += count

    def tell(self, losses: Losses) -> None:
        """Note what the audit trail tells of now."""
        for name, count in {"lost": losses.lost, "dropped": losses.dropped, **losses.reasons}.items():
            self._values[len(_PLACES) + _PLACES[name]] = count

    @property
    def counts(self) -> Counts:
        """The counts at this moment."""
        return _counts(self._values)

    def begin(self, batch: Mapping[str, Any]) -> None:
        """Note which batch goes into the database now, so that after a crash one row tells whether all of it arrived."""
        if self._page is not None:
            done = {name: self._values[_PLACES[name]] for name in ("written", "spooled")}
            text = json.dumps({**batch, **done}, default=str).encode()
            if len(text) < SIZE - _TEXT:
                self._page[_TEXT : _TEXT + len(text) + 1] = text + b"\0"

    def close(self, *, remove: bool = False) -> None:
        """Let go of the file; ``remove`` it if nothing is left to tell. A forked child leaves the file to its parent."""
        last = bytearray(self._values)
        self._values.release()
        self._values = memoryview(last).cast("Q")
        if self._page is not None and self.path is not None:
            self._page.close()
            self._page = None
            if remove:
                self.path.unlink(missing_ok=True)
            os.close(self._file)


_PLACES = {name: place for place, name in enumerate((*FIELDS, *REASONS))}
"""Each count's place in the page; behind all of them stand those that the audit trail tells of."""
_NUMBERS = 2 * 8 * len(_PLACES)
assert _NUMBERS <= _PROJECT


def _counts(values: memoryview[int]) -> Counts:
    now, told = (dict(zip(_PLACES, values[start : start + len(_PLACES)], strict=True)) for start in (0, len(_PLACES)))
    known = Losses(told["lost"], told["dropped"], sum(told[reason] for reason in REASONS), _reasons(told))
    return Counts(**{name: now[name] for name in FIELDS}, reasons=_reasons(now), told=known)


def _reasons(counted: Mapping[str, int]) -> dict[str, int]:
    return {reason: counted[reason] for reason in REASONS if counted[reason]}


def read(path: Path) -> tuple[str, Counts, dict[str, Any]]:
    """Return whose log a file counts, the counts, and the batch that was last on its way."""
    page = path.read_bytes()
    counts = _counts(memoryview(page)[:_NUMBERS].cast("Q"))
    project = _json(page[_PROJECT:_TEXT])
    batch = _json(page[_TEXT:])  # unreadable if it was killed while the batch was noted, so before that was sent
    return project if isinstance(project, str) else "", counts, batch if isinstance(batch, dict) else {}


def _json(text: bytes) -> Any:
    try:
        return json.loads(text.split(b"\0", 1)[0])
    except ValueError:
        return None


def living(folder: Path, *, project: str | None = None) -> tuple[list[Counts], list[Counts]]:
    """Return the counts of logs that write from this folder now, and of those that ended and are not settled yet.

    With ``project`` only of its logs.
    """
    alive: list[Counts] = []
    ended: list[Counts] = []
    for path in sorted(folder.glob(f"*{ENDING}")):
        with contextlib.suppress(OSError, ValueError, TypeError), of_the_dead(path) as dead:
            whose, counts, _ = read(path)
            if project in (None, whose):
                (ended if dead else alive).append(counts)
    return alive, ended


def sweep(folder: Path) -> None:
    """Remove files that killed processes created and never used: empty spools without a tally, and unnamed tallies."""
    for spool in folder.glob(f"*{SPOOL}"):
        with contextlib.suppress(OSError):  # the spool of a living process has a tally
            if not spool.stat().st_size and not spool.with_suffix(ENDING).exists():
                spool.unlink()
    for new in folder.glob(f"*{NEW}"):
        with contextlib.suppress(OSError):
            if time.time() - new.stat().st_mtime > SURELY_DEAD:
                new.unlink()


@contextlib.contextmanager
def of_the_dead(path: Path) -> Iterator[bool]:
    """Hold the tally of a process that is no more; yields False if it lives, or another process looks after it."""
    try:
        file = os.open(path, os.O_RDWR)
    except OSError:
        yield False
        return
    try:
        locked = False
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            locked = True
        yield locked and os.fstat(file).st_nlink > 0  # somebody may have settled and removed it since it was listed
    finally:
        os.close(file)


@dataclass(frozen=True)
class Figures:
    """What the log of a time says about one tool, or about all; None if there is nothing to say."""

    searches: int
    sessions: int
    errors: int
    """Searches that raised; they count in no other figure but this and ``searches``."""
    zero_result_rate: float | None
    degraded_rate: float | None
    latency_ms: Mapping[str, float]
    """p50, p95, p99."""
    proxy: float | None
    """Mean quality proxy: a health figure, not quality."""
    with_proxy: int
    """Searches that have one."""


@dataclass(frozen=True)
class LogFigures:
    """The whole, by tool, and the intents asked for most."""

    first: str | None
    last: str | None
    total: Figures
    tools: Mapping[str, Figures]
    intents: Mapping[str, int]


def log_figures(queries: Iterable[LoggedQuery]) -> LogFigures:
    """Return the log in numbers, with the ten most frequent intents."""
    everything = list(queries)
    by_tool = grouped((row.tool_name, row) for row in everything)
    times = [row.created_at for row in everything]
    asked = Counter(row.intent for row in everything if row.intent is not None)
    return LogFigures(
        min(times, default=None),
        max(times, default=None),
        _figures(everything),
        {tool: _figures(rows) for tool, rows in sorted(by_tool.items(), key=lambda item: (-len(item[1]), item[0]))},
        dict(sorted(asked.items(), key=lambda item: (-item[1], item[0]))[:10]),
    )


def _figures(rows: Sequence[LoggedQuery]) -> Figures:
    answered = [row for row in rows if not (row.fallback or "").startswith(ERROR)]
    counts = [row.result_count for row in answered if row.result_count is not None]
    latencies = sorted(row.total_latency_ms for row in answered if row.total_latency_ms is not None)
    proxies = [row.quality_proxy_score for row in answered if row.quality_proxy_score is not None]

    def mean(values: Sequence[float]) -> float | None:
        return sum(values) / len(values) if values else None

    # A percentile is the smallest value that so many percent do not exceed.
    places = {f"p{percent}": -(-len(latencies) * percent // 100) - 1 for percent in (50, 95, 99)}
    return Figures(
        searches=len(rows),
        sessions=len({row.session_id for row in rows} - {None}),
        errors=len(rows) - len(answered),
        zero_result_rate=mean([count == 0 for count in counts]),
        degraded_rate=mean([row.degraded for row in rows]),
        latency_ms={name: latencies[place] for name, place in places.items()} if latencies else {},
        proxy=mean(proxies),
        with_proxy=len(proxies),
    )


def losses(store: Store, *, project: str = DEFAULT_PROJECT, since: str | datetime | None = None) -> Losses:
    """Return what the audit trail says is missing from the log of a project, from a time on.

    Every entry tells of what came since the one before, so that they add up.
    """
    details = [entry.detail for entry in store.audit(project=project, what=LOST, since=since)]
    reasons: Counter[str] = Counter()
    for detail in details:
        reasons.update(detail.get("reasons", {}))
    lost, dropped, refused = (sum(int(detail.get(name, 0)) for detail in details) for name in ("lost", "dropped", "refused"))
    return Losses(lost, dropped, refused, dict(reasons.most_common()))
