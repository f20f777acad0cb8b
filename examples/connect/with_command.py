"""Search through any program that reads and writes JSON lines. Run it: python examples/connect/with_command.py

The same connection in ringtrue.toml, for `ringtrue search "quiet room with a view" --retriever "connect('mine')"`:

    [connections.mine]
    kind = "command"
    command = ["python", "search.py"]
    folder = "tools"
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from ringtrue.retrieve.connectors.command import Command

PROGRAM = """
import json
import sys

DOCUMENTS = {
    "sea-view": "quiet room with a view of the sea",
    "family-suite": "suite for families with a view of the garden",
    "city-single": "single room in the centre, quiet at night",
    "roof-pool": "heated pool on the roof",
}

for line in sys.stdin:  # ends when its input ends
    asked = json.loads(line)
    words = set(asked["text"].split())
    scores = {name: len(words & set(text.split())) for name, text in DOCUMENTS.items()}
    best = sorted((name for name in scores if scores[name]), key=lambda name: -scores[name])[: asked["k"]]
    print(json.dumps({"hits": [{"doc_id": name, "score": scores[name]} for name in best]}), flush=True)
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "search.py").write_text(PROGRAM, encoding="utf-8")
        mine = Command(command=[sys.executable, "search.py"], folder=folder, name="mine")
        for question in ("quiet room with a view", "pool"):
            print(f"{question}:")
            for hit in mine.search(question, k=3):
                print(f"  {hit.score:4.1f}  {hit.doc_id}")
        mine.close()


if __name__ == "__main__":
    main()
