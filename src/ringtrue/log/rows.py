"""Rows of the log on their way into the store: as lines of JSON, in the spool, and in batches.

A line is how the spool, the export and our own import write a query or an event. The spool is where events wait on disk while
the database cannot be written to: one file of lines a log, synced by the batch. Lines that cannot be read are counted as lost.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from ringtrue.answers import Actor, EventType, RecordReader, shown
from ringtrue.errors import InputError, nearest
from ringtrue.formats import Place
from ringtrue.ids import id_text, ids_as_text
from ringtrue.store import USER_DELETED, FeedbackEvent, LoggedQuery, timestamp, user_mark
from ringtrue.traffic import KINDS

if TYPE_CHECKING:
    from ringtrue.store import Store


Row = LoggedQuery | FeedbackEvent
_RECORDS: Mapping[str, type[Row]] = {"query": LoggedQuery, "feedback": FeedbackEvent}
_KNOWN = {kind: tuple(field.name for field in fields(record)) for kind, record in _RECORDS.items()}
_NUMBERS = ("total_latency_ms", "quality_proxy_score", "token_pressure_ratio", "boost_delta")
LARGEST = 2**31 - 1
"""The largest whole number that a column holds on either database."""
LONGEST_MS = 1e12
"""No search takes thirty years; what says so measured something else."""
_FLOAT = sys.float_info.max
_RANGES: Mapping[str, tuple[float, float, str]] = {
    "rank_in_results": (1, LARGEST, "a rank from 1 on, or -1 if it came from no search"),
    "extraction_count": (0, LARGEST, f"a whole number from 0 to {LARGEST:,}"),
    "total_latency_ms": (0, LONGEST_MS, "milliseconds from 0 on"),
    **dict.fromkeys(_NUMBERS[1:], (-_FLOAT, _FLOAT, "a number")),
}
_IDS = ("query_id", "item_id", "event_id")
_WORDS = {"event_type": get_args(EventType), "actor": get_args(Actor), "traffic": KINDS}
_FIGURES = ("stage_latency_ms", "fusion_weights")
_PLACE = Place("record")


def data_of(row: Row) -> dict[str, Any]:
    """Return a record as plain data, with ``record`` saying what it is."""
    kind = "query" if isinstance(row, LoggedQuery) else "feedback"
    data = {"record": kind, **{name: getattr(row, name) for name in _KNOWN[kind]}}
    if isinstance(row, LoggedQuery):
        data["stages"] = [asdict(stage) for stage in row.stages]
    return data


def line_of(row: Row) -> str:
    """Return a record as one line of JSON, without its end."""
    return json.dumps(data_of(row), ensure_ascii=False, default=_plain)


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):  # numpy's numbers and arrays
        return value.tolist()
    return sorted(map(str, value)) if isinstance(value, set | frozenset) else str(value)


def row_of(data: Mapping[str, Any], place: Place = _PLACE) -> Row:
    """Return the record that plain data holds; raises InputError naming place and field."""
    kind = data.get("record", "query" if "query" in data else "feedback")
    if kind not in _RECORDS:
        raise place.at("record").error(f"there is no record {kind!r:.40}", "write 'query' or 'feedback'")
    given = {name: value for name, value in data.items() if name not in ("record", "result_count")}
    for name, value in given.items():
        if name not in _KNOWN[kind]:
            raise place.at(name).error(f"a {kind} has no such field", f"did you mean {nearest(name, _KNOWN[kind])}?")
        if name in _IDS:
            given[name] = id_text(value)
        elif name in _WORDS and value not in _WORDS[name]:
            raise place.at(name).error(f"it is {shown(value)}", f"write one of {', '.join(_WORDS[name])}")
    given["result_ids"] = ids_as_text(given.get("result_ids", ()))
    if isinstance(channels := given.get("channel_contributions"), Mapping):
        given["channel_contributions"] = {name: ids_as_text(ids) for name, ids in channels.items()}

    def wrong(field: str, said: str, wanted: str) -> InputError:
        return place.at(field).error(f"it {said}", f"write {wanted}")

    at = given.get("created_at")
    try:
        given |= {"created_at": timestamp(at)} if isinstance(at, str) else {}
    except (InputError, OverflowError, ValueError):  # the last day of the calendar in another zone is none in UTC
        raise wrong("created_at", f"is {shown(at)}", "a time like 2026-03-01T12:00:00Z") from None
    return storable(RecordReader(wrong).read(_RECORDS[kind], given), place)


def storable(row: Row, place: Place = _PLACE) -> Row:
    """Return a record as both databases can hold it: a number that is none becomes unknown.

    Raises InputError for a number that they cannot hold, or that cannot be: a negative latency, a rank of 0. It looks at
    numbers only, since it is asked about every event; whatever else is wrong the database says.
    """
    if isinstance(row, FeedbackEvent):
        _check("rank_in_results", row.rank_in_results, place)
        return row
    changes: dict[str, Any] = {}
    for name in (*_NUMBERS, "extraction_count"):
        number = getattr(row, name)
        if number is None:
            continue
        if _is_known(number):
            _check(name, number, place)
        else:
            changes[name] = None
    if not all(map(_is_known, row.scores)):
        changes["scores"] = ()  # scores are kept if every result has one
    for name in _FIGURES:
        figures = getattr(row, name)
        if figures and not all(map(_is_known, figures.values())):
            changes[name] = {part: number for part, number in figures.items() if _is_known(number)}
    for stage in row.stages:
        if not all(_is_known(number) and number >= 0 for number in (stage.input, stage.output, stage.ms)):
            raise place.at("stages").error(f"one is {stage!r:.60}", "write counts and milliseconds from 0")
    return replace(row, **changes) if changes else row


def _check(name: str, number: Any, place: Place) -> None:
    low, high, wanted = _RANGES[name]
    if not (low <= number <= high or (name == "rank_in_results" and number == -1)):
        raise place.at(name).error(f"it is {shown(number)}", f"write {wanted}")


def _is_known(number: Any) -> bool:
    """False for what is not a finite number of JSON: nan and infinite. Raises TypeError for no number at all."""
    try:
        return math.isfinite(number)
    except OverflowError:  # a whole number beyond any float
        raise InputError("a number has hundreds of digits; write one of usual size") from None


def is_number(value: object) -> bool:
    """True for a finite number."""
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:  # a whole number beyond any float
        return False


@dataclass(frozen=True, slots=True)
class Peeked:
    """The next rows of a spool."""

    rows: list[Row]
    damaged: int
    """Lines among them that are not rows: cut by a disk, or of a version that knows more."""
    used: int
    """How many bytes all of it takes, for ``done``."""


class Spool:
    """Appends batches and gives them back in their order; a batch is in it whole or not at all."""

    def __init__(self, path: Path, *, limit: int) -> None:
        self.path, self.limit = path, limit
        self._size = path.stat().st_size if path.exists() else 0
        self._read = 0

    def __bool__(self) -> bool:
        return self._read < self._size

    @property
    def size(self) -> int:
        """Bytes that the file has."""
        return self._size

    def rows_from(self, place: int) -> int:
        """Return how many whole rows lie beyond so many bytes."""
        if place >= self._size:
            return 0
        with self.path.open("rb") as file:
            file.seek(place)
            return sum(line.endswith(b"\n") for line in file)

    def append(self, rows: Sequence[Row]) -> list[Row]:
        """Keep a batch; return the rows that cannot be kept, since they could not be read again.

        Raises OSError if the disk or the limit has no room, with nothing of the batch left behind.
        """
        lines, refused = [], []
        for row in rows:
            try:
                line = line_of(row).encode("utf-8", "replace") + b"\n"
                row_of(json.loads(line))
                lines.append(line)
            except Exception:  # whatever a value does when it is written
                refused.append(row)
        data = b"".join(lines)
        if self._size + len(data) > self.limit:
            raise OSError(f"{self.path}: the spool has reached its limit of {self.limit:,} bytes")
        if data:
            self._write(data)
        return refused

    def _write(self, data: bytes) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            try:
                view = memoryview(data)
                while view:
                    view = view[os.write(file, view) :]
                os.fsync(file)
            except OSError:
                with contextlib.suppress(OSError):
                    if self._size:
                        os.ftruncate(file, self._size)
                    else:
                        self.path.unlink()
                raise
            self._size += len(data)
        finally:
            os.close(file)

    def peek(self, count: int, *, cut: bool = False) -> Peeked:
        """Return the next rows, at most ``count`` lines.

        ``cut`` says that the last batch was cut off by a crash before it was acknowledged: a last line without an end then is
        no damage.
        """
        rows: list[Row] = []
        damaged = used = 0
        with self.path.open("rb") as file:
            file.seek(self._read)
            for line in file:
                if len(rows) + damaged == count:
                    break
                used += len(line)
                if line.endswith(b"\n"):
                    try:
                        rows.append(row_of(json.loads(line)))
                    except (ValueError, InputError, TypeError, AttributeError):
                        damaged += 1
                elif not cut:
                    damaged += 1
        return Peeked(rows, damaged, used)

    def done(self, used: int) -> None:
        """Go on after these bytes; a spool that has been read to its end is removed."""
        self._read += used
        if self._read >= self._size:
            self.path.unlink(missing_ok=True)  # also an empty file: its process was killed before the first write
            self._size = self._read = 0


Item = TypeVar("Item")


def write_apart(
    store: Store,
    items: Sequence[Item],
    write: Callable[[Sequence[Item]], None],
    *,
    away: tuple[type[Exception], ...],
    refuse: Callable[[Item, Exception], None],
) -> None:
    """Write all of a batch in one transaction. If the database refuses what is in one of them, it spoils only itself.

    Halves are tried until it is found, and ``refuse`` is called with it. Raises what is in ``away``, and OSError if the store
    takes no writes at all: the database is to blame then, and the items that were not written may be written later.
    """
    parts = [items] if items else []
    while parts:
        part = parts.pop()
        try:
            write(part)
        except away:
            raise
        except Exception as problem:
            middle = len(part) // 2
            if middle:
                parts += [part[middle:], part[:middle]]
                continue
            try:
                store.check_writable()  # then the row is to blame
            except Exception as trouble:
                raise OSError(str(trouble)) from trouble
            refuse(part[0], problem)


def without_deleted_users(store: Store, rows: Sequence[Row]) -> list[Row]:
    """Return the rows without what deleted users did before they were deleted: a row that comes late must not bring it back."""
    named = [row for row in rows if row.user_id is not None]
    users = {(row.project, str(row.user_id)) for row in named}
    trail = {
        (project, entry.subject): entry.at  # the newest come first, and the last deletion is the one that counts
        for project in {project for project, _ in users}
        for entry in reversed(store.audit(project=project, what=USER_DELETED, since=min(map(_time, named))))
    }
    deleted = {one: trail[mark] for one in users if (mark := (one[0], user_mark(one[1], one[0]))) in trail}
    if not deleted:
        return list(rows)

    def gone(row: Row) -> bool:
        return row.user_id is not None and _time(row) <= deleted.get((row.project, row.user_id), "")

    theirs = [row for row in rows if gone(row)]
    searches = {(row.project, row.query_id) for row in theirs if row.query_id is not None}
    visits = {(row.project, row.session_id) for row in theirs if row.session_id is not None}

    def follows(row: Row) -> bool:
        # As in the store: an event without a user is the user's if it belongs to the user's search or session.
        if isinstance(row, LoggedQuery) or row.user_id is not None:
            return False
        return (row.project, row.query_id) in searches or (row.project, row.session_id) in visits

    return [row for row in rows if not gone(row) and not follows(row)]


def _time(row: Row) -> str:
    return timestamp(row.created_at)
