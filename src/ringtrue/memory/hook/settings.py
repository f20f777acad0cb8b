"""What can be set about retrieval, and ``memory-config.json`` (A-3). A bad value never stops a hook: the default holds."""

from __future__ import annotations

import os

from .guard import read_plain
from .memory import CATEGORIES, RETENTION_DAYS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, ClassVar

FILE = "memory-config.json"
LARGEST = 1_000_000
"""Bytes beyond which it is no file of settings."""
SYSTEM = ("/", "/bin", "/boot", "/dev", "/etc", "/lib", "/proc", "/run", "/sbin", "/sys", "/usr", "/var")
"""Folders that hold no notes; a configuration that came with somebody's project may name them."""
STRATEGIES = ("fts5_bm25", "title_tags", "hybrid")
THRESHOLDS = ("null", "fixed")
COLUMNS = ("title", "tags", "body")


class _Group:
    """Named values with defaults; a name that does not exist is a TypeError."""

    __slots__ = ()
    DEFAULTS: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, **values: Any) -> None:
        unknown = values.keys() - self.DEFAULTS.keys()
        if unknown:
            raise TypeError(f"there is no setting {sorted(unknown)[0]!r}; the settings are {', '.join(self.DEFAULTS)}")
        for name, default in self.DEFAULTS.items():
            setattr(self, name, values.get(name, default))

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and all(getattr(self, name) == getattr(other, name) for name in self.DEFAULTS)

    __hash__ = None  # type: ignore[assignment]  # it may hold mappings

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self.DEFAULTS)})"


class AutoInject(_Group):
    """How the hook cuts its list; the two scores count under ``threshold: fixed`` only."""

    __slots__ = ("max_results", "min_score_abs", "relative_cutoff")
    DEFAULTS: ClassVar[Mapping[str, Any]] = {"min_score_abs": 0.5, "relative_cutoff": 0.6, "max_results": 3}
    min_score_abs: float
    relative_cutoff: float
    max_results: int


class Search(_Group):
    """How a search on demand cuts its list."""

    __slots__ = ("max_results", "min_score_abs", "query_max_tokens")
    DEFAULTS: ClassVar[Mapping[str, Any]] = {"min_score_abs": 0.1, "max_results": 10, "query_max_tokens": 20}
    min_score_abs: float
    max_results: int
    query_max_tokens: int


class TranscriptContext(_Group):
    """How earlier turns of the user help a short prompt."""

    __slots__ = ("enabled", "max_turns", "tail_bytes")
    DEFAULTS: ClassVar[Mapping[str, Any]] = {"enabled": True, "max_turns": 3, "tail_bytes": 8192}
    enabled: bool
    max_turns: int
    tail_bytes: int


class Settings(_Group):
    """Everything that can be set, with the values that hold where nothing is set.

    >>> Settings(hint=True).auto_inject.max_results
    3
    """

    __slots__ = (
        "auto_inject", "body_max_chars", "column_weights", "enabled", "hint", "match_strategy", "query_max_tokens",
        "related_files_boost", "retention_days", "roots", "search", "threshold", "transcript_context",
    )  # fmt: skip
    DEFAULTS: ClassVar[Mapping[str, Any]] = {
        "enabled": True,
        "match_strategy": "fts5_bm25",
        "threshold": "null",
        "hint": False,
        "column_weights": (5.0, 3.0, 1.0),
        "body_max_chars": 2000,
        "query_max_tokens": 15,
        "auto_inject": AutoInject(),
        "search": Search(),
        "transcript_context": TranscriptContext(),
        "retention_days": RETENTION_DAYS,
        "related_files_boost": False,
        "roots": (),
    }
    enabled: bool
    match_strategy: str
    """One of STRATEGIES."""
    threshold: str
    """'null': what chance reaches in this very store; 'fixed': the scores of ``auto_inject``."""
    hint: bool
    """Whether one line points to the search where nothing was found."""
    column_weights: tuple[float, float, float]
    """How much a word counts in title, tags and body."""
    body_max_chars: int
    query_max_tokens: int
    auto_inject: AutoInject
    search: Search
    transcript_context: TranscriptContext
    retention_days: Mapping[str, int]
    """Days since the last change that a category is shown; 0, and what is not named, is for ever."""
    related_files_boost: bool
    """Whether a memory about a file that was used just now gains 2.0."""
    roots: tuple[str, ...]
    """Further folders, absolute, whose notes and memories are read and never written."""


def read_settings(root: str) -> tuple[Settings, list[str]]:
    """Return the settings of ``<root>/memory-config.json`` and what is wrong in it, one line a fault.

    A file that is missing sets nothing; one that cannot be read sets nothing and is a fault. Nothing is raised.
    """
    path = os.path.join(root, FILE)
    try:
        text = read_plain(path, LARGEST).decode("utf-8-sig")
    except FileNotFoundError:
        return Settings(), []
    except OSError as error:
        why = "it is a link, and links are not followed" if os.path.islink(path) else error.strerror
        return Settings(), [f"{FILE} cannot be read: {why}; the defaults hold"]
    except ValueError as error:
        return Settings(), [f"{FILE} cannot be read: {error}; the defaults hold"]
    import json

    try:
        whole = json.loads(text)
    except (ValueError, RecursionError) as error:
        return Settings(), [f"{FILE} is not JSON: {error}; the defaults hold"]
    section = whole.get("retrieval", {}) if isinstance(whole, dict) else whole
    if not isinstance(section, dict):
        return Settings(), [f"{FILE}: retrieval is {section!r:.40}; write an object"]
    return from_section(section, root)


def from_section(section: Mapping[str, Any], root: str = "") -> tuple[Settings, list[str]]:
    """Return the settings in the object ``retrieval`` and its faults; relative folders start at ``root``.

    >>> settings, faults = from_section({"max_inject": 2, "hint": "yes"})
    >>> settings.auto_inject.max_results, faults
    (2, ["retrieval.hint is 'yes'; write true or false; False holds"])
    """
    faults: list[str] = []
    top = _read(section, "retrieval", _TOP, Settings.DEFAULTS, faults, also=(*_GROUPS, "max_inject"))
    for name, (checks, group) in _GROUPS.items():
        if name not in section:
            continue
        part = section[name]
        if not isinstance(part, dict):
            faults.append(f"retrieval.{name} is {part!r:.40}; write an object")
            continue
        defaults = group.DEFAULTS if group else Settings.DEFAULTS
        values = _read(part, f"retrieval.{name}", checks, defaults, faults)
        if group:
            top[name] = group(**values)
        else:
            top.update(values)
    if "max_inject" in section:
        inject = section.get("auto_inject")
        if not (isinstance(inject, dict) and "max_results" in inject):  # the new name wins over the old one
            old = _read({"max_results": section["max_inject"]}, "retrieval.max_inject as", _INJECT, AutoInject.DEFAULTS, faults)
            kept = top.get("auto_inject", AutoInject())
            top["auto_inject"] = AutoInject(**{name: getattr(kept, name) for name in AutoInject.DEFAULTS} | old)
    if "roots" in top:
        top["roots"] = tuple(_allowed(top["roots"], root, faults))
    return Settings(**top), faults


def _allowed(folders: tuple[str, ...], root: str, faults: list[str]) -> Iterator[str]:
    for folder in folders:
        whole = os.path.join(root, os.path.expanduser(folder))
        real = os.path.realpath(whole)
        if any(real == system or (system != "/" and real.startswith(system + "/")) for system in SYSTEM) and not _own(real):
            faults.append(f"retrieval.roots names {folder!r:.60}, a folder of the system; name one that holds notes")
        else:
            yield whole


def _own(folder: str) -> bool:
    """True for what lies under a system's folder and is a user's all the same, as temporary and home folders are somewhere."""
    return folder.startswith(("/var/folders/", "/var/tmp/", "/var/home/", "/usr/home/", "/run/user/", "/run/media/"))


def _read(
    part: Mapping[str, Any],
    place: str,
    checks: Mapping[str, tuple[Callable[[Any], Any], str]],
    defaults: Mapping[str, Any],
    faults: list[str],
    also: tuple[str, ...] = (),
) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in part.items():
        if name not in checks:
            if name not in also:
                faults.append(f"{place}.{name} is not known; the settings are {', '.join(sorted({*checks, *also}))}")
            continue
        check, cure = checks[name]
        good = check(value)
        if good is None:
            faults.append(f"{place}.{name} is {value!r:.60}; write {cure}; {defaults[name]!r} holds")
        else:
            values[name] = good
    return values


def _truth(value: Any) -> bool | None:
    return value if type(value) is bool else None


def _count(least: int, most: int) -> tuple[Callable[[Any], int | None], str]:
    def check(value: Any) -> int | None:
        return value if type(value) is int and least <= value <= most else None

    return check, f"a whole number from {least} to {most}"


def _number(most: float) -> tuple[Callable[[Any], float | None], str]:
    def check(value: Any) -> float | None:
        return float(value) if type(value) in (int, float) and 0 <= value <= most else None

    return check, f"a number from 0 to {most:g}"


def _choice(allowed: tuple[str, ...]) -> tuple[Callable[[Any], str | None], str]:
    def check(value: Any) -> str | None:
        return value if type(value) is str and value in allowed else None

    return check, f"one of {', '.join(allowed)}"


def _weights(value: Any) -> tuple[float, ...] | None:
    if isinstance(value, dict) and value.keys() <= set(COLUMNS):
        value = [value.get(name, default) for name, default in zip(COLUMNS, Settings.DEFAULTS["column_weights"], strict=True)]
    if not isinstance(value, list) or len(value) != len(COLUMNS):
        return None
    if any(type(weight) not in (int, float) or not 0 <= weight <= 1000 for weight in value) or not any(value):
        return None
    return tuple(map(float, value))


def _retention(value: Any) -> dict[str, int] | None:
    if not isinstance(value, dict):
        return None
    if any(name not in CATEGORIES or type(days) is not int or not 0 <= days <= 36500 for name, days in value.items()):
        return None
    return {**RETENTION_DAYS, **value}


def _folders(value: Any) -> tuple[str, ...] | None:
    if isinstance(value, list) and all(type(item) is str and item.strip() and "\0" not in item for item in value):
        return tuple(value)
    return None


_TRUTH = _truth, "true or false"
_TOP = {
    "enabled": _TRUTH,
    "match_strategy": _choice(STRATEGIES),
    "threshold": _choice(THRESHOLDS),
    "hint": _TRUTH,
    "related_files_boost": _TRUTH,
    "retention_days": (_retention, f"days per category, such as {{'session_summary': 90}}, from {', '.join(CATEGORIES)}"),
    "roots": (_folders, "a list of folders"),
}
_ENGINE = {
    "column_weights": (_weights, "numbers of 0 to 1000 for title, tags and body, not all 0"),
    "body_max_chars": _count(0, 100_000),
    "query_max_tokens": _count(1, 100),
}
_INJECT = {"min_score_abs": _number(1e6), "relative_cutoff": _number(1), "max_results": _count(0, 20)}
_SEARCH = {"min_score_abs": _number(1e6), "max_results": _count(1, 100), "query_max_tokens": _count(1, 100)}
_TRANSCRIPT = {"enabled": _TRUTH, "max_turns": _count(0, 20), "tail_bytes": _count(256, 262_144)}
_GROUPS: dict[str, tuple[Mapping[str, Any], type[_Group] | None]] = {
    "engine": (_ENGINE, None),
    "auto_inject": (_INJECT, AutoInject),
    "search": (_SEARCH, Search),
    "transcript_context": (_TRANSCRIPT, TranscriptContext),
}
