"""What every connector shares: settings as fields, patience, retries, one shape of answer, and no secret in any text.

A connector is a frozen dataclass. Its fields are its settings, in Python and in ``ringtrue.toml``; fields made by ``hidden()``
never show in ``repr``. It implements ``ask``, which returns rows best first in any shape ``as_hits`` knows, and raises the
errors of ``SearchFailed``; everything else happens here.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from ringtrue import config
from ringtrue.errors import InputError, TimedOut, Unreachable
from ringtrue.records import Hit
from ringtrue.retrieve.protocol import Scope, as_hits, check_k, plain

PAUSE = 0.2
"""Seconds before the first retry; each further one waits twice as long."""


def hidden(default: Any = None) -> Any:
    """A field that never shows: a secret, or an address that may carry one."""
    return field(default=default, repr=False)


@dataclass(frozen=True, kw_only=True)
class Connector(ABC):
    """A search system that somebody else runs."""

    PATHS: ClassVar[tuple[str, ...]] = ("ca_file",)
    """Settings that are paths; in ringtrue.toml they are relative to that file."""

    name: str = ""
    """How hits and errors call it; the kind of connector when empty."""
    timeout: float = 10.0
    """Seconds that one attempt may take."""
    retries: int = 2
    """Further attempts after one that could not reach the system or timed out."""
    duplicates: str = "error"
    """What a document that comes twice is: 'error', or 'first' to keep its first place."""

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", type(self).__name__.lower())
        if isinstance(self.timeout, bool) or not isinstance(self.timeout, int | float) or not self.timeout > 0:
            raise InputError(f"{self.name}: timeout={self.timeout!r} is no time to wait; give seconds above 0")
        if isinstance(self.retries, bool) or not isinstance(self.retries, int) or self.retries < 0:
            raise InputError(f"{self.name}: retries={self.retries!r} is no number of attempts; give 0 or more")
        if self.duplicates not in ("error", "first"):
            raise InputError(f"{self.name}: duplicates={self.duplicates!r} is not known; write 'error' or 'first'")

    @abstractmethod
    def ask(self, text: str, *, k: int, scope: Scope | None) -> Iterable[Any]:
        """Return the rows of one attempt, best first; raises SearchFailed."""

    def search(self, text: str, *, k: int = 10, scope: Scope | None = None) -> Sequence[Hit]:
        """Return at most ``k`` hits; raises SearchFailed after the last attempt: silence is no empty answer."""
        check_k(k)
        for attempt in range(self.retries + 1):
            try:
                rows = self.ask(plain(text), k=k, scope=scope)
                return as_hits(rows, self.name, duplicates=self.duplicates)[:k]
            except (Unreachable, TimedOut) as problem:
                if attempt == self.retries:
                    if self.retries == 0:
                        raise
                    raise type(problem)(f"{problem} (tried {attempt + 1} times)") from problem
                time.sleep(PAUSE * 2**attempt)
        raise AssertionError("unreachable")

    def no_scope(self, scope: Scope | None) -> None:
        """Raise InputError where this system cannot be asked for a scope; leaving it out would widen the answer in silence."""
        if scope:
            raise InputError(f"{self.name} cannot be searched within {dict(scope)}; search it without a scope")

    def secret(self, variable: str | None) -> str | None:
        """Return a secret from the environment variable a setting names, or None when the setting is empty."""
        return config.secret(variable) if variable else None
