"""The index of a larger folder, kept between prompts in ``<root>/.ringtrue/index.sqlite``.

It is never trusted beyond the files it was made from: their times of change, sizes and inodes are compared with every prompt,
and what differs is read again. The cache is made aside and moved into place, so nobody sees it half made, and it is
never changed or locked afterwards; a cache that is damaged or of another version is made anew.
"""

from __future__ import annotations

import os
import time

from .files import OWN, load, own_folder, read_one, scan, stamps_of
from .index import Index, add_memory, connect, tables
from .memory import MemoryFault
from .settings import FTS5

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence
    from typing import Any

    from .files import Listing
    from .index import MemoryHit, Row
    from .memory import Memory
    from .settings import Settings

VERSION = 5
FILE = "index.sqlite"
PAYS_FROM = 50
"""Files from which it pays: at 50 building takes 6 ms, the cache 1.4 ms, and taking one changed file into it 4 ms."""
FINE, COARSE = 50_000_000, 2_000_000_000
"""Nanoseconds in which a second change may leave the time of change as it was: a few ticks, or if only seconds are kept."""
_CALLED = """
    SELECT phrase.words, entry.priority, entry.id, entry.place FROM phrase JOIN entry ON entry.place = phrase.place
    WHERE entry.until >= ? AND phrase.first IN ({})
"""
_AT_ONCE = 500
"""Values in one question to SQLite, which takes 999 at least."""


class _State:
    """A usable cache: the database, the files it was made from, and its stamp."""

    __slots__ = ("db", "doubles", "listed", "stamp")

    def __init__(self, db: sqlite3.Connection, listed: str, stamp: str, doubles: bool) -> None:
        self.db, self.listed, self.stamp, self.doubles = db, listed, stamp, doubles


class CachedIndex(Index):
    """An index in a file; a memory is read when it is found."""

    def __init__(self, state: _State, root: str, settings: Settings, path: str, listing: Listing) -> None:
        self.settings, self.stamp, self.listing, self._root, self._path = settings, state.stamp, listing, root, path
        self._db, self._listed = state.db, f"\0{state.listed}"
        self._loaded: Index | None = None
        self._damaged = False

    @property
    def loaded(self) -> Index:
        """The same index in memory, for what the file cannot answer."""
        if self._loaded is None:
            self._loaded = Index(load(self._root, self.settings).memories, self.settings)
        return self._loaded

    @property
    def memories(self) -> Sequence[Memory]:
        return self.loaded.memories

    def close(self) -> None:
        super().close()
        if self._loaded is not None:
            self._loaded.close()

    def __len__(self) -> int:
        assert self._db is not None
        return int(self._db.execute("SELECT count(*) FROM entry WHERE active").fetchone()[0])

    def search(self, text: str, *, strategy: str | None = None, **rest: Any) -> list[MemoryHit]:
        import sqlite3

        chosen = strategy or self.settings.word_strategy
        if chosen == FTS5 and not self._damaged:
            try:
                return super().search(text, strategy=chosen, **rest)
            except sqlite3.DatabaseError:  # damage that the opening did not show
                self._damaged = True
                _drop(self._path)
        return self.loaded.search(text, strategy=chosen, **rest)

    def _called(self, said: str, now: float) -> list[Row]:
        assert self._db is not None
        rows: dict[str, Row] = {}
        words = list(dict.fromkeys(said.split()))
        if self._db.execute("SELECT 1 FROM phrase LIMIT 1").fetchone() is None:
            words = []
        for start in range(0, len(words), _AT_ONCE):
            some = words[start : start + _AT_ONCE]
            for phrase, priority, name, place in self._db.execute(_CALLED.format(",".join("?" * len(some))), (now, *some)):
                if f" {phrase} " in said:
                    rows[name] = (0.0, priority, name, place)
        return list(rows.values())

    def memory(self, place: int) -> Memory | None:
        assert self._db is not None
        (stored,) = self._db.execute("SELECT name FROM entry WHERE place = ?", (place,)).fetchone()
        name = os.fsdecode(stored)
        if f"\0{name}\0" not in self._listed:  # a cache that somebody made could name any file of the machine
            return None
        try:
            memory = read_one(os.path.join(self._root, name))
        except MemoryFault:  # it was deleted a moment ago
            return None
        return memory if memory.status == "active" else None


def open_index(root: str, settings: Settings, *, seconds: float | None = None) -> Index:
    """Return the index of a folder as its files are now, from the cache in the folder if that is faster.

    With ``seconds``, making the cache of a large folder stops after that long and raises MemoryFault; what was done is kept,
    and the next call goes on from there. Nothing else is raised: without a usable cache the index is made in memory.
    """
    listing = scan(root, settings)
    if len(listing.lines) < PAYS_FROM:
        return _in_memory(root, settings, listing)
    path, key = os.path.join(root, OWN, FILE), _key(root, settings)
    state = _open(path, key)
    if state is None or not _same(state.listed, listing):
        try:
            _make(path, state, key, root, settings, listing, seconds)
        except (OSError, _Unusable):
            return _in_memory(root, settings, listing)
        finally:
            if state is not None:
                state.db.close()
        state = _open(path, key)
    return _in_memory(root, settings, listing) if state is None else CachedIndex(state, root, settings, path, listing)


def _in_memory(root: str, settings: Settings, listing: Listing) -> Index:
    return Index(load(root, settings).memories, settings, stamp=_stamp(listing), listing=listing)


def _same(listed: str, listing: Listing) -> bool:
    # The order in which a folder names its files seldom changes; sorting them would cost more than comparing.
    return listed == "\0".join(listing.lines) or stamps_of(listed) == listing.stamps


def _key(root: str, settings: Settings) -> str:
    """Return all that decides what the cache contains, apart from the files.

    The folder's inode is part of it: a cache that came with a copy of the project was made by somebody else, or elsewhere.
    """
    number = os.stat(root).st_ino
    return f"{VERSION} {number} {settings.body_max_chars} {sorted(settings.retention_days.items())} {settings.roots}"


def _stamp(listing: Listing) -> str:
    from zlib import crc32

    text = "\0".join(sorted(listing.lines))
    return f"{len(listing.lines)}-{crc32(text.encode('utf-8', 'surrogateescape')):08x}"


def _open(path: str, key: str) -> _State | None:
    """Return a cache that was made for these settings and is complete, or None."""
    import sqlite3

    db = None
    try:
        state = os.lstat(path)
        if state.st_mode & 0o170000 != 0o100000:  # opening a pipe would wait for a writer
            return None
        # Nobody changes it once it is there, so no lock has to be asked for.
        db = connect(f"file:{_quoted(path)}?mode=ro&immutable=1")
        if db is None:
            return None
        db.execute("PRAGMA trusted_schema = OFF")
        if db.execute("SELECT 1 FROM sqlite_master WHERE type IN ('view', 'trigger')").fetchone():
            raise TypeError("we make neither")
        found = db.execute("SELECT key, listed, stamp, doubles FROM made").fetchone()
        pages = db.execute("PRAGMA page_count").fetchone()[0] * db.execute("PRAGMA page_size").fetchone()[0]
        if found[0] == key and pages == state.st_size:
            return _State(db, os.fsdecode(found[1]), found[2], bool(found[3]))
    except (OSError, sqlite3.Error, TypeError):
        pass
    if db is not None:
        db.close()
    return None


def _quoted(path: str) -> str:
    return path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def _drop(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass


class _Unusable(Exception):
    """This SQLite cannot hold the cache."""


def _make(
    path: str, state: _State | None, key: str, root: str, settings: Settings, listing: Listing, seconds: float | None
) -> None:
    """Make the cache from the one before, reading only what has changed, and move it into place.

    If two files have one id, the cache is made afresh: which of them counts is decided by reading all in their order.
    """
    import sqlite3

    own_folder(root)
    aside = f"{path}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
    try:
        try:
            if state is None or state.doubles:
                raise sqlite3.IntegrityError
            with open(path, "rb") as old, open(aside, "xb") as new:
                new.write(old.read())
            done = _write(aside, key, root, settings, listing, seconds, afresh=False)
        except sqlite3.DatabaseError:
            _drop(aside)
            done = _write(aside, key, root, settings, listing, seconds, afresh=True)
        os.replace(aside, path)
    except sqlite3.Error as error:
        raise _Unusable from error
    finally:
        _drop(aside)
    total = len(listing.lines)
    if done < total:
        raise MemoryFault(f"the index of {total} memories is being made, {done} are done; search again to go on")


def _write(
    aside: str, key: str, root: str, settings: Settings, listing: Listing, seconds: float | None, *, afresh: bool
) -> int:
    """Bring a cache to the state of the listing, as far as the time allows; return how many files it now stands for."""
    began, clock = time.monotonic(), time.time_ns()
    db = connect(f"file:{_quoted(aside)}")
    if db is None:
        raise _Unusable
    try:
        db.execute("PRAGMA journal_mode = OFF")
        db.execute("PRAGMA synchronous = OFF")
        db.execute("BEGIN")
        if afresh:
            db.execute("CREATE TABLE made(key TEXT, listed BLOB, stamp TEXT, doubles INTEGER)")
            if not tables(db):
                raise _Unusable
            before: dict[str, str] = {}
        else:
            before = stamps_of(os.fsdecode(db.execute("SELECT listed FROM made").fetchone()[0]))
        now = listing.stamps
        for name in [name for name, stamp in before.items() if now.get(name) != stamp]:
            _forget(db, name)
            del before[name]
        doubles = 0
        place = db.execute("SELECT coalesce(max(place), 0) FROM entry").fetchone()[0]
        # Files of the root come before those of further roots, as ``load`` reads them.
        for name in sorted(now.keys() - before.keys(), key=lambda name: (os.path.isabs(name), name)):
            if seconds is not None and time.monotonic() - began > seconds:
                break
            place += 1
            doubles += not _add(db, place, name, root, settings, afresh)
            before[name] = now[name]
        listed = [
            f"{name}\0{_lasting(before[name], clock)}" for line in listing.lines if (name := line.partition("\0")[0]) in before
        ]
        db.execute("DELETE FROM made")
        db.execute("INSERT INTO made VALUES (?, ?, ?, ?)", (key, os.fsencode("\0".join(listed)), _stamp(listing), doubles))
        db.execute("COMMIT")
    finally:
        db.close()
    with open(aside, "rb+") as file:
        os.fsync(file.fileno())
    return len(before)


def _lasting(stamp: str, clock: int) -> str:
    """Return what to remember of a file: nothing if it changed so recently that a further change might not show."""
    changed = max(map(int, stamp.split(" ")[:2]))
    return stamp if clock - changed > (FINE if changed % 1_000_000_000 else COARSE) else "changing"


def _forget(db: sqlite3.Connection, name: str) -> None:
    found = db.execute("SELECT place FROM entry WHERE name = ?", (os.fsencode(name),)).fetchone()
    if found:
        db.execute("DELETE FROM memory WHERE rowid = ?", found)
        db.execute("DELETE FROM entry WHERE place = ?", found)
        db.execute("DELETE FROM phrase WHERE place = ?", found)


def _add(db: sqlite3.Connection, place: int, name: str, root: str, settings: Settings, afresh: bool) -> bool:
    """Add the memory in a file, if there is one; False if another file has its id. Raises IntegrityError unless ``afresh``."""
    import sqlite3

    try:
        add_memory(db, read_one(os.path.join(root, name)), settings, place, os.fsencode(name))
    except MemoryFault:
        return True
    except sqlite3.IntegrityError:
        if not afresh:
            raise
        return False
    return True
