"""The index of a larger folder, kept between prompts in ``<root>/.ringtrue/index.sqlite``.

It is never trusted beyond the files it was made from: the times of change, size and inode of every one are asked with every
prompt, and what differs is read again. The cache is made aside and moved into place, so nobody sees it half made, and it is
never changed or locked afterwards; one that is damaged or of another version is made anew.
"""

from __future__ import annotations

import os
import time

from .files import OWN, load, own_folder, read_one, scan, stamps_of
from .index import ADD_ENTRY, ADD_PHRASE, ADD_TEXT, Index, build, connect, entry, phrases, tables, texts
from .memory import MemoryFault

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

    from .files import Listing
    from .index import Found
    from .memory import Memory
    from .settings import Settings

VERSION = 4
FILE = "index.sqlite"
PAYS_FROM = 50
"""Files from which it pays: at 50 building takes 6 ms, the cache 1.4 ms, and taking one changed file into it 4 ms."""
FINE, COARSE = 50_000_000, 2_000_000_000
"""Nanoseconds in which a second change may leave the time of change as it was: a few ticks, or where only seconds are kept."""


class _State:
    """A cache that can be used: the database, the files it was made from, and what it was stamped with."""

    __slots__ = ("db", "doubles", "listed", "stamp")

    def __init__(self, db: sqlite3.Connection, listed: str, stamp: str, doubles: bool) -> None:
        self.db, self.listed, self.stamp, self.doubles = db, listed, stamp, doubles


class Cached(Index):
    """An index in a file; a memory is read when it is found."""

    __slots__ = ("_listed", "_path", "_root")

    def __init__(self, state: _State, root: str, settings: Settings, path: str, listing: Listing) -> None:
        self.settings, self.stamp, self.listing, self._root, self._path = settings, state.stamp, listing, root, path
        self._db, self._memories, self._entries, self._listed = state.db, None, None, f"\0{state.listed}"

    def __len__(self) -> int:
        if self._db is None or not self._path:
            return len(self.memories)
        return int(self._db.execute("SELECT count(*) FROM entry WHERE active").fetchone()[0])

    @property
    def memories(self) -> Sequence[Memory]:
        if self._memories is None:
            loaded = load(self._root, self.settings).memories
            self._memories = [memory for memory in loaded if memory.status == "active"]
        return self._memories

    def search_words(
        self,
        words: Sequence[str],
        *,
        k: int,
        now: float,
        strategy: str | None = None,
        session: Sequence[str] = (),
        said: str = "",
    ) -> list[Found]:
        import sqlite3

        try:
            return super().search_words(words, k=k, now=now, strategy=strategy, session=session, said=said)
        except sqlite3.DatabaseError:  # damage that the opening did not show
            if not self._path:
                raise
            self.close()
            _drop(self._path)
            self._db, self._path = build(self.memories, self.settings), ""
            return super().search_words(words, k=k, now=now, strategy=strategy, session=session, said=said)

    def _memory(self, place: int) -> Memory | None:
        if not self._path:
            return self.memories[place - 1]
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


def open_cached(root: str, settings: Settings, seconds: float | None = None) -> Index:
    """Return the index of a folder; see ``open_index``."""
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
    return _in_memory(root, settings, listing) if state is None else Cached(state, root, settings, path, listing)


def _in_memory(root: str, settings: Settings, listing: Listing) -> Index:
    return Index(load(root, settings).memories, settings, stamp=_stamp(listing), listing=listing)


def _same(listed: str, listing: Listing) -> bool:
    # The order in which a folder names its files seldom changes; sorting them would cost more than comparing.
    return listed == "\0".join(listing.lines) or stamps_of(listed) == listing.stamps


def _key(root: str, settings: Settings) -> str:
    """Return all that decides what the cache holds, apart from the files.

    The folder's own number is part of it: one that came with a copy of the project was made by somebody else, or elsewhere.
    """
    number = os.stat(root).st_ino
    return f"{VERSION} {number} {settings.body_max_chars} {sorted(settings.retention_days.items())} {settings.roots}"


def _stamp(listing: Listing) -> str:
    from zlib import crc32

    text = "\0".join(sorted(listing.lines))
    return f"{len(listing.lines)}-{crc32(text.encode('utf-8', 'surrogateescape')):08x}"


def _open(path: str, key: str) -> _State | None:
    """Return a cache that was made for these settings and is whole, or None."""
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


class _Doubled(Exception):
    """Two files have one id; which of them holds is decided by reading all of them in their order."""


def _make(
    path: str, state: _State | None, key: str, root: str, settings: Settings, listing: Listing, seconds: float | None
) -> None:
    """Make the cache from the one before, reading only what has changed, and move it into place."""
    import sqlite3

    own_folder(root)
    aside = f"{path}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
    try:
        try:
            if state is None or state.doubles:
                raise _Doubled
            with open(path, "rb") as old, open(aside, "xb") as new:
                new.write(old.read())
            done = _write(aside, key, root, settings, listing, seconds, afresh=False)
        except (_Doubled, sqlite3.DatabaseError):
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
    """Return what to remember of a file: nothing where it changed so lately that a further change might not show."""
    changed = max(map(int, stamp.split(" ")[:2]))
    return stamp if clock - changed > (FINE if changed % 1_000_000_000 else COARSE) else "changing"


def _forget(db: sqlite3.Connection, name: str) -> None:
    found = db.execute("SELECT place FROM entry WHERE name = ?", (os.fsencode(name),)).fetchone()
    if found:
        db.execute("DELETE FROM memory WHERE rowid = ?", found)
        db.execute("DELETE FROM entry WHERE place = ?", found)
        db.execute("DELETE FROM phrase WHERE place = ?", found)


def _add(db: sqlite3.Connection, place: int, name: str, root: str, settings: Settings, afresh: bool) -> bool:
    """Add the memory in a file, where it holds one; False where another file has its id."""
    import sqlite3

    try:
        memory = read_one(os.path.join(root, name))
    except MemoryFault:
        return True
    try:
        db.execute(ADD_ENTRY, entry(memory, settings, place, os.fsencode(name)))
    except sqlite3.IntegrityError:
        if afresh:
            return False
        raise _Doubled from None
    if memory.status == "active":
        db.execute(ADD_TEXT, (place, *texts(memory, settings)))
        if memory.trigger_phrases:
            db.executemany(ADD_PHRASE, phrases(memory, place))
    return True
