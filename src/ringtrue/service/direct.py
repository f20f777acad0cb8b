"""Routes that are asked thousands of times a second: the body goes from the socket to its model, with nothing in between.

FastAPI's way through dependencies costs more than such a request itself. The OpenAPI document says of them what it says of any
other route, from the same model that reads the body.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Annotated, Any, Generic, TypeVar

from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import FailFast, TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from ringtrue.service.errors import Refused

Model = TypeVar("Model")


class Direct(APIRoute):
    """A route for POST whose function is given the request as it is, and returns the response."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        return self.endpoint


class OneOrMany(Generic[Model]):
    """A body that is one object, or a list of them."""

    def __init__(self, model: type[Model], *, most: int) -> None:
        self._one: TypeAdapter[Model] = TypeAdapter(model)
        # The first wrong one ends it: a list of nothing but wrong ones would hold an error for each.
        self._many: TypeAdapter[list[Model]] = TypeAdapter(Annotated[list[model], FailFast()])  # type: ignore[valid-type,arg-type]
        self._most = most

    async def read(self, request: Request) -> tuple[list[Model], int]:
        """Return what a request brings, and how many bytes it had; raises what ``taken`` and ``parse`` raise."""
        body = await self.taken(request)
        return self.parse(body), len(body)

    async def taken(self, request: Request) -> bytes:
        """Return the body of a request as it came; raises Refused for another kind of content."""
        kind = request.headers.get("content-type", "application/json")
        if not kind.startswith("application/json"):
            raise Refused(415, "unsupported_type", f"content-type '{kind:.60}' is not read here; send application/json")
        return await request.body()

    def parse(self, body: bytes) -> list[Model]:
        """Return what a body holds; raises RequestValidationError for a wrong one, Refused for none at all and for too many."""
        try:
            found = [self._one.validate_json(body)] if body.lstrip()[:1] != b"[" else self._many.validate_json(body)
        except ValidationError as problem:
            raise RequestValidationError([{**one, "loc": ("body", *one["loc"])} for one in problem.errors()]) from None
        if not 1 <= len(found) <= self._most:
            said = f"the list has {len(found):,} members; send 1 to {self._most:,} at a time"
            raise Refused(422, "invalid_input", said, field="body")
        return found

    def described(self, examples: dict[str, Any]) -> dict[str, Any]:
        """Return what the OpenAPI document says of the body, for ``openapi_extra``."""
        one = _whole(self._one.json_schema())
        schema = {"anyOf": [one, {"type": "array", "items": one, "minItems": 1, "maxItems": self._most}]}
        named = {name: {"value": value} for name, value in examples.items()}
        return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema, "examples": named}}}}


def _whole(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with what it refers to put in its place: the document has no room of its own for it."""
    parts = schema.pop("$defs", {})

    def put(value: Any) -> Any:
        if isinstance(value, dict):
            name = value.get("$ref", "").removeprefix("#/$defs/") if isinstance(value.get("$ref"), str) else ""
            return put(parts[name]) if name in parts else {key: put(item) for key, item in value.items()}
        return [put(item) for item in value] if isinstance(value, list) else value

    found: dict[str, Any] = put(schema)
    return found
