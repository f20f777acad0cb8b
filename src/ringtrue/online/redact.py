"""What may not be stored is taken out before it is stored (L-3), in the writer's thread and so off the caller's path."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ringtrue.config import secret
from ringtrue.errors import InputError, nearest
from ringtrue.online.sensitive import KINDS, take_out
from ringtrue.store import FeedbackEvent, LoggedQuery

SALT_VARIABLE = "RINGTRUE_LOG_SALT"
DEPTH = 8
"""How deep metadata may be nested; what lies deeper is left out, not stored unread."""


@dataclass(frozen=True)
class Redactor:
    """What is taken out of query texts, metadata and reasons before they are stored.

    ``kinds`` are the built-in ones, ``patterns`` regular expressions of your own by the name that replaces what they find,
    ``functions`` anything else. ``hash_only`` stores a keyed hash in the place of the query's text: equal queries can be
    counted, none can be read. ``hash_users`` does the same to user ids. Both need a salt, the key, from ``salt`` or from
    RINGTRUE_LOG_SALT in the environment; every project makes another key of it. Ids of sessions, results and traces are kept:
    they join.

    >>> Redactor(patterns={"room": r"\\bR-[0-9]{3}\\b"}).text("towels for R-214, mail ada@example.org")
    'towels for [room], mail [email]'
    """

    kinds: tuple[str, ...] = tuple(KINDS)
    patterns: Mapping[str, str | re.Pattern[str]] = field(default_factory=dict)
    functions: tuple[Callable[[str], str], ...] = ()
    hash_only: bool = False
    hash_users: bool = False
    salt: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for kind in self.kinds:
            if kind not in KINDS:
                raise InputError(f"there is no kind '{kind}' to redact; did you mean {nearest(kind, KINDS)}?")
        try:
            compiled = {name: re.compile(pattern) for name, pattern in self.patterns.items()}
        except re.error as problem:
            raise InputError(f"the pattern {problem.pattern!r} cannot be read ({problem}); mend the expression") from None
        object.__setattr__(self, "patterns", compiled)
        if (self.hash_only or self.hash_users) and self.salt is None:
            # Without a key anybody could hash guesses and compare.
            object.__setattr__(self, "salt", secret(SALT_VARIABLE))

    def text(self, text: str) -> str:
        """Return a text with everything taken out that may not be stored."""
        for function in self.functions:
            text = function(text)
        for name, pattern in self.patterns.items():
            text = re.sub(pattern, f"[{name}]", text)
        return take_out(text, self.kinds)

    def query(self, row: LoggedQuery) -> LoggedQuery:
        """Return a logged query that may be stored."""
        text = self.hashed(row.query, row.project) if self.hash_only else self.text(row.query)
        plain = row.fallback is None and row.intent is None and not row.flags and (row.user_id is None or not self.hash_users)
        if plain and text == row.query:
            return row  # as most are
        return replace(
            row,
            query=text,
            fallback=None if row.fallback is None else self.text(row.fallback),
            intent=None if row.intent is None else self.text(row.intent),
            flags=self._data(row.flags),
            user_id=self.user(row.user_id, row.project),
        )

    def feedback(self, row: FeedbackEvent) -> FeedbackEvent:
        """Return a feedback event that may be stored."""
        return replace(row, metadata=self._data(row.metadata), user_id=self.user(row.user_id, row.project))

    def user(self, user_id: str | None, project: str) -> str | None:
        """Return a user's id as it is stored, which is what delete-by-user must be given."""
        return self.hashed(user_id, project) if self.hash_users and user_id is not None else user_id

    def hashed(self, text: str, project: str) -> str:
        """Return the keyed hash that stands for a text in one project; upper and lower case and blanks do not matter."""
        key = hashlib.blake2b(f"{project}\0{self.salt or ''}".encode(), digest_size=32).digest()
        plain = " ".join(text.casefold().split()).encode("utf-8", "surrogatepass")
        return "h_" + hashlib.blake2b(plain, key=key, digest_size=16).hexdigest()

    def _data(self, value: Any, depth: int = 0) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if depth >= DEPTH:
            return None
        if isinstance(value, Mapping):
            return {self.text(str(name)): self._named(name, item, depth) for name, item in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [self._data(item, depth + 1) for item in value]
        if isinstance(value, bool | int | float) or value is None:
            return value
        return self.text(str(value))

    def _named(self, name: object, item: Any, depth: int) -> Any:
        """Return a value as its name makes it: under ``password`` a plain word is a secret, too."""
        if isinstance(item, str | int) and not isinstance(item, bool) and "key" in self.kinds:
            told = f"{name}={item}"
            if take_out(told, ("key",)).startswith(f"{name}=[key]"):
                return "[key]"
        return self._data(item, depth + 1)


class Unredacted:
    """Stores everything as it is; for logs that hold nothing that needs protection."""

    def text(self, text: str) -> str:
        return text

    def query(self, row: LoggedQuery) -> LoggedQuery:
        return row

    def feedback(self, row: FeedbackEvent) -> FeedbackEvent:
        return row

    def user(self, user_id: str | None, project: str) -> str | None:
        return user_id
