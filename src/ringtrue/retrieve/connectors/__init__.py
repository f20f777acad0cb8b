"""Connectors: search systems that people already run, asked through the one protocol.

``open_connection("shop")`` opens what ``[connections.shop]`` in ringtrue.toml describes; in expressions it is
``connect('shop')``. The only room that opens outgoing network connections. Addresses and credentials never enter an expression,
a hash, a report or a log.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from ringtrue.config import load_config, with_port
from ringtrue.errors import InputError, nearest
from ringtrue.retrieve.connectors.base import Connector, Remote

R = TypeVar("R", bound=Remote)

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
    "langchain": ("objects", "LangChain"),
    "llamaindex": ("objects", "LlamaIndex"),
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
            f"{system!r:.60} is not a connection; give a name from ringtrue.toml, or settings like {{'kind': 'http', …}}"
        )
    return _search(dict(system), name=name)


def open_connection(name: str) -> Connector:
    """Return the connection of that name from ringtrue.toml; raises InputError naming those there are."""
    if not isinstance(name, str) or not name.strip():
        there = ", ".join(f"'{known}'" for known in load_config().connections) or "none"
        raise InputError(f"connect() needs a name; write connect('shop') for [connections.shop] (available: {there})")
    settings, folder = settings_of(name)
    return _search(settings, name=name, folder=folder)


def settings_of(name: str) -> tuple[dict[str, Any], Path | None]:
    """Return the settings of a connection in ringtrue.toml, and the folder of that file."""
    config = load_config()
    if name not in config.connections:
        known = f"did you mean {nearest(name, config.connections)}?" if config.connections else "none is described"
        raise InputError(f"ringtrue.toml has no [connections.{name}]; {known}")
    settings = dict(with_port(config.connections[name], f"connection '{name}'"))
    return settings, config.file.parent if config.file else None


def _search(settings: dict[str, Any], *, name: str, folder: Path | None = None) -> Connector:
    where = f"connection '{name}'" if name else "the connection"
    wanted = settings.pop("kind", None)
    if not isinstance(wanted, str):
        raise InputError(f"{where} has no kind; write kind = 'http' (known: {', '.join(KINDS)})")
    if wanted in RERANKERS:
        use = f"rerank(connection='{name or 'NAME'}')"
        raise InputError(f"{where} is of kind '{wanted}', which reranks and does not search; write … >> {use}")
    return described(kind(wanted), settings, kind=wanted, name=name, folder=folder)


def described(made: type[R], settings: Mapping[str, Any], *, kind: str, name: str, folder: Path | None) -> R:
    """Return what settings describe; relative paths are meant from the folder of their file. Raises InputError."""
    where = f"connection '{name}'" if name else "the connection"
    given = dict(settings)
    fields = {item.name: item for item in dataclasses.fields(made) if item.name != "name"}
    for key in given:
        if key not in fields:
            if key == "port" and "url" in fields:
                raise InputError(f"{where}: port is set, but url has no {{port}}; write {{port}} in url, or remove port")
            raise InputError(
                f"{where} has the setting '{key}', which {kind} does not know; did you mean {nearest(str(key), fields)}?"
            )
    for key, item in fields.items():
        if key not in given and item.default is item.default_factory is dataclasses.MISSING:
            raise InputError(f"{where} lacks the setting '{key}'; {kind} needs it")
    if folder is not None:
        if "command" in given and "folder" in fields:
            given.setdefault("folder", ".")  # so that what its arguments name is looked for there too
        for key in made.PATHS:
            if isinstance(given.get(key), str) and given[key] and not given[key].startswith(":"):  # :memory: is not a path
                try:
                    given[key] = str(folder / Path(given[key]).expanduser())
                except RuntimeError:
                    raise InputError(f"{where}: {key} begins with ~ of an unknown user; write the whole path") from None
        if isinstance(model := given.get("model"), str) and (folder / model).is_dir():  # else it is the name of a model
            given["model"] = str(folder / model)
    return made(**given, name=name)
