"""Tools that take exactly what they say (A-7): unknown arguments are refused, and a refusal is one line with its cure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.server.mcpserver.tools import Tool
from mcp_types import CallToolResult, InputRequiredResult, ToolAnnotations
from pydantic import ConfigDict, ValidationError

from ringtrue.errors import RingtrueError, nearest
from ringtrue.memory.hook.memory import MemoryFault
from ringtrue.traffic import META, Traffic, marked, received

ALWAYS_LOAD = "anthropic/alwaysLoad"
"""Hosts that put tools behind a search show those with this mark at once."""
ANTICIPATED = (RingtrueError, MemoryFault, OSError)


def strict_tool(function: Callable[..., Any], *, always: bool, reads: bool) -> Tool:
    """Return a tool made from a function, whose schema allows no further argument and no value of another type."""
    tool = Tool.from_function(
        function,
        description=" ".join((function.__doc__ or "").split()),
        annotations=ToolAnnotations(read_only_hint=reads, destructive_hint=False, open_world_hint=False),
        meta={ALWAYS_LOAD: True} if always else None,
        structured_output=True,
    )
    given: Any = tool.fn_metadata.arg_model
    exact: Any = type(
        given.__name__, (given,), {"model_config": ConfigDict(extra="forbid", strict=True), "__module__": __name__}
    )
    tool.fn_metadata.arg_model = exact
    tool.parameters = exact.model_json_schema(by_alias=True)
    return tool


class StrictServer(MCPServer[Any]):
    """A server whose tool errors are one line each: what was given, what is wrong with it, and the cure."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        tools = {tool.name: tool for tool in self._tool_manager.list_tools()}
        if name not in tools:
            raise ToolError(f"there is no tool '{name}'; did you mean {nearest(name, tools)}?")
        try:
            with marked(_traffic(context)):
                return await super().call_tool(name, arguments, context)
        except ToolError as error:
            cause = error.__cause__
            if isinstance(cause, ValidationError):
                raise ToolError(refusal(cause, list(tools[name].parameters.get("properties", {})))) from cause
            if isinstance(cause, ANTICIPATED):
                raise ToolError(" ".join(str(cause).split())) from cause
            if isinstance(error, UnexpectedToolError):
                raise UnexpectedToolError(
                    f"{name} failed: {type(cause).__name__}; the server's log has the whole story"
                ) from cause
            raise


def _traffic(context: Context[Any, Any] | None) -> Traffic:
    """Return whose call it is, as its metadata says."""
    meta = None if context is None else context.request_context.meta
    found = (meta or {}).get(META)
    return received(found if isinstance(found, str) else None)


def refusal(error: ValidationError, known: Sequence[str]) -> str:
    """Return the first fault of a tool's arguments in one line: the argument, its value and what to write instead."""
    first = error.errors()[0]
    name = ".".join(str(part) for part in first["loc"] if not _is_type(part))
    more = f" (and {error.error_count() - 1} more faults)" if error.error_count() > 1 else ""
    if first["type"] == "missing":
        return f"{name} is missing; give it{more}"
    if first["type"] == "extra_forbidden":
        return f"there is no argument '{name}'; did you mean {nearest(name, known)}?{more}"
    shown = repr(first["input"])
    message = first["msg"].partition("should ")[2] or first["msg"]
    return f"{name} is {shown if len(shown) <= 60 else shown[:57] + '...'}; it should {message}{more}"


def _is_type(part: object) -> bool:
    """True for what pydantic adds to a place to say which member of a union it tried."""
    return isinstance(part, str) and (part in ("int", "float", "str", "bool", "none") or part.startswith(("literal[", "list[")))
