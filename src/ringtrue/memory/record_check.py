"""Everything that is wrong with the record of a memory, not only what keeps it from being read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import PurePath
from typing import Any, NamedTuple

from ringtrue.errors import InputError, nearest
from ringtrue.memory.hook.guard import clean_title, find_secrets
from ringtrue.memory.hook.memory import (
    BODY_FIELDS,
    CATEGORIES,
    ID_LIMIT,
    LINKS,
    SCHEMA_VERSION,
    STATUSES,
    TIERS,
    TITLE_LIMIT,
    MemoryFault,
    from_record,
)

_KEBAB = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_CHOICES = {"category": CATEGORIES, "record_status": STATUSES, "importance_tier": TIERS}
_READABLE = {"id": "x", "category": CATEGORIES[0], "title": "x"}


def kebab(text: str) -> str:
    """Return an id made from a text: small letters, digits and single '-', at most 80 characters, cut between words.

    >>> kebab("Money is stored as integer minor units (EUR, USD)!")
    'money-is-stored-as-integer-minor-units-eur-usd'
    """
    import unicodedata

    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    name = "-".join(re.findall(r"[a-z0-9]+", plain))
    if len(name) <= ID_LIMIT:
        return name
    cut = name[: ID_LIMIT + 1].rpartition("-")[0]
    return cut or name[:ID_LIMIT]


def id_problem(value: object) -> str | None:
    """Return what is wrong with an id, and the cure; None if nothing is."""
    if not isinstance(value, str) or not value:
        return f"id is {_shown(value)}; use lowercase letters, digits and '-', at most {ID_LIMIT}"
    if len(value) > ID_LIMIT:
        return f"id {_shown(value)} has {len(value)} characters; write at most {ID_LIMIT}, such as '{kebab(value)}'"
    if not _KEBAB.fullmatch(value):
        cure = f", such as '{kebab(value)}'" if kebab(value) else ""
        return f"id {_shown(value)} is not kebab-case; use lowercase letters, digits and single '-'{cure}"
    return None


def title_problem(value: object) -> str | None:
    """Return what is wrong with a title, and the cure; None if nothing is."""
    if not isinstance(value, str) or not value.strip():
        return f"title is {_shown(value)}; write one line that says what was learned"
    if len(value) > TITLE_LIMIT:
        return f"title has {len(value)} characters; write at most {TITLE_LIMIT} and put the rest into content"
    if clean_title(value) != value:
        return f"title has characters or marks that are never shown; write it as {_shown(clean_title(value), 130)}"
    return None


def problems(record: Any, path: str = "", *, any_content: bool = False) -> list[str]:
    """Return every problem of the record of a memory, one line each, what makes it unreadable first; none for a good one.

    With ``any_content`` the content may have fields of its own, as the memories of others do; they are searched like ours.

    >>> problems({"id": "Tabs", "category": "preference", "title": "Tabs"})[0]
    "id 'Tabs' is not kebab-case; use lowercase letters, digits and single '-', such as 'tabs'"
    """
    if not isinstance(record, Mapping):
        return [f"the file holds {_shown(record)}, not a memory; write one object with 'id', 'category' and 'title'"]
    named = (id_problem(record.get("id")), title_problem(record.get("title")))
    # An id is made from the title, so a missing title is what to say first.
    found = [problem for problem in (named if record.get("id") else named[::-1]) if problem]
    found += _unreadable(record)
    found += _content(record, any_content=any_content)
    found += _dates(record)
    found += _references(record)
    try:
        from_record(dict(record), path)
    except MemoryFault as fault:
        name = str(fault).split(" ", 1)[0]
        if not any(problem.startswith(name) for problem in found):
            found.insert(0, str(fault))
    memory_id, category = record.get("id"), record.get("category")
    place = PurePath(path)
    if path and isinstance(memory_id, str) and place.stem != memory_id:
        found.append(f"the file is called {place.name}, its id is {_shown(memory_id)}; give both the same name")
    if path and category in CATEGORIES and place.parent.name in CATEGORIES and place.parent.name != category:
        found.append(f"the file lies in {place.parent.name}/, its category is {category}; move it or correct the category")
    return found


def _unreadable(record: Mapping[str, Any]) -> list[str]:
    """Return what reading refuses, each field for itself."""
    found = []
    if record.get("schema_version", SCHEMA_VERSION) != SCHEMA_VERSION:
        found.append(f"schema_version is {_shown(record['schema_version'])}; this version writes {SCHEMA_VERSION!r}")
    for name in (*_CHOICES, "confidence", "tags", "related_files", "trigger_phrases"):
        value = record.get(name)
        try:
            from_record({**_READABLE, name: value})
        except MemoryFault as fault:
            nearly = isinstance(value, str) and name in _CHOICES
            near = f"{name} is {_shown(value)}; did you mean {nearest(str(value), _CHOICES[name])}?" if nearly else ""
            found.append(near or str(fault))
    return found


def _content(record: Mapping[str, Any], *, any_content: bool) -> list[str]:
    content, category = record.get("content"), record.get("category")
    if content is not None and not isinstance(content, Mapping):
        return [f"content is {_shown(content)}; write an object with the fields of the category"]
    fields = BODY_FIELDS.get(category, ()) if isinstance(category, str) else ()
    if not content or not any(content.values()):
        return ["content is empty; write what was learned" + (f" under {' or '.join(fields[:3])}" if fields else "")]
    return [
        f"content.{name} is not a field of a {category}; did you mean {nearest(name, fields)}?"
        for name in content
        if fields and name not in fields and not any_content
    ]


def _dates(record: Mapping[str, Any]) -> list[str]:
    found, read = [], {}
    for name in ("created_at", "updated_at"):
        value = record.get(name)
        if value in (None, ""):
            if name == "created_at":
                found.append("created_at is missing; write a time such as 2026-03-01T12:00:00Z")
            continue
        when = moment_of(value)
        if when is None:
            found.append(f"{name} is {_shown(value)}; write a time such as 2026-03-01T12:00:00Z")
        else:
            read[name] = when
    if len(read) == 2 and read["updated_at"] < read["created_at"]:
        found.append("updated_at is before created_at; correct one of them")
    return found


def _references(record: Mapping[str, Any]) -> list[str]:
    found = []
    links = record.get("links")
    if links is not None and not isinstance(links, Mapping):
        return [f"links is {_shown(links)}; write an object such as {{'leads_to': ['another-id']}}"]
    for kind in links or {}:
        if kind not in LINKS:
            found.append(f"links.{kind} is not a kind of link; did you mean {nearest(kind, LINKS)}?")
    for name, ids in references_of(record).items():
        if record.get("id") in ids:
            found.append(f"{name} names the memory itself; take it out")
    return found


def references_of(record: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the ids that a record names, by the field that names them; what is not an id is left out."""
    links = record.get("links")
    named: dict[str, Any] = {f"links.{kind}": ids for kind, ids in links.items()} if isinstance(links, Mapping) else {}
    named |= {kind: record[kind] for kind in LINKS if kind in record}
    supersedes = record.get("supersedes")
    named["supersedes"] = [supersedes] if isinstance(supersedes, str) else supersedes
    return {
        name: [one for one in ids if isinstance(one, str) and one]
        for name, ids in named.items()
        if isinstance(ids, Sequence) and not isinstance(ids, str) and ids
    }


def moment_of(value: object) -> datetime | None:
    """Return a time as written in a memory, with a time zone; None if it is none."""
    from datetime import UTC

    if not isinstance(value, str):
        return None
    try:
        when = datetime.fromisoformat(value)
    except ValueError:
        return None
    return when if when.tzinfo else when.replace(tzinfo=UTC)


def _shown(value: object, limit: int = 60) -> str:
    text = "missing" if value is None else repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."


class Secret(NamedTuple):
    """Something that must not be stored: its field, such as ``content.steps[2]``, its kind, and where it stands there."""

    field: str
    kind: str
    start: int
    end: int
    value: str

    def __repr__(self) -> str:  # the value must not reach a log
        return f"Secret({self})"

    def __str__(self) -> str:
        return f"{self.field}, characters {self.start + 1} to {self.end}: a {self.kind}"


def secrets_in(record: Mapping[str, Any]) -> list[Secret]:
    """Return every secret in the texts of a record.

    >>> [str(one) for one in secrets_in({"content": {"steps": ["psql postgres://app:correct-horse@db/main"]}})]
    ['content.steps[0], characters 21 to 33: a login']
    """
    return [secret for field, name, text in _texts(record) for secret in _of(field, name, text)]


def without_secrets(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the record with ``[token removed]`` and the like in place of every secret.

    >>> without_secrets({"title": "postgres://app:correct-horse@db/main"})
    {'title': 'postgres://app:[login removed]@db/main'}
    """
    return {name: _cleaned(name, value) for name, value in record.items()}


def refuse_secrets(record: Mapping[str, Any], *, before: Mapping[str, Any] | None = None) -> None:
    """Raise InputError that says what is where; what a record had ``before`` already is doctor's to report, not ours."""
    known = {secret.value for secret in secrets_in(before)} if before is not None else set()
    fresh = [secret for secret in secrets_in(record) if secret.value not in known]
    if fresh:
        name = f"'{record['id']}'" if record.get("id") else "the memory"
        places = "; ".join(map(str, fresh[:5])) + (f"; and {len(fresh) - 5} more" if len(fresh) > 5 else "")
        raise InputError(
            f"{name} holds what must not be stored ({places}); "
            "name the place where it is kept instead, or use --redact to have it replaced"
        )


def _of(field: str, name: str, text: str) -> list[Secret]:
    # A field called password says what its value is; the name is read with it, as in the file.
    start = f'"{name}": "'
    found = find_secrets(f'{start}{text}"')
    return [
        Secret(field, kind, max(0, begin - len(start)), end - len(start), text[max(0, begin - len(start)) : end - len(start)])
        for kind, begin, end in found
        if end > len(start)
    ]


def _texts(value: Any, field: str = "", name: str = "") -> list[tuple[str, str, str]]:
    if isinstance(value, str):
        return [(field, name, value)]
    if isinstance(value, Mapping):
        return [one for key, item in value.items() for one in _texts(item, f"{field}.{key}" if field else str(key), str(key))]
    if isinstance(value, list | tuple):
        return [one for place, item in enumerate(value) for one in _texts(item, f"{field}[{place}]", name)]
    return []


def _cleaned(name: str, value: Any) -> Any:
    if isinstance(value, str):
        for secret in reversed(_of("", name, value)):
            value = f"{value[: secret.start]}[{secret.kind} removed]{value[secret.end :]}"
        return value
    if isinstance(value, Mapping):
        return {key: _cleaned(str(key), item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(name, item) for item in value]
    return value
