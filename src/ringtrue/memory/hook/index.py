"""Memories → the few that answer a text: FTS5's BM25 over title, tags and body, or points for shared words (``title_tags``).

Only active memories are ever searched: a retired memory cannot be found, however long the list. How long a category is shown is
checked with every search, since it depends on the hour and not on the files.

Trigger phrases are searched with the tags. A memory that has a trigger phrase in the text, word for word, comes before all that
only share words with it.
"""

from __future__ import annotations

from .memory import PRIORITY, MemoryFault
from .settings import FTS5
from .vectors import text_key
from .words import expression, joined, phrases_of, query_words, spoken, words_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence
    from typing import Any

    from .files import Listing
    from .memory import Memory
    from .settings import Settings

    Row = tuple[float, int, str, int]
    """Score, priority of the category, id, and the memory's place in the index, from 1."""

TITLE_TAGS = "title_tags"
RELATED_GAIN = 2.0
"""What a memory about a file that was just used gains, if that is switched on."""
RELATED_LAST = 5
"""Tool uses that it looks back on."""
FOR_EVER = 1e18
DAY = 86_400.0
SPARE = 8
"""Rows fetched beyond ``k``: a file may have gone since the index was made."""
_ENTRY = """
    CREATE TABLE entry(
        place INTEGER PRIMARY KEY, id TEXT UNIQUE, priority INTEGER, until REAL, active INTEGER, name BLOB UNIQUE, text TEXT
    )
"""
_PHRASE = "CREATE TABLE phrase(first TEXT, words TEXT, place INTEGER, PRIMARY KEY (first, words, place)) WITHOUT ROWID"
_FIND = """
    SELECT -bm25(memory, {}, {}, {}) AS score, entry.priority, entry.id, entry.place
    FROM memory JOIN entry ON entry.place = memory.rowid
    WHERE memory MATCH ? AND entry.until >= ? ORDER BY score DESC, entry.priority, entry.id LIMIT ?
"""


class MemoryHit:
    """A memory that was found: its score, the higher the better, its rank from 1, and what each stage of the hybrid said."""

    __slots__ = ("memory", "rank", "score", "stages")

    def __init__(self, memory: Memory, score: float, rank: int, stages: Sequence[Any] = ()) -> None:
        self.memory, self.score, self.rank, self.stages = memory, score, rank, tuple(stages)

    def __repr__(self) -> str:
        return f"MemoryHit({self.rank}: {self.memory.id}, {self.score:.3f})"


class Index:
    """The active memories of a store, ready to be searched.

    >>> from .memory import Memory
    >>> from .settings import Settings
    >>> memory = Memory(id="jwt", category="decision", title="Sessions are JWT", body="authentication without state")
    >>> [found.memory.id for found in Index([memory], Settings()).search("how does auth work", k=3, now=0.0)]
    ['jwt']
    """

    def __init__(
        self, memories: Iterable[Memory], settings: Settings, *, stamp: str = "", listing: Listing | None = None
    ) -> None:
        """``stamp`` is a text that changes when the files do, ``listing`` the files, for what others keep about a store."""
        self.settings, self.stamp, self.listing = settings, stamp, listing
        active = (memory for memory in memories if memory.status == "active")
        self._memories = sorted(active, key=lambda memory: memory.id)
        self._phrases = [(f" {phrase} ", place) for place, one in enumerate(self._memories, 1) for phrase in phrases_of(one)]
        self._entries: list[Entry] | None = None
        self._db = build(self._memories, settings)

    def close(self) -> None:
        """Let go of the database; no further searches are possible."""
        if self._db is not None:
            self._db.close()

    def __del__(self) -> None:
        if getattr(self, "_db", None) is not None:
            self.close()

    def __len__(self) -> int:
        return len(self._memories)

    @property
    def memories(self) -> Sequence[Memory]:
        """The active memories in the order of their ids, those past their retention too."""
        return self._memories

    def search(
        self,
        text: str,
        *,
        k: int,
        now: float,
        strategy: str | None = None,
        session: Sequence[str] = (),
        limit: int | None = None,
        said: str | None = None,
    ) -> list[MemoryHit]:
        """Return at most ``k`` memories that share a word with a text, the best first; equal ones by category, then by id.

        ``now``, in seconds since 1970, decides what is past its retention. ``session`` is the paths of the last tool uses,
        the latest last, and counts if ``related_files_boost`` is on. ``limit`` is how many words of the text are used,
        else that of the settings; trigger phrases are looked up in ``said``, the ``spoken`` words of the text unless given.
        Raises MemoryFault for a strategy that needs more than the standard library.
        """
        chosen = strategy or self.settings.word_strategy
        if chosen == FTS5 and self._db is None:
            chosen = TITLE_TAGS
        if chosen not in (FTS5, TITLE_TAGS):
            raise MemoryFault(f"the strategy '{chosen}' is not one of this index; write {FTS5} or {TITLE_TAGS}")
        words = query_words(text, self.settings.query_max_tokens if limit is None else limit)
        if not words or k < 1:
            return []
        boosted = self.settings.related_files_boost and bool(session)
        calling = self._called(spoken(text) if said is None else said, now)
        most = -1 if boosted or calling else k + SPARE
        rows = self._by_bm25(words, now, most) if chosen == FTS5 else self._by_points(words, now)
        if boosted:
            rows = sorted((self._raised(row, session[-RELATED_LAST:]) for row in rows), key=_best_first)
        found: list[MemoryHit] = []
        for score, _, _, place in _called_first(rows, calling):
            memory = self.memory(place)
            if memory is not None:
                found.append(MemoryHit(memory, score, len(found) + 1))
                if len(found) == k:
                    break
        return found

    def on_demand(
        self, text: str, *, k: int, now: float, strategy: str | None = None, session: Sequence[str] = ()
    ) -> list[MemoryHit]:
        """Return what somebody who asks is shown: as many words of the text are used as ``search`` of the settings says.

        Scores under its ``min_score_abs`` are left out if the best one reaches it: in a store of one or two memories BM25
        is about 0 for a perfect match.
        """
        rule = self.settings.search
        found = self.search(text, k=k, now=now, strategy=strategy, session=session, limit=rule.query_max_tokens)
        if found and found[0].score >= rule.min_score_abs:
            return [one for one in found if one.score >= rule.min_score_abs]
        return found

    def _by_bm25(self, words: Sequence[str], now: float, most: int) -> list[Row]:
        assert self._db is not None
        sql = _FIND.format(*map(float, self.settings.column_weights))
        return self._db.execute(sql, (expression(words), now, most)).fetchall()

    def _by_points(self, words: Sequence[str], now: float) -> list[Row]:
        if self._entries is None:
            self._entries = [Entry(memory, self.settings.body_max_chars) for memory in self._memories]
        scores = ((place, points(words, entry)) for place, entry in enumerate(self._entries, 1))
        rows = (self._row(place, score) for place, score in scores if score and self._is_shown(place, now))
        return sorted(rows, key=_best_first)

    def _called(self, said: str, now: float) -> list[Row]:
        """Return the memories that a phrase among spoken words calls, each once, with no score of their own."""
        places = dict.fromkeys(place for phrase, place in self._phrases if phrase in said and self._is_shown(place, now))
        return [self._row(place, 0.0) for place in places]

    def _row(self, place: int, score: float) -> Row:
        memory = self._memories[place - 1]
        return float(score), PRIORITY[memory.category], memory.id, place

    def _is_shown(self, place: int, now: float) -> bool:
        return now <= shown_until(self._memories[place - 1], self.settings)

    def _raised(self, row: Row, session: Sequence[str]) -> Row:
        memory = self.memory(row[3])
        return (row[0] + (RELATED_GAIN if memory is not None and about(memory, session) else 0.0), *row[1:])

    def memory(self, place: int) -> Memory | None:
        """Return the memory at a place; None if its file has gone since the index was made."""
        return self._memories[place - 1]

    def entries(self) -> list[tuple[int, str, str]]:
        """Return the place, the id and the text key of each active memory; nothing without SQLite."""
        if self._db is None:
            return []
        return self._db.execute("SELECT place, id, text FROM entry WHERE active ORDER BY place").fetchall()

    def shown(self, places: Sequence[int], now: float) -> list[Memory]:
        """Return the memories at these places, without those past their retention."""
        if self._db is None:
            return []
        chosen = ",".join("?" * len(places))
        rows = self._db.execute(f"SELECT place FROM entry WHERE until >= ? AND place IN ({chosen})", (now, *places)).fetchall()
        current = {place for (place,) in rows}
        return [found for place in places if place in current and (found := self.memory(place)) is not None]


def _called_first(rows: list[Row], calling: list[Row]) -> list[Row]:
    """Lift the memories that are called above the others, which keep their scores; if none has one, a score is 1."""
    if not calling:
        return rows
    gain = rows[0][0] if rows and rows[0][0] > 0 else 1.0
    named = {row[2]: row for row in calling}
    named.update((row[2], row) for row in rows if row[2] in named)
    lifted = sorted(((row[0] + gain, *row[1:]) for row in named.values()), key=_best_first)
    return [*lifted, *(row for row in rows if row[2] not in named)]


def _best_first(row: Row) -> tuple[float, int, str]:
    return -row[0], row[1], row[2]


def shown_until(memory: Memory, settings: Settings) -> float:
    """Return the last second, since 1970, at which a memory is shown.

    A memory without a readable date is shown for ever: nobody knows that it is old, and doctor reports the date.
    """
    days = settings.retention_days.get(memory.category, 0)
    if not days or not memory.updated_at:
        return FOR_EVER
    from datetime import UTC, datetime

    try:
        when = datetime.fromisoformat(memory.updated_at)
    except ValueError:
        return FOR_EVER
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() + days * DAY


def about(memory: Memory, paths: Iterable[str]) -> bool:
    """Return whether one of the paths is a related file of a memory, or is inside a related folder."""
    whole = [f"/{path}".replace("\\", "/") for path in paths]
    related = [name.replace("\\", "/").strip("/") for name in memory.related_files]
    return any(path.endswith(f"/{name}") or f"/{name}/" in path for name in related if name for path in whole)


def add_memory(db: sqlite3.Connection, memory: Memory, settings: Settings, place: int, name: bytes | None = None) -> None:
    """Add the rows of a memory: its text, what orders and filters it, and the phrases that call it."""
    id_ = memory.id.encode("utf-8", "backslashreplace").decode()
    active = memory.status == "active"
    key = text_key(memory, settings.body_max_chars)
    row = place, id_, PRIORITY[memory.category], shown_until(memory, settings), active, name, key
    db.execute("INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    if not active:
        return
    fields = memory.title, " ".join((*memory.tags, *memory.trigger_phrases)), memory.body[: settings.body_max_chars]
    texts = [_storable(" ".join((field, *joined(field)))) for field in fields]
    db.execute("INSERT INTO memory(rowid, title, tags, body) VALUES (?, ?, ?, ?)", (place, *texts))
    for phrase in map(_storable, phrases_of(memory)):
        db.execute("INSERT OR IGNORE INTO phrase VALUES (?, ?, ?)", (phrase.partition(" ")[0], phrase, place))


def _storable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()  # SQLite takes no lone surrogate


def connect(path: str) -> sqlite3.Connection | None:
    """Return a database, or None if this Python has no SQLite at all."""
    try:
        import sqlite3
    except ImportError:
        return None
    return sqlite3.connect(path, uri=True, isolation_level=None, check_same_thread=False)


def tables(db: sqlite3.Connection, more: str = "") -> bool:
    """Make the tables; False if this SQLite has no FTS5."""
    import sqlite3

    try:
        db.execute(f"CREATE VIRTUAL TABLE memory USING fts5(title, tags, body, tokenize='porter unicode61'{more})")
    except sqlite3.OperationalError:
        return False
    db.execute(_ENTRY)
    db.execute(_PHRASE)
    return True


def build(memories: Sequence[Memory], settings: Settings) -> sqlite3.Connection | None:
    """Return a database in memory with these memories, their places counted from 1; None if there is no FTS5."""
    db = connect(":memory:")
    if db is None:
        return None
    db.execute("BEGIN")
    if not tables(db, ", content=''"):  # the memories are here already, no need to keep their text twice
        db.close()
        return None
    for place, memory in enumerate(memories, 1):
        add_memory(db, memory, settings, place)
    db.execute("COMMIT")
    return db


IN_TITLE, IN_TAGS, BEGINNING, IN_BODY = 2, 3, 1, 1
MOST_FROM_BODY = 3
BEGINNING_FROM = 4
"""Letters from which a word counts for one that begins with it."""


class Entry:
    """The words of one memory, taken apart once."""

    __slots__ = ("body", "tags", "title")

    def __init__(self, memory: Memory, body_max_chars: int) -> None:
        self.title = words_of(memory.title)
        self.tags = {tag.lower() for tag in memory.tags} | words_of(" ".join(memory.tags))
        self.body = words_of(memory.body[:body_max_chars])


def words_of(text: str) -> set[str]:
    """Return the words of a text, the parts of compounds too."""
    whole = words_in(text)
    return {*whole, *(part for word in whole for part in word.replace("-", "_").replace(".", "_").split("_") if len(part) > 1)}


def points(words: Iterable[str], entry: Entry) -> int:
    """Return 2 for a word in the title and 3 in the tags, 1 where it only begins one there, and 1 in the body, 3 at most.

    >>> from .memory import Memory
    >>> memory = Memory(id="x", category="decision", title="Token rotation", body="keys live an hour", tags=("auth",))
    >>> points(["token", "auth", "rota", "hour"], Entry(memory, 2000))
    7
    """
    score, body = 0, 0
    for word in words:
        gained = IN_TITLE * (word in entry.title) + IN_TAGS * (word in entry.tags)
        if not gained and len(word) >= BEGINNING_FROM:
            gained = BEGINNING * any(other.startswith(word) for part in (entry.title, entry.tags) for other in part)
        score += gained
        body += IN_BODY * (word in entry.body)
    return score + min(body, MOST_FROM_BODY)
