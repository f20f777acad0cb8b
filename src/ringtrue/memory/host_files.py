"""Our entries in the files of hosts: into hooks.json, config.toml and opencode.json, and out again alone."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ringtrue.errors import InputError

SERVER = "ringtrue-memory"
BEGIN, END = f"# {SERVER}: begin, written by `ringtrue memory install`", f"# {SERVER}: end"
NOTHING_DONE = "nothing was changed"


def with_hooks(data: bytes | None, place: str, hooks: Mapping[str, Sequence[Mapping[str, Any]]]) -> bytes:
    """Return a hooks.json with these groups at the end of their events; raises InputError if it cannot be read."""
    record = _object(data, place)
    events = record.setdefault("hooks", {})
    if not isinstance(events, dict):
        raise InputError(f"{place}: hooks is {_kind(events)}, not an object of events; correct it, {NOTHING_DONE}")
    for event, groups in hooks.items():
        there = events.setdefault(event, [])
        if not isinstance(there, list):
            raise InputError(f"{place}: hooks.{event} is {_kind(there)}, not a list; correct it, {NOTHING_DONE}")
        there.extend(groups)
    return _written(record)


def with_server(data: bytes | None, place: str, server: Mapping[str, Any]) -> bytes:
    """Return an opencode.json with our MCP server; raises InputError if it cannot be read or has another of that name."""
    record = _object(data, place)
    servers = record.setdefault("mcp", {})
    if not isinstance(servers, dict):
        raise InputError(f"{place}: mcp is {_kind(servers)}, not an object of servers; correct it, {NOTHING_DONE}")
    if SERVER in servers:
        raise InputError(f"{place} has a server '{SERVER}' that this did not write; rename or remove it, {NOTHING_DONE}")
    servers[SERVER] = dict(server)
    return _written(record)


def with_table(data: bytes | None, place: str, server: Mapping[str, Any]) -> bytes:
    """Return a config.toml with our ``[mcp_servers.…]`` table at its end; raises InputError as ``with_server`` does."""
    text = _text(data or b"", place)
    record = _toml(text, place)
    servers = record.get("mcp_servers", {})
    if isinstance(servers, dict) and SERVER in servers:
        raise InputError(f"{place} has a server '{SERVER}' that this did not write; rename or remove it, {NOTHING_DONE}")
    # JSON's texts and lists are TOML's.
    values = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in server.items()]
    block = "\n".join((BEGIN, f"[mcp_servers.{SERVER}]", *values, END, ""))
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    after = text + gap + block
    try:
        tomllib.loads(after)
    except tomllib.TOMLDecodeError:
        raise InputError(
            f"{place}: mcp_servers is written so that no table can be added; write it as tables, {NOTHING_DONE}"
        ) from None
    return after.encode()


def with_lines(data: bytes | None, place: str, lines: Sequence[str], command: str) -> bytes:
    """Return a text file with lines of ours at its end, between marks that name ``command``."""
    text = _text(data or b"", place)
    begin, end = _marks(command)
    return (text + ("\n" if text and not text.endswith("\n") else "") + "\n".join((begin, *lines, end, ""))).encode()


def _marks(command: str) -> tuple[str, str]:
    return f"# {command}: begin, written by `ringtrue memory install`", f"# {command}: end"


def without_ours(command: str) -> Callable[[str, str, bytes, bytes | None], bytes | None]:
    """Return a function that takes our entries out of an edited file; ``command`` is what those of our hooks contain.

    It returns None if nothing else is left of a file that we made, and raises InputError if it cannot be read.
    """

    def strip(place: str, kind: str, data: bytes, before: bytes | None) -> bytes | None:
        if kind == "toml":
            return _without_table(data, before, place)
        if kind == "lines":
            return _without_block(_text(data, place), before, *_marks(command))
        record = _object(data, place)
        old = json.loads(before) if before else {}
        if kind == "hooks":
            _drop_hooks(record, command)
        else:
            servers = record.get("mcp")
            if isinstance(servers, dict):
                servers.pop(SERVER, None)
        for name in ("hooks", "mcp"):
            if record.get(name) == {} and name not in old:
                del record[name]
        if not record and before is None:
            return None
        return before if before is not None and record == old else _written(record)

    return strip


def _drop_hooks(record: dict[str, Any], command: str) -> None:
    events = record.get("hooks")
    if not isinstance(events, dict):
        return
    for event, groups in list(events.items()):
        if not isinstance(groups, list):
            continue
        kept = []
        for group in groups:
            hooks = group.get("hooks") if isinstance(group, dict) else None
            if isinstance(hooks, list) and any(_ours(hook, command) for hook in hooks):
                others = [hook for hook in hooks if not _ours(hook, command)]
                if others:
                    kept.append({**group, "hooks": others})
            else:
                kept.append(group)
        if kept or not groups:
            events[event] = kept
        else:
            del events[event]


def _ours(hook: Any, command: str) -> bool:
    return isinstance(hook, dict) and command in str(hook.get("command", "")).replace("\\", "/")


def _without_table(data: bytes, before: bytes | None, place: str) -> bytes | None:
    text = _text(data, place)
    if BEGIN not in text and SERVER in _toml(text, place).get("mcp_servers", {}):
        raise InputError(
            f"{place}: the marks around [mcp_servers.{SERVER}] are gone; take the table out by hand, {NOTHING_DONE}"
        )
    return _without_block(text, before, BEGIN, END)


def _without_block(text: str, before: bytes | None, begin: str, end: str) -> bytes | None:
    """Return a text without the block between two marks; None if nothing else is left of a file that we made."""
    start, stop = text.find(begin), text.find(end)
    if start < 0 or stop < start:
        return text.encode()
    head, tail = text[:start], text[stop + len(end) :].removeprefix("\n")
    old = (before or b"").decode("utf-8", "replace")
    if head.rstrip("\n") == old.rstrip("\n"):
        head = old  # the lines between were ours
    after = head + ("\n" if head and tail and not head.endswith("\n") and not tail.startswith("\n") else "") + tail
    return None if before is None and not after.strip() else after.encode()


def _object(data: bytes | None, place: str) -> dict[str, Any]:
    text = _text(data or b"", place)
    if not text.strip():
        return {}
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise InputError(f"{place} is not plain JSON ({problem}); correct it or take comments out, {NOTHING_DONE}") from None
    if not isinstance(record, dict):
        raise InputError(f"{place} holds {_kind(record)}, not an object; correct it, {NOTHING_DONE}")
    return record


def _toml(text: str, place: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise InputError(f"{place} is not TOML ({problem}); correct it, {NOTHING_DONE}") from None


def _text(data: bytes, place: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{place} is not UTF-8; save it as UTF-8, {NOTHING_DONE}") from None


def _written(record: Mapping[str, Any]) -> bytes:
    return (json.dumps(record, indent=2, ensure_ascii=False) + "\n").encode()


def _kind(value: object) -> str:
    return {dict: "an object", list: "a list", str: "a text", type(None): "null"}.get(type(value), f"{value!r:.40}")
