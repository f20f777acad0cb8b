"""Connectors: search systems that people already run, asked through the one protocol (R-7).

``open_connection("shop")`` opens what ``[connections.shop]`` in ringtrue.toml describes; in expressions it is
``connect('shop')``. The only room that opens outgoing network connections. Addresses and credentials never enter an expression,
a hash, a report or a log.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from ringtrue.config import load_config, with_port
from ringtrue.errors import InputError, nearest
from ringtrue.retrieve.connectors.base import Connector

KINDS: Mapping[str, tuple[str, str]] = {
    "http": ("http", "Http"),
    "mcp": ("mcp", "Mcp"),
    "command": ("command", "Command"),
    "postgres": ("postgres", "Postgres"),
    "pgvector": ("postgres", "Pgvector"),
    "opensearch": ("opensearch", "OpenSearch"),
    "elasticsearch": ("opensearch", "Elasticsearch"),
    "qdrant": ("qdrant", "Qdrant"),
    "milvus": ("milvus", "Milvus"),
    "chroma": ("chroma", "Chroma"),
    "sqlite": ("sqlite", "Sqlite"),
    "langchain": ("langchain", "LangChain"),
    "llamaindex": ("llamaindex", "LlamaIndex"),
    "run": ("run", "RunFile"),
}
"""Kind in ringtrue.toml → (module, class)."""
RERANKERS = ("rerank", "llm")
"""Kinds of connections that do not search; ``rerank`` opens them."""


def kind(name: str) -> type[Connector]:
    """Return the connector class of a kind; raises InputError with the nearest kinds."""
    if name not in KINDS:
        known = nearest(str(name), [*KINDS, *RERANKERS])
        raise InputError(f"there is no kind of connection '{name}'; did you mean {known}?")
    module, class_name = KINDS[name]
    found: type[Connector] = getattr(import_module(f"ringtrue.retrieve.connectors.{module}"), class_name)
    return found


def connect(system: str | Mapping[str, Any], *, name: str = "") -> Connector:
    """Return the search system of a name in ringtrue.toml, or the one that settings describe, ``{"kind": "http", "url": …}``.

    Raises InputError naming the wrong setting.
    """
    if isinstance(system, str):
        return open_connection(system)
    if not isinstance(system, Mapping):
        raise InputError(
            f"{system!r:.60} is no connection; give a name from ringtrue.toml, or settings like {{'kind': 'http', …}}"
        )
    return _described(system, name=name)


def _described(settings: Mapping[str, Any], *, name: str, folder: Path | None = None) -> Connector:
    where = f"connection '{name}'" if name else "the connection"
    given = dict(settings)
    wanted = given.pop("kind", None)
    if not isinstance(wanted, str):
        raise InputError(f"{where} says no kind; write kind = 'http' (known: {', '.join(KINDS)})")
    if wanted in RERANKERS:
        use = f"rerank(connection='{name or 'NAME'}')"
        raise InputError(f"{where} is of kind '{wanted}', which reranks and does not search; write … >> {use}")
    found = kind(wanted)
    fields = {item.name: item for item in dataclasses.fields(found) if item.name != "name"}
    for key in given:
        if key not in fields:
            raise InputError(
                f"{where} has the setting '{key}', which {wanted} does not know; did you mean {nearest(str(key), fields)}?"
            )
    missing = [key for key, item in fields.items() if key not in given and item.default is dataclasses.MISSING]
    missing = [key for key in missing if fields[key].default_factory is dataclasses.MISSING]
    if missing:
        raise InputError(f"{where} lacks the setting '{missing[0]}'; {wanted} needs it")
    if folder is not None:
        if "command" in given and "folder" in fields:
            given.setdefault("folder", ".")  # so that what its arguments name is looked for there too
        given = from_folder(folder, given, found.PATHS, where)
        if isinstance(model := given.get("model"), str) and (folder / model).is_dir():  # else it is the name of a model
            given["model"] = str(folder / model)
    return found(**given, name=name)


def from_folder(folder: Path, settings: Mapping[str, Any], paths: Iterable[str], where: str) -> dict[str, Any]:
    """Return settings whose relative ``paths`` are meant from ``folder``, where their file lies; raises InputError."""
    given = dict(settings)
    for key in paths:
        if isinstance(given.get(key), str) and given[key] and not given[key].startswith(":"):  # :memory: is no path
            try:
                given[key] = str(folder / Path(given[key]).expanduser())
            except RuntimeError:
                raise InputError(f"{where}: {key} begins with ~ of nobody known here; write the whole path") from None
    return given


def open_connection(name: str) -> Connector:
    """Return the connection of that name from ringtrue.toml; raises InputError naming those there are."""
    settings = load_config()
    if not isinstance(name, str) or not name.strip():
        there = ", ".join(f"'{known}'" for known in settings.connections) or "none"
        raise InputError(f"connect names no connection; write connect('shop') for [connections.shop] (described: {there})")
    if name not in settings.connections:
        known = f"did you mean {nearest(name, settings.connections)}?" if settings.connections else "none is described"
        raise InputError(f"ringtrue.toml has no [connections.{name}]; {known}")
    given = with_port(settings.connections[name], f"connection '{name}'")
    return _described(given, name=name, folder=settings.file.parent if settings.file else None)
