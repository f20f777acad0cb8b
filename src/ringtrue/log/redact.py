"""What may not be stored is taken out before it is stored, in the writer's thread and so off the caller's path."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

from ringtrue.config import secret
from ringtrue.errors import InputError, nearest
from ringtrue.log.sensitive import KINDS, take_out
from ringtrue.store import FeedbackEvent, LoggedQuery

SALT_VARIABLE = "RINGTRUE_LOG_SALT"
ERROR = "error: "
"""How a reason begins if the search raised; the type of the error follows."""
DEPTH = 8
"""Lists and objects that may lie in each other; those that lie deeper are left out, not stored unread."""
SWITCHES = frozenset(["on", "off", "control", "treatment"])
"""What a flag says if it is no plain yes or no; it tells nothing about a question."""
ID_NAMES = frozenset(["repeats", "opened_below", "linked_by", "retriever", "feature", "items", "action"])
"""Names in flags and metadata under which Ringtrue itself keeps ids and its own words."""
_LABELS = ("mode", "mode_override", "token_pressure_level", "eval_category")
_LABEL = re.compile(r"[A-Za-z0-9_.:/@+-]{1,64}")
_HASH = re.compile(r"h_[0-9a-f]{32}")
_TYPE = re.compile(r"[A-Z][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Redactor:
    """What is taken out of query texts, metadata and reasons before they are stored.

    ``kinds`` are the built-in ones, ``patterns`` regular expressions of your own by the name that replaces what they find,
    ``functions`` anything else. ``hash_only`` stores a keyed hash in the place of the query's text and of every other text
    that may hold words of it (intent, reasons, flags, metadata): equal ones can be counted, none can be read; of an error its
    type stays. ``hash_users`` does the same to user ids. Both need a salt, the key, from ``salt`` or from RINGTRUE_LOG_SALT in
    the environment; every project makes another key of it. Names of tools and retrievers, and ids of sessions, results and
    traces are kept: they join.

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
        """Return a logged query that may be stored; with ``hash_only`` without a word of the question."""
        if self._inactive:
            return row
        hide = partial(self.hashed, project=row.project) if self.hash_only else self.text
        ids = frozenset(row.result_ids) if self.hash_only and row.flags else frozenset()
        new: dict[str, Any] = {"query": hide(row.query), "user_id": self.user(row.user_id, row.project)}
        if row.flags:
            new["flags"] = self._data(row.flags, row.project, ids)
        if row.intent is not None:
            new["intent"] = hide(row.intent)
        if row.fallback is not None:
            new["fallback"] = self._hashed_reason(row.fallback, row) if self.hash_only else self.text(row.fallback)
        for name in _LABELS:
            label = getattr(row, name)
            # A plain name out of a program's own list need not be hashed; anything that could be a sentence must.
            if label is not None and not (self.hash_only and _LABEL.fullmatch(label)):
                new[name] = hide(label)
        changed = {name: value for name, value in new.items() if value != getattr(row, name)}
        return replace(row, **changed) if changed else row

    def _hashed_reason(self, reason: str, row: LoggedQuery) -> str:
        if not reason.startswith(ERROR):
            return self.hashed(reason, row.project)
        kind = reason.removeprefix(ERROR).partition(":")[0]
        # What another system logged as an error may begin with any word.
        asked = row.query.casefold().split()
        known = _TYPE.fullmatch(kind) and not any(word in asked for word in (kind.casefold(), kind.casefold() + ":"))
        return ERROR + (kind if known else self.hashed(reason, row.project))

    def feedback(self, row: FeedbackEvent) -> FeedbackEvent:
        """Return a feedback event that may be stored."""
        if self._inactive:
            return row
        ids = frozenset(one for one in (row.query_id, row.item_id, row.session_id) if one is not None)
        return replace(row, metadata=self._data(row.metadata, row.project, ids), user_id=self.user(row.user_id, row.project))

    def failure(self, said: str, kind: str | None) -> str:
        """Return what may be stored of an error: its message without secrets; with ``hash_only`` no more than its type."""
        return (kind or "error") if self.hash_only else self.text(said)

    def user(self, user_id: str | None, project: str) -> str | None:
        """Return a user's id as it is stored, which is what delete-by-user must be given."""
        return self.hashed(user_id, project) if self.hash_users and user_id is not None else user_id

    def hashed(self, text: str, project: str) -> str:
        """Return the keyed hash that stands for a text in one project; upper and lower case and blanks do not matter."""
        if _HASH.fullmatch(text):
            return text  # it stands for a text already
        key = hashlib.blake2b(f"{project}\0{self.salt or ''}".encode(), digest_size=32).digest()
        plain = " ".join(text.casefold().split()).encode("utf-8", "surrogatepass")
        return "h_" + hashlib.blake2b(plain, key=key, digest_size=16).hexdigest()

    def _data(self, value: Any, project: str, ids: frozenset[str], *, named: str = "", depth: int = 0) -> Any:
        """Return a structure as it may be stored; with ``hash_only`` with hashes in the place of its texts, ``ids`` aside."""
        if isinstance(value, Mapping | list | tuple | set | frozenset) and depth >= DEPTH:
            return None
        if isinstance(value, Mapping):
            items = ((str(name), item) for name, item in value.items())
            return {
                self._key(name, project): self._data(item, project, ids, named=name, depth=depth + 1) for name, item in items
            }
        if isinstance(value, list | tuple | set | frozenset):
            return [self._data(item, project, ids, named=named, depth=depth + 1) for item in value]
        if not self.hash_only and self._is_secret(named, value):
            return "[key]"
        if isinstance(value, bool | int | float) or value is None:
            return value
        text = str(value)
        if not self.hash_only:
            return self.text(text)
        is_id = named in ID_NAMES or named == "id" or named.endswith(("_id", "_ids"))
        return text if is_id or text in SWITCHES or text in ids else self.hashed(text, project)

    def _key(self, name: str, project: str) -> str:
        if not self.hash_only:
            return self.text(name)
        return name if _LABEL.fullmatch(name) else self.hashed(name, project)

    def _is_secret(self, name: str, value: Any) -> bool:
        """True if a value is one by its name: under ``password`` a plain word is a secret, too."""
        if not name or "key" not in self.kinds or isinstance(value, bool) or not isinstance(value, str | int):
            return False
        return take_out(f"{name}={value}", ("key",)).startswith(f"{name}=[key]")

    @cached_property
    def _inactive(self) -> bool:
        return not (self.kinds or self.patterns or self.functions or self.hash_only or self.hash_users)


def redactor_of(given: Redactor | Callable[[str], str] | None) -> Redactor:
    """Return what redacts: as given, with a function of one's own, or nothing for None."""
    if isinstance(given, Redactor):
        return given
    return Redactor(kinds=(), functions=() if given is None else (given,))
