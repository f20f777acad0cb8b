"""What may not be stored is taken out before it is stored (L-3), in the writer's thread and so off the caller's path."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ringtrue.config import secret
from ringtrue.errors import InputError, nearest
from ringtrue.log.sensitive import KINDS, take_out
from ringtrue.store import FeedbackEvent, LoggedQuery

SALT_VARIABLE = "RINGTRUE_LOG_SALT"
ERROR = "error: "
"""How a reason begins where the search raised; the type of the error follows."""
DEPTH = 8
"""Lists and objects that may lie in each other; those that lie deeper are left out, not stored unread."""
SWITCHES = frozenset(["on", "off", "control", "treatment"])
"""What a flag says where it is no plain yes or no; it tells nothing about a question."""
ID_NAMES = frozenset(["repeats", "opened_below", "linked_by", "retriever", "feature", "items", "action"])
"""Names in flags and metadata under which Ringtrue itself keeps ids and its own words."""
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
        """Return a logged query that may be stored."""
        if self.hash_only:
            return self._hashed_query(row)
        text = self.text(row.query)
        labels = (row.mode, row.mode_override, row.token_pressure_level, row.eval_category)
        plain = row.fallback is None and row.intent is None and not row.flags and (row.user_id is None or not self.hash_users)
        if plain and text == row.query and not any(labels):
            return row  # as most are
        mode, override, level, category = map(self._maybe, labels)
        return replace(
            row,
            query=text,
            fallback=self._maybe(row.fallback),
            intent=self._maybe(row.intent),
            flags=self._data(row.flags),
            mode=mode,
            mode_override=override,
            token_pressure_level=level,
            eval_category=category,
            user_id=self.user(row.user_id, row.project),
        )

    def _maybe(self, text: str | None) -> str | None:
        return None if text is None else self.text(text)

    def _hashed_query(self, row: LoggedQuery) -> LoggedQuery:
        """Return a logged query without a word of the question."""

        def label(text: str | None) -> str | None:
            """A plain name out of a program's own list stays; anything that could be a sentence does not."""
            return text if text is None or _LABEL.fullmatch(text) else self.hashed(text, row.project)

        return replace(
            row,
            query=self.hashed(row.query, row.project),
            fallback=None if row.fallback is None else self._hashed_reason(row.fallback, row),
            intent=None if row.intent is None else self.hashed(row.intent, row.project),
            flags=self._hashed_data(row.flags, row.project, frozenset(row.result_ids)),
            mode=label(row.mode),
            mode_override=label(row.mode_override),
            token_pressure_level=label(row.token_pressure_level),
            eval_category=label(row.eval_category),
            user_id=self.user(row.user_id, row.project),
        )

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
        if self.hash_only:
            ids = frozenset(one for one in (row.query_id, row.item_id, row.session_id) if one is not None)
            metadata = self._hashed_data(row.metadata, row.project, ids)
        else:
            metadata = self._data(row.metadata)
        return replace(row, metadata=metadata, user_id=self.user(row.user_id, row.project))

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

    def _data(self, value: Any, depth: int = 0) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, bool | int | float) or value is None:
            return value
        if depth >= DEPTH:
            return None
        if isinstance(value, Mapping):
            return {self.text(str(name)): self._named(name, item, depth) for name, item in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [self._data(item, depth + 1) for item in value]
        return self.text(str(value))

    def _named(self, name: object, item: Any, depth: int) -> Any:
        """Return a value as its name makes it: under ``password`` a plain word is a secret, too."""
        if isinstance(item, str | int) and not isinstance(item, bool) and "key" in self.kinds:
            told = f"{name}={item}"
            if take_out(told, ("key",)).startswith(f"{name}=[key]"):
                return "[key]"
        return self._data(item, depth + 1)

    def _hashed_data(self, value: Any, project: str, ids: frozenset[str], *, named: str = "", depth: int = 0) -> Any:
        """Return a structure with its numbers and ids, and with hashes in the place of its texts."""
        if isinstance(value, bool | int | float) or value is None:
            return value
        if depth >= DEPTH and not isinstance(value, str):
            return None
        if isinstance(value, Mapping):
            return {
                name if _LABEL.fullmatch(name) else self.hashed(name, project): self._hashed_data(
                    item, project, ids, named=name, depth=depth + 1
                )
                for name, item in ((str(name), item) for name, item in value.items())
            }
        if isinstance(value, list | tuple | set | frozenset):
            return [self._hashed_data(item, project, ids, named=named, depth=depth + 1) for item in value]
        text = str(value)
        is_id = named in ID_NAMES or named == "id" or named.endswith(("_id", "_ids"))
        return text if is_id or text in SWITCHES or text in ids else self.hashed(text, project)


class Unredacted:
    """Stores everything as it is; for logs that hold nothing that needs protection."""

    def text(self, text: str) -> str:
        return text

    def query(self, row: LoggedQuery) -> LoggedQuery:
        return row

    def feedback(self, row: FeedbackEvent) -> FeedbackEvent:
        return row

    def failure(self, said: str, kind: str | None) -> str:
        return said

    def user(self, user_id: str | None, project: str) -> str | None:
        return user_id


def redactor_of(given: Redactor | Unredacted | Callable[[str], str] | None) -> Redactor | Unredacted:
    """Return what redacts: as given, with a function of one's own, or nothing for None."""
    if given is None:
        return Unredacted()
    return given if isinstance(given, Redactor | Unredacted) else Redactor(kinds=(), functions=(given,))
