"""The settings of retrieval, and ``memory-config.json``. A bad value never stops a hook: its default applies."""

from __future__ import annotations

import os

from .guard import read_plain
from .memory import CATEGORIES, RETENTION_DAYS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    Checks = Mapping[str, tuple[Callable[[Any], Any], str]]

FILE = "memory-config.json"
LARGEST = 1_000_000
"""Size in bytes from which a file is not read as settings."""
SYSTEM = ("/", "/bin", "/boot", "/dev", "/etc", "/lib", "/proc", "/run", "/sbin", "/sys", "/usr", "/var")
"""Folders that hold no notes; a configuration that came with somebody's project may name them."""
USERS = ("/var/folders/", "/var/tmp/", "/var/home/", "/usr/home/", "/run/user/", "/run/media/")
"""Folders of users inside those of the system."""
FTS5, HYBRID = "fts5_bm25", "hybrid"
STRATEGIES = (FTS5, "title_tags", HYBRID)
THRESHOLDS = ("null", "fixed")
COLUMNS = ("title", "tags", "body")


class _Group:
    """Named values; the annotated attributes of a subclass are their names and defaults."""

    def __init__(self, **values: Any) -> None:
        unknown = values.keys() - self.__annotations__.keys()
        if unknown:
            names = ", ".join(self.__annotations__)
            raise TypeError(f"there is no setting {sorted(unknown)[0]!r}; the settings are {names}")
        self.__dict__.update(values)

    def values(self) -> dict[str, Any]:
        """Return every value by its name."""
        return {name: getattr(self, name) for name in self.__annotations__}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.values() == other.values()

    __hash__ = None  # type: ignore[assignment]  # it may hold mappings

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.values().items())})"


class AutoInject(_Group):
    """How the hook cuts its list; the two scores count under ``threshold: fixed`` only."""

    min_score_abs: float = 0.5
    relative_cutoff: float = 0.6
    max_results: int = 3


class OnDemand(_Group):
    """How a search on demand cuts its list."""

    min_score_abs: float = 0.1
    max_results: int = 10
    query_max_tokens: int = 20


class TranscriptContext(_Group):
    """How earlier turns of the user help a short prompt."""

    enabled: bool = True
    max_turns: int = 3
    tail_bytes: int = 8192


class Settings(_Group):
    """Everything that can be set, with its defaults.

    >>> Settings(hint=True).auto_inject.max_results
    3
    """

    enabled: bool = True
    match_strategy: str = HYBRID
    """One of STRATEGIES; 'hybrid' is words and meaning together."""
    threshold: str = "null"
    """'null': what chance reaches in this very store; 'fixed': the scores of ``auto_inject``."""
    hint: bool = False
    """Whether one line points to the search if nothing was found."""
    column_weights: tuple[float, float, float] = (5.0, 3.0, 1.0)
    """How much a word counts in title, tags and body."""
    body_max_chars: int = 2000
    query_max_tokens: int = 15
    auto_inject: AutoInject = AutoInject()
    search: OnDemand = OnDemand()
    transcript_context: TranscriptContext = TranscriptContext()
    retention_days: Mapping[str, int] = RETENTION_DAYS
    """Days since the last change that a category is shown; 0, or no entry, means for ever."""
    related_files_boost: bool = False
    """Whether a memory about a file that was just used gains 2.0."""
    roots: tuple[str, ...] = ()
    """Further folders, absolute, whose notes and memories are read and never written."""

    @property
    def word_strategy(self) -> str:
        """How words are searched."""
        return FTS5 if self.match_strategy == HYBRID else self.match_strategy

    @property
    def meaning_decides(self) -> bool:
        """Whether a hook compares meaning as well as words."""
        return self.match_strategy == HYBRID and self.threshold == "null"


def read_settings(root: str) -> tuple[Settings, list[str]]:
    """Return the settings of ``<root>/memory-config.json`` and what is wrong in it, one line per fault.

    A missing file sets nothing; a file that cannot be read sets nothing and is a fault. Nothing is raised.
    """
    path = os.path.join(root, FILE)
    try:
        text = read_plain(path, LARGEST).decode("utf-8-sig")
    except FileNotFoundError:
        return Settings(), []
    except OSError as error:
        why = "it is a link, and links are not followed" if os.path.islink(path) else error.strerror
        return Settings(), [f"{FILE} cannot be read: {why}; the defaults apply"]
    except ValueError as error:
        return Settings(), [f"{FILE} cannot be read: {error}; the defaults apply"]
    import json

    try:
        whole = json.loads(text)
    except (ValueError, RecursionError) as error:
        return Settings(), [f"{FILE} is not JSON: {error}; the defaults apply"]
    section = whole.get("retrieval", {}) if isinstance(whole, dict) else whole
    if not isinstance(section, dict):
        return Settings(), [f"{FILE}: retrieval is {section!r:.40}; write an object"]
    return from_section(section, root)


def from_section(section: Mapping[str, Any], root: str = "") -> tuple[Settings, list[str]]:
    """Return the settings in the object ``retrieval`` and its faults; relative folders start at ``root``.

    >>> settings, faults = from_section({"max_inject": 2, "hint": "yes"})
    >>> settings.auto_inject.max_results, faults
    (2, ["retrieval.hint is 'yes'; write true or false; False applies"])
    """
    faults: list[str] = []
    plain = {name: value for name, value in section.items() if name not in _GROUPS}
    top = _read(plain, "retrieval", _TOP, {**vars(Settings), "max_inject": AutoInject.max_results}, faults)
    alias = {"max_results": top.pop("max_inject")} if "max_inject" in top else {}
    for name, (checks, group) in _GROUPS.items():
        part = section.get(name, {})
        if not isinstance(part, dict):
            faults.append(f"retrieval.{name} is {part!r:.40}; write an object")
            continue
        values = _read(part, f"retrieval.{name}", checks, vars(group or Settings), faults)
        if group is AutoInject:
            values = {**alias, **values}
        top.update({name: group(**values)} if group else values)
    if "roots" in top:
        top["roots"] = tuple(_allowed(top["roots"], root, faults))
    return Settings(**top), faults


def _allowed(folders: tuple[str, ...], root: str, faults: list[str]) -> Iterator[str]:
    for folder in folders:
        whole = os.path.join(root, os.path.expanduser(folder))
        real = os.path.realpath(whole)
        inside = any(real == system or (system != "/" and real.startswith(system + "/")) for system in SYSTEM)
        if inside and not real.startswith(USERS):
            faults.append(f"retrieval.roots names {folder!r:.60}, a folder of the system; name one that holds notes")
        else:
            yield whole


def _read(
    part: Mapping[str, Any], place: str, checks: Checks, defaults: Mapping[str, Any], faults: list[str]
) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in part.items():
        if name not in checks:
            known = {*checks, *(_GROUPS if checks is _TOP else ())}
            faults.append(f"{place}.{name} is unknown; the settings are {', '.join(sorted(known))}")
            continue
        check, cure = checks[name]
        good = check(value)
        if good is None:
            faults.append(f"{place}.{name} is {value!r:.60}; write {cure}; {defaults[name]!r} applies")
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
        value = [value.get(name, default) for name, default in zip(COLUMNS, Settings.column_weights, strict=True)]
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
_TOP: Checks = {
    "enabled": _TRUTH,
    "match_strategy": _choice(STRATEGIES),
    "threshold": _choice(THRESHOLDS),
    "hint": _TRUTH,
    "related_files_boost": _TRUTH,
    "retention_days": (_retention, f"days per category, such as {{'session_summary': 90}}, from {', '.join(CATEGORIES)}"),
    "roots": (_folders, "a list of folders"),
    "max_inject": _count(0, 20),
}
_ENGINE: Checks = {
    "column_weights": (_weights, "numbers of 0 to 1000 for title, tags and body, not all 0"),
    "body_max_chars": _count(0, 100_000),
    "query_max_tokens": _count(1, 100),
}
_INJECT: Checks = {"min_score_abs": _number(1e6), "relative_cutoff": _number(1), "max_results": _count(0, 20)}
_SEARCH: Checks = {"min_score_abs": _number(1e6), "max_results": _count(1, 100), "query_max_tokens": _count(1, 100)}
_TRANSCRIPT: Checks = {"enabled": _TRUTH, "max_turns": _count(0, 20), "tail_bytes": _count(256, 262_144)}
_GROUPS: Mapping[str, tuple[Checks, type[_Group] | None]] = {
    "engine": (_ENGINE, None),
    "auto_inject": (_INJECT, AutoInject),
    "search": (_SEARCH, OnDemand),
    "transcript_context": (_TRANSCRIPT, TranscriptContext),
}
