"""What users rely on, one line each: commands with options, routes with fields, tables with columns, public names, formats.

`python tests/surface.py` writes tests/contract/surface.txt; test_surface.py fails if the two differ. If a line goes or changes,
CHANGELOG gives the reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

import ringtrue
from ringtrue.cli import app
from ringtrue.golden.formats import FORMATS as GOLDEN_FORMATS
from ringtrue.retrieve import ALL as RETRIEVERS
from ringtrue.retrieve.connectors import KINDS
from ringtrue.service import Settings, create_app
from ringtrue.store.tables import METADATA

FILE = Path(__file__).parent / "contract" / "surface.txt"


def surface() -> list[str]:
    """Return every line of the surface, sorted within its kind."""
    kinds = (_commands(("ringtrue",), typer.main.get_command(app)), _routes(), _tables(), _names())
    return [line for kind in kinds for line in sorted(kind)]


def _commands(words: tuple[str, ...], command: Any) -> Iterator[str]:
    options = sorted(name for one in command.params for name in (*one.opts, *one.secondary_opts))
    yield " ".join(("command", *words, *options))
    for name, inner in getattr(command, "commands", {}).items():
        if words != ("ringtrue", "bench"):
            yield from _commands((*words, name), inner)


def _routes() -> Iterator[str]:
    document = create_app(Settings(store="unused.sqlite")).openapi()

    def fields(schema: Any) -> set[str]:
        if "$ref" in schema:
            schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        found = set(schema.get("properties", ()))
        for inner in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ()), schema.get("items", {})):
            found |= fields(inner) if inner else set()
        return found

    def content(part: Any) -> str:
        return " ".join(sorted({name for one in part.get("content", {}).values() for name in fields(one.get("schema", {}))}))

    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            asked = " ".join(sorted(one["name"] for one in operation.get("parameters", ())))
            answers = {name for code, one in operation["responses"].items() if code < "3" for name in content(one).split()}
            body = content(operation.get("requestBody", {}))
            yield f"route {method.upper()} {path} | {asked} | {body} | {' '.join(sorted(answers))}"


def _tables() -> Iterator[str]:
    for table in METADATA.tables.values():
        yield " ".join(("table", table.name, *sorted(column.name for column in table.columns)))


def _names() -> Iterator[str]:
    yield " ".join(("python ringtrue", *sorted(ringtrue.__all__)))
    yield " ".join(("golden formats", *sorted(GOLDEN_FORMATS)))
    yield " ".join(("connections", *sorted(KINDS)))
    yield " ".join(("retrievers", *sorted(RETRIEVERS)))


if __name__ == "__main__":
    FILE.write_text("\n".join(surface()) + "\n", encoding="utf-8")
