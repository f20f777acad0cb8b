"""What every connector shares: settings as fields, patience, retries, one shape of answer, and no secret in any text.

A connector is a frozen dataclass. Its fields are its settings, in Python and in ``ringtrue.toml``, checked by their types;
fields with ``repr=False`` (a secret, or an address that may carry one) never show. It implements ``ask``, which returns rows
best first in any shape ``as_hits`` knows, and raises the errors of ``SearchFailed``; everything else happens here.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, TypeVar

from ringtrue import config
from ringtrue.errors import BadAnswer, InputError, MissingInput, SearchFailed, TimedOut, Unreachable
from ringtrue.records import Hit
from ringtrue.retrieve.connectors.deciding import model, settled
from ringtrue.retrieve.connectors.settings import Attempts, Seconds, check_settings
from ringtrue.retrieve.connectors.web import call, redacted
from ringtrue.retrieve.protocol import Scope, as_hits, check_k, plain

PAUSE = 0.2
"""Seconds before the first retry; each further one waits twice as long."""
MOST_PASSAGES, LONGEST_PASSAGE = 20_000, 4_000
"""Documents whose text is remembered, and characters of each: enough to judge them."""
AT_ONCE = 500
"""Documents that are looked up in one question."""
T = TypeVar("T")
SecondsLeft = Callable[[], float]
"""The seconds left of one attempt; raises TimedOut when there are none."""


class OpenResource(Generic[T]):
    """What a connector keeps open between questions, such as a connection or a program."""

    def __init__(self, close: Callable[[T], object]) -> None:
        self.lock = threading.RLock()
        self.value: T | None = None
        self._process, self._close = os.getpid(), close

    def get(self, open_: Callable[[], T]) -> T:
        """Return what is kept, opened if there is none; threads share it."""
        with self.lock:
            if self.value is None:
                self.value = open_()
            return self.value

    def end(self) -> None:
        """Close it, unless it belongs to the process that this one was forked from."""
        value, self.value = self.value, None
        if value is not None and self._process == os.getpid():
            self._close(value)


@dataclass(frozen=True, kw_only=True)
class Remote:
    """A system that somebody else runs: its name, how patiently it is asked, and the secrets that no message shows."""

    PATHS: ClassVar[tuple[str, ...]] = ("ca_file",)
    """Settings that are paths; in ringtrue.toml they are meant from the folder of that file."""

    name: str = ""
    """How hits and errors call it; the kind of connection when empty."""
    timeout: Seconds = 10.0
    """Seconds that one attempt may take."""
    retries: Attempts = 2
    """Further attempts after one that could not reach the system or timed out."""

    def __post_init__(self) -> None:
        if self.name == "":
            object.__setattr__(self, "name", type(self).__name__.lower())
        check_settings(str(self.name), self)

    def __getstate__(self) -> dict[str, Any]:
        """Settings travel to another process; connections, programs and answers that were kept do not."""
        return {item.name: getattr(self, item.name) for item in fields(self)}

    def refuse(self, *cases: tuple[object, str]) -> None:
        """Raise InputError with the message of the first case that holds."""
        for holds, message in cases:
            if holds:
                raise InputError(f"{self.name}: {message}")

    def tried(self, action: Callable[[], T]) -> T:
        """Return what an action returns; one that cannot reach the system or times out is tried again.

        Raises SearchFailed after the last attempt, without any secret.
        """
        for attempt in range(self.retries + 1):
            try:
                return action()
            except SearchFailed as problem:
                passing = isinstance(problem, Unreachable | TimedOut)
                if passing and attempt < self.retries:
                    time.sleep(PAUSE * 2**attempt)
                    continue
                safe = plain(redacted(str(problem), (word for word in self.secrets() if word not in self.name)))
                said = f"{safe} (tried {attempt + 1} times)" if passing and self.retries else safe
                if said == str(problem):
                    raise
                # A traceback may end in a log: what was taken out of the message must not stand above it.
                raise type(problem)(said) from (problem if safe == str(problem) else None)
        raise AssertionError("unreachable")

    def kept(self, name: str, close: Callable[[T], object]) -> OpenResource[T]:
        """Return what this process keeps open under a name; it is closed with the connector, or when nobody holds that."""
        made = OpenResource(close)
        found: OpenResource[T] = self.__dict__.setdefault(f"_kept_{name}_{os.getpid()}", made)  # of two threads, one wins
        if found is made:
            weakref.finalize(self, made.end)  # also runs when Python ends
        return found

    def close(self) -> None:
        """Close what is kept open; the next question opens it again."""
        for held in [value for value in self.__dict__.values() if isinstance(value, OpenResource)]:
            with held.lock:
                held.end()

    def deadline(self) -> SecondsLeft:
        """Start the clock of one attempt."""
        end = time.monotonic() + self.timeout

        def left() -> float:
            seconds = end - time.monotonic()
            if seconds <= 0:
                raise self.too_slow()
            return seconds

        return left

    def too_slow(self) -> TimedOut:
        """Return the error of an attempt that took too long."""
        return TimedOut(f"{self.name} did not answer within {self.timeout:g} s; raise timeout=, or find out why it is slow")

    def secret(self, variable: str | None) -> str | None:
        """Return a secret from the environment variable a setting names, or None when the setting is empty."""
        return config.secret(variable) if variable else None

    def secrets(self) -> Iterator[str]:
        """Yield what no message may show; here, what the environment variables that settings name hold."""
        # A user's name is not a secret, and often a word that messages need.
        names = (item.name for item in fields(self))
        yield from self._values(getattr(self, name) for name in names if name.endswith("_env") and name != "user_env")

    def _values(self, variables: Iterable[str | None]) -> Iterator[str]:
        for variable in variables:
            with suppress(MissingInput):
                yield self.secret(variable) or ""


@dataclass(frozen=True, kw_only=True)
class JsonApi(Remote):
    """A system that is asked over HTTP and answers JSON."""

    token_env: str | None = None
    """Environment variable with a bearer token."""
    ca_file: str | None = None
    """PEM file of the server's certificate authority, if it is not a public one."""

    def credentials(self) -> dict[str, str]:
        """Return the headers of every request."""
        token = self.secret(self.token_env)
        return {} if token is None else {"Authorization": f"Bearer {token}"}

    def login(self) -> tuple[str, str] | None:
        """Return user and password of basic authentication, None if the settings name none."""
        return None

    def request(self, method: str, url: str, left: SecondsLeft, **sent: Any) -> Any:
        """Return what a request with the credentials gets in the seconds left; raises SearchFailed."""
        access: dict[str, Any] = {
            "headers": self.credentials(),
            "auth": self.login(),
            "ca_file": self.ca_file,
            "secrets": self.secrets(),
        }
        return call(self.name, method, url, timeout=round(left(), 2) or 0.01, **access, **sent)


@dataclass(frozen=True, kw_only=True)
class BasicLogin(JsonApi):
    """One that may also ask for a user and a password."""

    user_env: str | None = None
    """Environment variables with user and password of basic authentication."""
    password_env: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        one = (self.user_env is None) != (self.password_env is None)
        self.refuse((one, "only one of user_env and password_env is given; give both or none"))

    def login(self) -> tuple[str, str] | None:
        user, password = self.secret(self.user_env), self.secret(self.password_env)
        return None if user is None or password is None else (user, password)


@dataclass(frozen=True, kw_only=True)
class Program(Remote):
    """A system that is a program which the connector starts."""

    env: Sequence[str] = ()
    """Names of environment variables that the program may see besides PATH, HOME and the like; all must be set."""
    folder: str | Path | None = None
    """Where it runs; when not given, the folder of ringtrue.toml for a connection from there, else the current one."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.folder is not None and not Path(self.folder).is_dir():
            raise MissingInput(f"{self.name}: there is no folder {self.folder}; name the one that the program runs in")

    def environment(self) -> dict[str, str]:
        """Return the variables that the settings name; raises MissingInput for one that is not set."""
        return {name: value for name in self.env if (value := self.secret(name)) is not None}

    def secrets(self) -> Iterator[str]:
        """Yield what no message may show: also what the program was told by its environment."""
        yield from super().secrets()
        yield from self._values(self.env)


@dataclass(frozen=True, kw_only=True)
class Connector(Remote, ABC):
    """A search system that somebody else runs."""

    ASIDE: ClassVar[frozenset[str]] = frozenset({"name", "timeout", "retries", "ca_file"})
    """Settings that say where a system is, who asks it and how patiently, and not what it answers; those of secrets besides."""
    ASKS_BLANK: ClassVar[bool] = False
    """Whether a blank question is asked like any other: most systems refuse one, and no vector can carry it."""

    duplicates: Literal["error", "first"] = "error"
    """What a document that comes twice is: 'error', or 'first' to keep its first place."""

    def deciding(self) -> dict[str, Any]:
        """Return every setting that decides the answers, the hidden ones too, to be hashed and never shown.

        Neither addresses nor credentials are among them, nor what is written: the same search elsewhere is the same search.
        """
        found: dict[str, Any] = {"kind": type(self).__name__.lower()}
        for item in fields(self):
            if item.name in self.ASIDE or item.name.endswith("_env"):
                continue
            value = getattr(self, item.name)
            if item.name in self.PATHS and isinstance(value, str) and value:
                value = Path(value)
            found[item.name] = model(value) if item.name == "model" and isinstance(value, str) else settled(value)
        return found

    @abstractmethod
    def ask(self, text: str, *, k: int, scope: Scope | None) -> Iterable[Any]:
        """Return the rows of one attempt, best first; raises SearchFailed."""

    def search(self, text: str, *, k: int = 10, scope: Scope | None = None) -> Sequence[Hit]:
        """Return at most ``k`` hits; raises SearchFailed after the last attempt: silence is not an empty answer."""
        check_k(k)
        if not plain(text).strip() and not self.ASKS_BLANK:
            return []

        def ask() -> Sequence[Hit]:
            rows = self.ask(plain(text), k=k, scope=scope)
            return self._writable(as_hits(rows, self.name, duplicates=self.duplicates))[:k]

        return self.tried(ask)

    @property
    def known(self) -> Callable[[Sequence[str]], set[str]]:
        """``known(doc_ids)`` returns which of these the system can find at all; raises SearchFailed.

        Where a system cannot be asked by id it has no ``known``: ``getattr(connector, "known", None)`` is None then.
        """
        if not self.resolves():
            raise AttributeError(f"{self.name} cannot be asked which documents it has")
        return self._resolved

    def resolves(self) -> bool:
        """Whether the system can be asked by document ids, as it is set up."""
        return False

    def resolve(self, doc_ids: Sequence[str]) -> set[str]:
        """Return which of a few hundred ids can be found; raises SearchFailed. Asked only if ``resolves`` says so."""
        raise NotImplementedError

    def _resolved(self, doc_ids: Sequence[str]) -> set[str]:
        wanted = list(dict.fromkeys(doc_ids))
        return {doc_id for part in self.in_parts(self.resolve, wanted) for doc_id in part} & set(wanted)

    def in_parts(self, action: Callable[[Sequence[str]], T], ids: Sequence[str]) -> list[T]:
        """Return what an action returns for each few hundred of the ids, each tried as often as allowed."""
        parts = [ids[start : start + AT_ONCE] for start in range(0, len(ids), AT_ONCE)]
        return [self.tried(partial(action, part)) for part in parts]

    def note_passage(self, doc_id: Any, title: Any, text: Any) -> None:
        """Remember what a hit says its document is about, the newest documents only."""
        if title or text:
            held: dict[str, tuple[str, str]] = self.__dict__.setdefault("_passages", {})
            held.setdefault(str(doc_id), (str(title or ""), str(text or "")[:LONGEST_PASSAGE]))
            if len(held) > MOST_PASSAGES:
                with suppress(KeyError, RuntimeError, StopIteration):  # another thread was faster
                    del held[next(iter(held))]

    def passages(self) -> dict[str, tuple[str, str]]:
        """Return title and text of documents by id, as far as answers said them."""
        return dict(self.__dict__.get("_passages", {}))

    def _writable(self, hits: Sequence[Hit]) -> Sequence[Hit]:
        """Return the hits when each can be written to a file; raises BadAnswer."""
        for rank, hit in enumerate(hits, 1):
            for what, value in (("document id", hit.doc_id), ("passage", hit.chunk or "")):
                try:
                    value.encode()
                except UnicodeEncodeError:
                    said = f"{self.name}: hit {rank} has the {what} {value!r:.40}"
                    raise BadAnswer(f"{said} with an unpaired surrogate, which UTF-8 cannot store; fix it there") from None
        return hits

    def no_scope(self, scope: Scope | None) -> None:
        """Raise InputError if this system cannot be asked for a scope; leaving it out would widen the answer in silence."""
        if scope:
            raise InputError(f"{self.name} cannot be searched within {dict(scope)}; search it without a scope")


Row = dict[str, Any]
"""``{"doc_id": …, "score": …, "chunk": …}``, as ``as_hits`` reads it."""
MOST = 10_000
"""Records that are fetched at most to find enough documents."""


def _document(row: Row) -> Any:
    return str(row["doc_id"])


def enough(fetch: Callable[[int], list[Row]], k: int, *, document: Callable[[Row], Any] = _document) -> list[Row]:
    """Return the best records of at least ``k`` documents, or of all there are; ``fetch(n)`` returns the best ``n`` records.

    The best 10 records may be passages of 3 documents. Measuring recall at 10 on those 3 would blame the search for the cut.
    ``document`` returns whose record a row is.
    """
    count = k
    while True:
        rows = fetch(count)
        if len(rows) < count or len({document(row) for row in rows}) >= k or count >= MOST:
            return rows
        count = min(count * 4, max(MOST, k))


def all_found(fetch: Callable[[Sequence[str], int], Sequence[str]], ids: Sequence[str], most: int) -> set[str]:
    """Return which of these documents have records; ``fetch(ids, n)`` returns whose at most ``n`` of the records are."""
    found: set[str] = set()
    parts = [list(ids)]
    while parts:
        part = parts.pop()
        count = most if len(part) > 1 else 1
        documents = fetch(part, count)
        found |= set(documents)
        if len(documents) == count and len(part) > 1:  # so many passages that some documents may have been cut off
            middle = len(part) // 2
            parts += [part[:middle], part[middle:]]
    return found


def readings(value: object) -> tuple[str | int | float | bool, ...]:
    """Return the stored values that read like a scope's value: metadata has types, a scope from a command line is text.

    >>> readings("3"), readings("en"), readings("true")
    (('3', 3, 3.0), ('en',), ('true', True))
    """
    if not isinstance(value, str):
        return (value,) if isinstance(value, int | float) else (str(value),)
    if value.lower() in ("true", "false"):
        return value, value.lower() == "true"
    for kind in (int, float):
        try:
            number = kind(value)
        except ValueError:
            continue
        # 007 is a name, not a number: only what a number would be written as is read as one.
        if str(number) == value and number == number and abs(number) < 2**63:
            return (value, number, float(number)) if isinstance(number, int) else (value, number)
    return (value,)


def within_scope(metadata: Mapping[str, Any], scope: Scope | None) -> bool:
    """Return whether a record's metadata has the values of a scope, compared as text as everywhere in Ringtrue."""
    return all(
        name in metadata and any(str(metadata[name]) == str(reading) for reading in readings(value))
        for name, value in (scope or {}).items()
    )


def field_of(record: Mapping[str, Any], name: str, who: str, setting: str) -> Any:
    """Return a field of a record by its name or dotted path; raises BadAnswer naming the fields there are."""
    value: Any = record
    for part in (name,) if name in record else name.split("."):
        if not isinstance(value, Mapping) or part not in value:
            there = ", ".join(f"'{key}'" for key in list(record)[:8]) or "none"
            raise BadAnswer(f"{who} answered a record without the field '{name}' that {setting}= names; its fields are {there}")
        value = value[part]
    return value
