"""Options that several commands have, each spelled once.

A command can take several of them as one keyword parameter whose type is a dataclass: the fields are the options
(``lazy.spread``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from ringtrue.cli import lib, show
from ringtrue.errors import InputError, MissingInput

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
BASELINE = Path("ringtrue-baseline.json")
BaselineFile = Annotated[Path, typer.Option("--baseline", "-b", help="The baseline's file.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace files that exist.")]
Source = Annotated[str, typer.Argument(metavar="SET", help="A golden set: a file, a folder, or a shipped name such as hotel.")]
StoreUrl = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="URL",
        show_default=False,
        help="A file or postgresql://…; default: RINGTRUE_STORE, url under [store], or .ringtrue/store.sqlite.",
    ),
]
Project = Annotated[str, typer.Option("--project", help="The project; default: project under [store].")]
Who = Annotated[str | None, typer.Option("--who", help="Your name, for the audit trail; default: this machine's user.")]
Since = Annotated[str | None, typer.Option("--since", help="Start of the window: 2026-03-01T12:00Z, or an age like 7d.")]
Until = Annotated[str | None, typer.Option("--until", help="End of the window, written like --since.")]
AGO = re.compile(r"(\d{1,6})\s*([mhdw])")
UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def command_group(help_text: str) -> typer.Typer:
    """Return an empty group of commands."""
    return typer.Typer(help=help_text, no_args_is_help=True, rich_markup_mode=None)


@dataclass(frozen=True)
class StoreOptions:
    """The store, the project in it, and how results are printed."""

    store: StoreUrl = None
    project: Project = "default"
    json: Json = False

    def open(self) -> lib.store.Store:
        """Return the open store, created if there is none."""
        return lib.store.Store.open(self.store)

    def existing(self) -> lib.store.Store:
        """Return the open store; raises MissingInput if there is none: a command that only reads must not create one."""
        return existing(self.store)

    def existing_with_data(self) -> lib.store.Store:
        """Return the open store as ``existing`` does; if the project has no data there, say which projects have."""
        found = existing(self.store)
        self.tell_elsewhere(found)
        return found

    def tell_elsewhere(self, found: lib.store.Store) -> None:
        """Say which projects have data if the chosen one has none."""
        there = found.projects()
        if there and self.project not in there:
            shown = ", ".join(f"'{name}'" for name in there[:8]) + (" …" if len(there) > 8 else "")
            show.note(
                f"project '{self.project}' has no searches here; try {shown}: --project NAME, or RINGTRUE_PROJECT for all "
                "commands"
            )


def existing(place: str | None) -> lib.store.Store:
    """Return an open store; raises MissingInput if there is none."""
    if not has_store(place):
        file = lib.store.Store.place(place).sqlite
        raise MissingInput(
            f"{file}: no store yet; `ringtrue eval` or the first logged search creates it. To use another one: --store URL"
        )
    return lib.store.Store.open(place)


def has_store(place: str | None) -> bool:
    """Return False if the store would be a file that does not exist."""
    file = lib.store.Store.place(place).sqlite
    return file is None or file.exists()


def moment(text: str | None, now: datetime) -> str | None:
    """Return a time as the store has it; ``7d`` is seven days before ``now``. Raises InputError for an invalid time.

    >>> moment("12h", datetime(2026, 3, 2, tzinfo=UTC))
    '2026-03-01T12:00:00.000000Z'
    """
    if text is None:
        return None
    ago = AGO.fullmatch(text.strip())
    try:
        return lib.store.timestamp(now - timedelta(**{UNITS[ago[2]]: int(ago[1])}) if ago else text)
    except OverflowError:
        raise InputError(f"'{text}' ago was before the year 1; write a shorter time, or a date") from None


@dataclass(frozen=True)
class Window:
    """The time that a command looks at."""

    since: Since = None
    until: Until = None

    def of(self, now: datetime) -> dict[str, Any]:
        """Return both ends as the store takes them; raises InputError for an invalid time."""
        return {"since": moment(self.since, now), "until": moment(self.until, now)}


def utc_now() -> datetime:
    """Return the present time."""
    return datetime.now(UTC)


def person(who: str | None) -> str:
    """Return who acts: as given, else this machine's user."""
    if who:
        return who
    try:
        import os
        import pwd

        return pwd.getpwuid(os.getuid()).pw_name
    except (ImportError, KeyError):  # Windows, or a user without a name
        return "command line"


def check_new(path: Path, *, overwrite: bool) -> None:
    """Raise InputError if a file exists that must not be overwritten."""
    if path.exists() and not overwrite:
        raise InputError(f"{path}: exists already; choose another name, or overwrite it (--overwrite)")


def pairs_of(items: Iterable[str], option: str, example: str) -> dict[str, str]:
    """Return what ``NAME=VALUE`` options say; raises InputError for anything else, and for a name that is given twice.

    >>> pairs_of(["city=Bath", "stars=4"], "--scope", "city=Bath")
    {'city': 'Bath', 'stars': '4'}
    """
    found: dict[str, str] = {}
    for item in items:
        name, _, value = (part.strip() for part in item.partition("="))
        if not name or not value:
            raise InputError(f"{option} {item!r:.80} cannot be read; write it like {option} {example}")
        if name in found:
            raise InputError(f"{option} names '{name}' twice ({found[name]!r} and {value!r}); give one value")
        found[name] = value
    return found


def columns_of(text: str) -> dict[str, str]:
    """Return what ``--columns`` says: our name of a column and the file's; raises InputError for anything else."""
    return pairs_of(filter(str.strip, text.split(",")), "--columns", "query=question,doc_id=sku")
