"""Every error Ringtrue raises on purpose, drawn as a tree, each with the exit code it ends a command with.

::

    RingtrueError                 2
    ├── SpecError                 2   a measure or retriever text that cannot be read
    ├── InputError                2   a file or value that cannot be used as given
    │   ├── MissingInput          2   a file, a set or a column that is not there
    │   └── Unusable              2   a store that is read-only or damaged, whatever was to be stored in it
    ├── ValidationFailed          2   a golden set that breaks its own rules
    ├── CannotDecide              3   nothing is malformed, but no honest number exists
    └── SearchFailed              3   a search system did not answer as it should
        ├── Unreachable           3   it cannot be reached, or went away while answering
        ├── TimedOut              3   it took longer than it was given
        ├── AccessDenied          3   it refused the credentials
        └── BadAnswer             3   it answered something that is not a list of hits

Exit codes: 0 pass, 1 regression or failed check, 2 usage or bad input, 3 could not decide.
A message is one line that names the value, its place and the cure, so that a command can print it as it is.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

OK, REGRESSION, BAD_INPUT, UNDECIDED = 0, 1, 2, 3
READABLE = 12


class RingtrueError(Exception):
    """Base of every deliberate error; catching it catches all of them."""

    exit_code = BAD_INPUT


class SpecError(RingtrueError):
    """A measure or retriever expression that cannot be read."""


class InputError(RingtrueError):
    """A file or value that cannot be used as given."""

    place: str = ""
    """The file, line and field that the message begins with, if any."""


class MissingInput(InputError):
    """A file, a named set or a column that is not there."""


class Unusable(InputError):
    """A store that is read-only, damaged or none at all: no fault of what was to be stored in it."""


class ValidationFailed(RingtrueError):
    """A golden set that breaks its own rules; the problems are listed by the validation report."""


class CannotDecide(RingtrueError):
    """The input is well formed, but no honest number can be made from it."""

    exit_code = UNDECIDED


class SearchFailed(RingtrueError):
    """A search system did not answer as it should; no answer is never an empty answer."""

    exit_code = UNDECIDED


class Unreachable(SearchFailed):
    """A search system, or the store, that cannot be reached or went away while answering; worth another try."""


class TimedOut(SearchFailed):
    """A search system that took longer than it was given; worth another try."""


class AccessDenied(SearchFailed):
    """A search system, or the store, that refused the credentials."""


class BadAnswer(SearchFailed):
    """An answer that is not a list of hits."""


def nearest(value: str, legal: Iterable[str], *, count: int = 3) -> str:
    """Return the legal values closest to ``value`` as ``'a', 'b' or 'c'``, for use in a message.

    >>> nearest("grde", ["grade", "doc_id"])
    "'grade'"
    """
    options = list(dict.fromkeys(legal))
    by_lowercase = {option.lower(): option for option in options}
    close = difflib.get_close_matches(value.lower(), by_lowercase, n=count, cutoff=0.5)
    # Where nothing resembles the value, all legal ones are shown, unless they are too many to read.
    shown = options if len(options) <= READABLE else options[:count]
    quoted = [f"'{by_lowercase[match]}'" for match in close] or [f"'{option}'" for option in shown]
    return quoted[0] if len(quoted) == 1 else ", ".join(quoted[:-1]) + " or " + quoted[-1]


def check_choice(value: str | None, legal: Iterable[str], problem: str) -> None:
    """Raise InputError with the problem and the nearest legal values if a value is none of them; None is not checked."""
    names = list(legal)
    if value is not None and value not in names:
        raise InputError(f"{problem}; did you mean {nearest(value, names)}?")
