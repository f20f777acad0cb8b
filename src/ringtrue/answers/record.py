"""What all answers have in common: how pydantic, which the service uses and the client does not need, describes them."""

from __future__ import annotations

from dataclasses import is_dataclass
from typing import Any, ClassVar


def _as_answer(schema: dict[str, Any], record: type) -> None:
    """Leave out defaults, since an answer has every field, and describe inherited fields, which pydantic does not."""
    from pydantic import TypeAdapter

    for field in schema["properties"].values():
        field.pop("default", None)
    for base in filter(is_dataclass, record.__mro__[1:]):
        declared: Any = TypeAdapter(base).json_schema(mode="serialization")
        for name, field in declared["properties"].items():
            if "description" in field:
                schema["properties"][name].setdefault("description", field["description"])


class Record:
    """A record that the service answers and the client returns. The docstring of a field is its description in OpenAPI.

    A subclass may have further fields, such as the project of a row in the store: an answer has only those of its own record.
    """

    __slots__ = ()
    __pydantic_config__: ClassVar[dict[str, Any]] = {
        "extra": "forbid",
        "json_schema_extra": _as_answer,
        "json_schema_serialization_defaults_required": True,
        "use_attribute_docstrings": True,
    }
