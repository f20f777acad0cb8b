"""Memories → the few that answer a text (A-3): FTS5's BM25 over title, tags and body, or the older points for shared words.

Only active memories are ever searched: one that is retired cannot be found, however long the list (trap 30). How long a
category is shown is asked with every search, since it depends on the hour and not on the files.

Trigger phrases are searched with the tags. A memory one of whose phrases stands in the text, word for word, comes before all
that only share words with it.
"""

from __future__ import annotations

from .memory import PRIORITY, MemoryFault
from .phrases import called, phrases_of, spoken
from .words import expression, joined, query_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence

    from .files import Listing
    from .memory import Memory
    from .points import Entry
    from .settings import Settings

    Row = tuple[float, int, str, int | Memory]
    """Score, place of the category, id, and the memory or its place in the database."""

FTS5, TITLE_TAGS = "fts5_bm25", "title_tags"
RELATED_GAIN = 2.0
"""What a memory about a file that was used just now gains, where that is switched on."""
RELATED_LAST = 5
"""Uses of tools that it looks back on."""
FOR_EVER = 1e18
DAY = 86_400.0
SPARE = 8
"""Rows fetched beyond ``k``: a file may have gone since the index was made."""
ENTRY = """
    CREATE TABLE entry(
        place INTEGER PRIMARY KEY, id TEXT UNIQUE, priority INTEGER, until REAL, active INTEGER, name BLOB UNIQUE
    )
"""
PHRASE = "CREATE TABLE phrase(first TEXT, words TEXT, place INTEGER, PRIMARY KEY (first, words, place)) WITHOUT ROWID"
ADD_PHRASE = "INSERT OR IGNORE INTO phrase VALUES (?, ?, ?)"
_CALL = """
    SELECT phrase.words, entry.priority, entry.id, entry.place FROM phrase JOIN entry ON entry.place = phrase.place
    WHERE entry.until >= ? AND phrase.first IN ({})
"""
_AT_ONCE = 500
"""Values in one question to SQLite, which takes 999 at least."""
ADD_ENTRY = "INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?)"
ADD_TEXT = "INSERT INTO memory(rowid, title, tags, body) VALUES (?, ?, ?, ?)"
_FIND = """
    SELECT -bm25(memory, {}, {}, {}) AS score, entry.priority, entry.id, entry.place
    FROM memory JOIN entry ON entry.place = memory.rowid
    WHERE memory MATCH ? AND entry.until >= ? ORDER BY score DESC, entry.priority, entry.id LIMIT ?
"""


class Found:
    """A memory that was found: its score, positive and the higher the better, and its rank from 1."""

    __slots__ = ("memory", "rank", "score")

    def __init__(self, memory: Memory, score: float, rank: int) -> None:
        self.memory, self.score, self.rank = memory, score, rank

    def __repr__(self) -> str:
        return f"Found({self.rank}: {self.memory.id}, {self.score:.3f})"


class Index:
    """The active memories of a store, ready to be searched.

    >>> from .memory import Memory
    >>> from .settings import Settings
    >>> memory = Memory(id="jwt", category="decision", title="Sessions are JWT", body="authentication without state")
    >>> [found.memory.id for found in Index([memory], Settings()).search("how does auth work", k=3, now=0.0)]
    ['jwt']
    """

    __slots__ = ("_db", "_entries", "_memories", "listing", "settings", "stamp")

    def __init__(
        self, memories: Iterable[Memory], settings: Settings, *, stamp: str = "", listing: Listing | None = None
    ) -> None:
        """``stamp`` is a text that changes when the files do, ``listing`` the files, for what others keep about a store."""
        self.settings, self.stamp, self.listing = settings, stamp, listing
        self._memories: list[Memory] | None = sorted(
            (memory for memory in memories if memory.status == "active"), key=lambda memory: memory.id
        )
        self._entries: list[Entry] | None = None
        self._db = build(self._memories, settings)

    def close(self) -> None:
        """Let go of the database; further searches are not possible."""
        if self._db is not None:
            self._db.close()

    def __del__(self) -> None:
        if getattr(self, "_db", None) is not None:
            self.close()

    def __len__(self) -> int:
        return len(self.memories)

    @property
    def memories(self) -> Sequence[Memory]:
        """The active memories in the order of their ids, those past their retention too."""
        return self._memories or ()

    @property
    def strategy(self) -> str:
        """What a search uses unless told otherwise: that of the settings, but 'title_tags' where this Python has no FTS5."""
        chosen = self.settings.match_strategy
        return TITLE_TAGS if chosen == FTS5 and self._db is None else chosen

    def search(
        self,
        text: str,
        *,
        k: int,
        now: float,
        strategy: str | None = None,
        session: Sequence[str] = (),
        limit: int | None = None,
    ) -> list[Found]:
        """Return at most ``k`` memories that share a word with a text, the best first; equal ones by category, then by id.

        ``now``, in seconds since 1970, decides what is past its retention. ``session`` is the paths of the last uses of tools,
        the latest last, and counts where ``related_files_boost`` is on. ``limit`` is how many words of the text are used,
        else that of the settings; trigger phrases are looked for in the whole of it. Raises MemoryFault for a strategy that
        needs more than the standard library.
        """
        words = query_words(text, self.settings.query_max_tokens if limit is None else limit)
        return self.search_words(words, said=spoken(text), k=k, now=now, strategy=strategy, session=session)

    def on_demand(
        self, text: str, *, k: int, now: float, strategy: str | None = None, session: Sequence[str] = ()
    ) -> list[Found]:
        """Return what somebody who asks is shown: as many words of the text are used as ``search`` of the settings says.

        Scores under its ``min_score_abs`` are left out where the best one reaches it: in a store of one or two memories BM25
        is about 0 for a perfect match (trap 25).
        """
        rule = self.settings.search
        found = self.search(text, k=k, now=now, strategy=strategy, session=session, limit=rule.query_max_tokens)
        if found and found[0].score >= rule.min_score_abs:
            return [one for one in found if one.score >= rule.min_score_abs]
        return found

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
        """Return what ``search`` does, for words that ``query_words`` and ``spoken`` returned."""
        chosen = self.strategy if strategy is None else strategy
        if chosen == FTS5 and self._db is None:
            chosen = TITLE_TAGS
        if chosen not in (FTS5, TITLE_TAGS):
            raise MemoryFault(f"the strategy '{chosen}' is not one of this index; write {FTS5} or {TITLE_TAGS}")
        if not words or k < 1:
            return []
        boosted = self.settings.related_files_boost and bool(session)
        calling = self._called(said, now) if said else []
        most = -1 if boosted or calling else k + SPARE
        rows = self._by_bm25(words, now, most) if chosen == FTS5 else self._by_points(words, now)
        if boosted:
            rows = self._raised(rows, session[-RELATED_LAST:])
        if calling:
            rows = _called_first(rows, calling)
        found: list[Found] = []
        for score, _, _, place in rows:
            memory = self._memory(place) if isinstance(place, int) else place
            if memory is not None:
                found.append(Found(memory, score, len(found) + 1))
                if len(found) == k:
                    break
        return found

    def _by_bm25(self, words: Sequence[str], now: float, most: int) -> list[Row]:
        assert self._db is not None
        sql = _FIND.format(*map(float, self.settings.column_weights))
        return self._db.execute(sql, (expression(words), now, most)).fetchall()

    def _by_points(self, words: Sequence[str], now: float) -> list[Row]:
        from .points import Entry, points

        if self._entries is None:
            self._entries = [Entry(memory, self.settings.body_max_chars) for memory in self.memories]
        rows: list[Row] = [
            (float(score), PRIORITY[memory.category], memory.id, memory)
            for memory, entry in zip(self.memories, self._entries, strict=True)
            if (score := points(words, entry)) and now <= shown_until(memory, self.settings)
        ]
        return sorted(rows, key=_best_first)

    def _called(self, said: str, now: float) -> list[Row]:
        """Return the memories one of whose phrases is among spoken words, each once, with no score of their own."""
        rows: dict[str, Row] = {}
        if self._db is None:
            for memory in self.memories:
                if memory.trigger_phrases and called(memory, said) and now <= shown_until(memory, self.settings):
                    rows[memory.id] = (0.0, PRIORITY[memory.category], memory.id, memory)
            return list(rows.values())
        if self._db.execute("SELECT 1 FROM phrase LIMIT 1").fetchone() is None:
            return []
        words = list(dict.fromkeys(said.split()))
        for start in range(0, len(words), _AT_ONCE):
            some = words[start : start + _AT_ONCE]
            sql = _CALL.format(",".join("?" * len(some)))
            for phrase, priority, name, place in self._db.execute(sql, (now, *some)):
                if f" {phrase} " in said:
                    rows[name] = (0.0, priority, name, place)
        return list(rows.values())

    def _raised(self, rows: list[Row], session: Sequence[str]) -> list[Row]:
        raised: list[Row] = []
        for score, priority, name, place in rows:
            memory = self._memory(place) if isinstance(place, int) else place
            gain = RELATED_GAIN if memory is not None and about(memory, session) else 0.0
            raised.append((score + gain, priority, name, place if memory is None else memory))
        return sorted(raised, key=_best_first)

    def _memory(self, place: int) -> Memory | None:
        return self.memories[place - 1]


def _called_first(rows: list[Row], calling: list[Row]) -> list[Row]:
    """Lift the memories that are called above the others, which keep their scores; where none has one, a score is 1."""
    gain = rows[0][0] if rows and rows[0][0] > 0 else 1.0
    named = {row[2]: row for row in calling}
    others = [row for row in rows if row[2] not in named]
    named.update((row[2], row) for row in rows if row[2] in named)
    return [*sorted(((row[0] + gain, *row[1:]) for row in named.values()), key=_best_first), *others]


def _best_first(row: Row) -> tuple[float, int, str]:
    return -row[0], row[1], row[2]


def shown_until(memory: Memory, settings: Settings) -> float:
    """Return the last second, since 1970, at which a memory is shown.

    One without a date that can be read is shown for ever: that it is old is not known, and doctor reports the date.
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
    """True where one of the paths is a related file of a memory, or lies in a related folder."""
    whole = [f"/{path}".replace("\\", "/") for path in paths]
    related = [name.replace("\\", "/").strip("/") for name in memory.related_files]
    return any(path.endswith(f"/{name}") or f"/{name}/" in path for name in related if name for path in whole)


def texts(memory: Memory, settings: Settings) -> tuple[str, str, str]:
    """Return title, tags with the trigger phrases, and body as they are indexed."""
    given = memory.title, " ".join((*memory.tags, *memory.trigger_phrases)), memory.body[: settings.body_max_chars]
    fields = tuple(" ".join((field, *joined(field))) if "-" in field else field for field in given)
    try:
        "".join(fields).encode()
    except UnicodeEncodeError:  # SQLite takes no lone surrogate
        fields = tuple(_storable(field) for field in fields)
    return fields  # type: ignore[return-value]  # they are three


def entry(memory: Memory, settings: Settings, place: int, name: bytes | None) -> tuple[object, ...]:
    """Return the row beside the text: what orders, filters and finds the memory again."""
    id_ = memory.id.encode("utf-8", "backslashreplace").decode()
    return place, id_, PRIORITY[memory.category], shown_until(memory, settings), memory.status == "active", name


def phrases(memory: Memory, place: int) -> list[tuple[str, str, int]]:
    """Return the rows by which the trigger phrases of a memory are looked up."""
    return [(phrase.partition(" ")[0], phrase, place) for phrase in map(_storable, phrases_of(memory))]


def _storable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def connect(path: str) -> sqlite3.Connection | None:
    """Return a database, or None where this Python has no SQLite at all."""
    try:
        import sqlite3
    except ImportError:
        return None
    return sqlite3.connect(path, uri=True, isolation_level=None, check_same_thread=False)


def tables(db: sqlite3.Connection, more: str = "") -> bool:
    """Make the tables; False where this SQLite has no FTS5."""
    import sqlite3

    try:
        db.execute(f"CREATE VIRTUAL TABLE memory USING fts5(title, tags, body, tokenize='porter unicode61'{more})")
    except sqlite3.OperationalError:
        return False
    db.execute(ENTRY)
    db.execute(PHRASE)
    return True


def build(memories: Sequence[Memory], settings: Settings) -> sqlite3.Connection | None:
    """Return a database in memory with these memories, their places counted from 1; None where there is no FTS5."""
    db = connect(":memory:")
    if db is None:
        return None
    db.execute("BEGIN")
    if not tables(db, ", content=''"):  # the memories are here already, no need to keep their text twice
        db.close()
        return None
    db.executemany(ADD_TEXT, ((place, *texts(memory, settings)) for place, memory in enumerate(memories, 1)))
    db.executemany(ADD_ENTRY, (entry(memory, settings, place, None) for place, memory in enumerate(memories, 1)))
    for place, memory in enumerate(memories, 1):
        if memory.trigger_phrases:
            db.executemany(ADD_PHRASE, phrases(memory, place))
    db.execute("COMMIT")
    return db


def open_index(root: str, settings: Settings, *, seconds: float | None = None) -> Index:
    """Return the index of a folder as its files are now, from the cache in the folder where that is quicker.

    With ``seconds``, making the cache of a large folder stops after that long and raises MemoryFault; what was done is kept,
    and the next call goes on from there. Nothing else is raised: a cache that cannot be used or written is done without.
    """
    from .cache import open_cached

    return open_cached(root, settings, seconds)
