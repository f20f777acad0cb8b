"""What requests and answers have in common: strict models, pages with cursors, and bounded texts."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Annotated, Any, Generic, TypeVar

from fastapi import Depends, Query, Request
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag
from pydantic_core import from_json

from ringtrue.answers import Record
from ringtrue.errors import InputError
from ringtrue.log.redact import DEPTH
from ringtrue.service.errors import Refused
from ringtrue.store import timestamp

Item = TypeVar("Item")
Answer = TypeVar("Answer", bound=Record)
MOST_ITEMS = 200


def _harmless(name: str) -> str:
    if not name.isprintable():
        raise ValueError("must not contain invisible characters")
    return name


Name = Annotated[str, Field(min_length=1, max_length=200)]
"""An id that others have given: any letters."""
Label = Annotated[Name, AfterValidator(_harmless)]
"""A name that is given here, and shown to others."""


def numbered(value: Any) -> Any:
    """Return a whole number as text, as ids are kept, and anything else as it is; to JSON, 12.0 is a whole number, too."""
    whole = type(value) is int or (type(value) is float and value.is_integer())
    return str(int(value)) if whole and abs(value) < 1e199 else value


Id = Annotated[Name, BeforeValidator(numbered, json_schema_input_type=Name | int)]
"""An id, which programs may send as a number; it is kept as text."""
Line = Annotated[str, Field(max_length=2_000)]
Text = Annotated[str, Field(max_length=100_000)]
Moment = Annotated[str, Field(max_length=40, examples=["2026-01-31T12:00:00Z"])]
"""ISO 8601; the store says what it cannot read."""
MOST_FREE = 20_000
"""Letters of what a caller may add in fields of their own, as JSON."""


def bounded_json(value: Any, most: int) -> str:
    """Return a value as JSON; raises ValueError for what JSON cannot hold, or more than so many letters."""
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("holds half of a surrogate pair, which is not a character") from None
    except ValueError:
        raise ValueError("holds NaN or an infinite number; write null if a figure is not defined") from None
    if len(text) > most:
        raise ValueError(f"must be shorter than {most:,} letters of JSON")
    return text


def _modest(value: dict[str, Any]) -> dict[str, Any]:
    # Nothing else bounds what lies inside, and the log keeps it with every row.
    text = bounded_json(value, MOST_FREE) if value else ""
    # What lies deeper would be left out on the way to the store, without a word. Most are flat, as their brackets tell.
    if text.count("{") + text.count("[") > DEPTH and _deeper(value, DEPTH):
        raise ValueError(f"must not be nested deeper than {DEPTH} levels")
    return value


def _deeper(value: Any, levels: int) -> bool:
    """True if more than so many lists and objects lie in each other."""
    if not isinstance(value, dict | list):
        return False
    return levels == 0 or any(_deeper(one, levels - 1) for one in (value.values() if isinstance(value, dict) else value))


Free = Annotated[dict[Name, Any], AfterValidator(_modest)]
"""Fields of the caller's own, within bounds."""


class Strict(BaseModel):
    """A request: types are not converted, and an unknown field is an error; ``examples`` go into the OpenAPI document."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    def __init_subclass__(cls, *, examples: Sequence[dict[str, Any]] = (), **more: Any) -> None:
        super().__init_subclass__(**more)
        if examples:
            cls.model_config = {**cls.model_config, "json_schema_extra": {"examples": list(examples)}}


def one_or_many(model: type[Strict], *, most: int) -> Any:
    """Return the type of a body that is one object, or a list of up to ``most``; ``as_list`` makes a list of either."""

    def bounded(found: Any) -> Any:
        if isinstance(found, list) and not 1 <= len(found) <= most:
            raise ValueError(f"the list has {len(found):,} members; send 1 to {most:,} at a time")
        return found

    # The first wrong one ends it: a list of nothing but wrong ones would hold an error for each.
    several = Annotated[list[model], Field(min_length=1, max_length=most, fail_fast=True), BeforeValidator(bounded), Tag(MANY)]  # type: ignore[valid-type]
    return Annotated[Annotated[model, Tag(ONE)] | several, Discriminator(lambda body: MANY if isinstance(body, list) else ONE)]


ONE, MANY = "(one)", "(many)"
"""What pydantic calls the two in the place of an error."""


def as_list(body: Any) -> list[Any]:
    """Return one or many as a list."""
    return body if isinstance(body, list) else [body]


async def _json_only(request: Request) -> None:
    kind = request.headers.get("content-type", "application/json")
    if not kind.startswith("application/json"):
        raise Refused(415, "unsupported_type", f"content-type '{kind:.60}' is not supported; send application/json")


JSON_ONLY = [Depends(_json_only)]
"""The dependencies of a route that says so if it is sent another kind of content."""


def body_size(request: Request) -> int:
    """Return how many bytes the body of a request says it has; 0 if it does not say."""
    return int(request.headers.get("content-length", 0))


def named_examples(examples: dict[str, Any]) -> Any:
    """Return examples as the OpenAPI document names them."""
    return {name: {"value": value} for name, value in examples.items()}


class Page(BaseModel, Generic[Item]):
    """Some of a list, and where it goes on."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    items: Sequence[Item]
    next: str | None = Field(None, description="Give it as ?cursor=… for what comes after; null at the end.")


def record_from(kind: type[Answer], *sources: object, **own: Any) -> Answer:
    """Return an answer with the fields of ``own``; the others are those of the first source that has them.

    >>> from ringtrue.answers import Condition, FlagState
    >>> record_from(Condition, FlagState("rerank"), holds=None, says="")
    Condition(name='rerank', holds=None, says='')
    """
    names = [field.name for field in fields(kind) if field.name not in own]  # type: ignore[arg-type]  # all are dataclasses
    found = {name: getattr(source, name) for source in reversed(sources) for name in names if hasattr(source, name)}
    return kind(**found, **own)


def plain(value: Any) -> Any:
    """Return a structure as JSON has it; a number that is none is unknown."""
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float) or value is None else str(value)


def wrong_cursor() -> Refused:
    """Return the refusal of a cursor that no page has returned."""
    said = "invalid cursor; take it from `next` of the page before, or start again without one"
    return Refused(422, "invalid_cursor", said, field="query.cursor")


def place_cursor(*parts: Any) -> str:
    """Return a cursor that holds the place of an item in its list."""
    text = json.dumps(parts, ensure_ascii=False, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode()


def place_in(cursor: str, *kinds: type) -> Any:
    """Return the parts of a ``place_cursor``; ``datetime`` stands for a time as the store writes it.

    Raises Refused (422) for a cursor without parts of these kinds.
    """
    try:
        parts = from_json(base64.urlsafe_b64decode(cursor), allow_inf_nan=False)
        for part, kind in zip(parts, kinds, strict=True):
            if not (timestamp(part) == part if kind is datetime else isinstance(part, kind)):
                raise wrong_cursor()
    except (ValueError, TypeError, InputError):
        raise wrong_cursor() from None
    return tuple(parts)


Limit = Annotated[int, Query(ge=1, le=MOST_ITEMS, description="How many at most.")]
Cursor = Annotated[str | None, Query(max_length=5_000, description="`next` of the page before.")]


def paged(
    items: Sequence[Any], limit: int, cursor_of: str | Callable[[Any], str], shown: Callable[[Any], Any] = lambda item: item
) -> Page[Any]:
    """Return the first ``limit`` of ``limit + 1`` items that were asked for, each as ``shown`` makes it, and the next cursor.

    The cursor is the attribute ``cursor_of`` of the last one, or what that makes of it; None if there are no more.
    """
    here, after = items[:limit], None
    if len(items) > limit:
        after = str(getattr(here[-1], cursor_of)) if isinstance(cursor_of, str) else cursor_of(here[-1])
    return Page(items=list(map(shown, here)), next=after)


def paged_after(
    items: Sequence[Any], cursor: str | None, limit: int, name: str, shown: Callable[[Any], Any] = lambda item: item
) -> Page[Any]:
    """Return the page of a whole list that follows ``cursor``, the attribute ``name`` of an item.

    Raises Refused (422) for a cursor that no item has.
    """
    start = 0
    if cursor is not None:
        start = next((place for place, one in enumerate(items, 1) if getattr(one, name) == cursor), 0)
        if not start:
            raise wrong_cursor()
    return paged(items[start:], limit, name, shown)
