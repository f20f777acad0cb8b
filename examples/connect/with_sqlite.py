"""Search the FTS5 table of an SQLite file. Run it: python examples/connect/with_sqlite.py

The same connection in ringtrue.toml, for `ringtrue search "quiet room with a view" --retriever "connect('hotels')"`:

    [connections.hotels]
    kind = "sqlite"
    file = "hotels.sqlite"
    table = "rooms"
    id = "name"
    weights = {title = 3}
"""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from ringtrue.retrieve.connectors.sqlite import Sqlite

ROOMS = [
    ("sea-view", "Lisbon", "Sea view", "A quiet room with a view of the sea."),
    ("family-suite", "Lisbon", "Family suite", "A suite for families with a view of the garden."),
    ("city-single", "Oslo", "Single", "A room in the centre, quiet at night."),
    ("roof-pool", "Oslo", "Pool", "A heated pool on the roof."),
    ("breakfast", "Oslo", "Breakfast", "From seven to eleven, with bread from the oven."),
    ("parking", "Lisbon", "Parking", "Places for cars and bicycles under the house."),
    ("late-arrival", "Oslo", "Late arrival", "After ten the key lies in a box beside the door."),
    ("pets", "Lisbon", "Pets", "Dogs and cats are welcome on the ground floor."),
]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "hotels.sqlite"
        with closing(sqlite3.connect(file)) as database, database:
            database.execute(
                "CREATE VIRTUAL TABLE rooms USING fts5(name UNINDEXED, city UNINDEXED, title, body, tokenize='porter')"
            )
            database.executemany("INSERT INTO rooms VALUES (?, ?, ?, ?)", ROOMS)
        hotels = Sqlite(file=file, table="rooms", id="name", weights={"title": 3}, name="hotels")
        for scope in (None, {"city": "Oslo"}):
            print(f"within {scope}:" if scope else "everywhere:")
            for hit in hotels.search("quiet room with a view", k=3, scope=scope):
                print(f"  {hit.score:6.3f}  {hit.doc_id}")


if __name__ == "__main__":
    main()
