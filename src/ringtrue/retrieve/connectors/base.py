"""What every connector shares: settings as fields, patience, retries, one shape of answer, and no secret in any text.

A connector is a frozen dataclass. Its fields are its settings, in Python and in ``ringtrue.toml``; fields made by ``hidden()``
never show in ``repr``. It implements ``ask``, which returns rows best first in any shape ``as_hits`` knows, and raises the
errors of ``SearchFailed``; everything else happens here.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from ringtrue import config
from ringtrue.errors import BadAnswer, InputError, MissingInput, SearchFailed, TimedOut, Unreachable
from ringtrue.records import Hit
from ringtrue.retrieve.connectors.deciding import model, settled
from ringtrue.retrieve.connectors.redact import redacted
from ringtrue.retrieve.protocol import Scope, as_hits, check_k, plain

PAUSE = 0.2
"""Seconds before the first retry; each further one waits twice as long."""
LONGEST = 86_400
"""Seconds of the longest timeout, a day: clocks and libraries overflow at some number, each at another."""


MOST_PASSAGES, LONGEST_PASSAGE = 20_000, 4_000
"""Documents whose text is remembered, and characters of each: enough to judge them."""
AT_ONCE = 500
"""Documents that are looked up in one question."""
T = TypeVar("T")


def hidden(default: Any = None) -> Any:
    """A field that never shows: a secret, or an address that may carry one."""
    return field(default=default, repr=False)


def check_seconds(who: str, setting: str, value: Any) -> None:
    """Raise InputError where a setting is no time that one can wait; neither infinity nor NaN is."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= LONGEST:
        raise InputError(f"{who}: {setting}={value!r:.40} is no time to wait; give seconds above 0, at most {LONGEST}")


@dataclass(frozen=True, kw_only=True)
class Connector(ABC):
    """A search system that somebody else runs."""

    PATHS: ClassVar[tuple[str, ...]] = ("ca_file",)
    """Settings that are paths; in ringtrue.toml they are meant from the folder of that file."""
    ASIDE: ClassVar[frozenset[str]] = frozenset({"name", "timeout", "retries", "ca_file"})
    """Settings that say where a system is, who asks it and how patiently, and not what it answers; those of secrets besides."""

    name: str = ""
    """How hits and errors call it; the kind of connector when empty."""
    timeout: float = 10.0
    """Seconds that one attempt may take."""
    retries: int = 2
    """Further attempts after one that could not reach the system or timed out."""
    duplicates: str = "error"
    """What a document that comes twice is: 'error', or 'first' to keep its first place."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise InputError(f"name={self.name!r:.40} is no name of a connection; write a text")
        if not self.name:
            object.__setattr__(self, "name", type(self).__name__.lower())
        check_seconds(self.name, "timeout", self.timeout)
        if isinstance(self.retries, bool) or not isinstance(self.retries, int) or self.retries < 0:
            raise InputError(f"{self.name}: retries={self.retries!r} is no number of attempts; give 0 or more")
        if self.duplicates not in ("error", "first"):
            raise InputError(f"{self.name}: duplicates={self.duplicates!r} is not known; write 'error' or 'first'")
        for setting in self._variables():
            if not isinstance(getattr(self, setting), str | None):
                raise InputError(f"{self.name}: {setting} is no text; write the name of an environment variable")

    def __getstate__(self) -> dict[str, Any]:
        """Settings travel to another process; connections, programs and answers that were kept do not."""
        return {item.name: getattr(self, item.name) for item in fields(self)}

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
        """Return at most ``k`` hits; raises SearchFailed after the last attempt: silence is no empty answer."""
        check_k(k)

        def ask() -> Sequence[Hit]:
            rows = self.ask(plain(text), k=k, scope=scope)
            return self._writable(as_hits(rows, self.name, duplicates=self.duplicates))[:k]

        return self.tried(ask)

    @property
    def known(self) -> Callable[[Sequence[str]], set[str]]:
        """``known(doc_ids)`` returns which of these the system can find at all (E-2); raises SearchFailed.

        Where a system cannot be asked by id it has no ``known``: ``getattr(connector, "known", None)`` is None then.
        """
        if not self.resolves():
            raise AttributeError(f"{self.name} cannot be asked which documents it has")
        return self._resolved

    def resolves(self) -> bool:
        """Whether the system can be asked by document ids, as it is set up."""
        return False

    def resolve(self, doc_ids: Sequence[str]) -> set[str]:
        """Return which of a few hundred ids can be found; raises SearchFailed. Asked only where ``resolves`` says so."""
        raise AssertionError(f"{type(self).__name__} says that it resolves ids, but not how")

    def _resolved(self, doc_ids: Sequence[str]) -> set[str]:
        wanted = list(dict.fromkeys(doc_ids))
        found: set[str] = set()
        for start in range(0, len(wanted), AT_ONCE):
            part = wanted[start : start + AT_ONCE]
            found |= self.tried(lambda part=part: self.resolve(part))  # type: ignore[misc]
        return found & set(wanted)

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

    def _writable(self, hits: Sequence[Hit]) -> Sequence[Hit]:
        """Return the hits when each can be written to a file; raises BadAnswer."""
        for rank, hit in enumerate(hits, 1):
            for what, value in (("document id", hit.doc_id), ("passage", hit.chunk or "")):
                try:
                    value.encode()
                except UnicodeEncodeError:
                    said = f"{self.name}: hit {rank} has the {what} {value!r:.40}"
                    raise BadAnswer(f"{said} with half a character, which no file can hold; mend it there") from None
        return hits

    def no_scope(self, scope: Scope | None) -> None:
        """Raise InputError where this system cannot be asked for a scope; leaving it out would widen the answer in silence."""
        if scope:
            raise InputError(f"{self.name} cannot be searched within {dict(scope)}; search it without a scope")

    def secret(self, variable: str | None) -> str | None:
        """Return a secret from the environment variable a setting names, or None when the setting is empty."""
        return config.secret(variable) if variable else None

    def secrets(self) -> Iterator[str]:
        """Yield what no message may show; here, what the environment variables that settings name hold."""
        # A user's name is no secret, and often a word that messages need.
        yield from self._held_by(getattr(self, setting) for setting in self._variables() if setting != "user_env")

    def _variables(self) -> list[str]:
        return [item.name for item in fields(self) if item.name.endswith("_env")]

    def _held_by(self, variables: Iterable[str | None]) -> Iterator[str]:
        for variable in variables:
            with suppress(MissingInput):
                yield self.secret(variable) or ""
