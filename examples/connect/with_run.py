"""Use answers that a system gave once as a search. Run it: python examples/connect/with_run.py

The same connection in ringtrue.toml, for `ringtrue search "quiet room with a view" --retriever "connect('last-year')"`:

    [connections.last-year]
    kind = "run"
    path = "runs/last-year.run"
    queries = "queries.jsonl"
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from ringtrue.errors import BadAnswer
from ringtrue.retrieve.connectors.run import RunFile

RUN = """\
q1 Q0 sea-view 1 7.25 last-year
q1 Q0 city-single 2 4.5 last-year
q1 Q0 family-suite 3 1.75 last-year
q2 Q0 roof-pool 1 6.0 last-year
"""
QUERIES = """\
{"_id": "q1", "text": "quiet room with a view"}
{"_id": "q2", "text": "pool"}
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "last-year.run").write_text(RUN, encoding="utf-8")
        (folder / "queries.jsonl").write_text(QUERIES, encoding="utf-8")
        last_year = RunFile(path=folder / "last-year.run", queries=folder / "queries.jsonl", name="last-year")
        for hit in last_year.search("quiet room with a view", k=2):
            print(f"{hit.score:5.2f}  {hit.doc_id}")
        try:
            last_year.search("parking")
        except BadAnswer as problem:
            print(str(problem).replace(f"{folder}/", ""))


if __name__ == "__main__":
    main()
