"""Keys, tokens and passwords have no place in a memory (A-8): where they are in a record, and the record without them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ringtrue.errors import InputError
from ringtrue.memory.hook.guard import find_secrets


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
