"""Search through somebody's JSON endpoint. Run it: python examples/connect/with_http.py

The same connection in ringtrue.toml, for `ringtrue search "quiet room with a view" --retriever "connect('hotels')"`:

    [connections.hotels]
    kind = "http"
    url = "https://search.example.com/find"
    body = {query = "{text}", limit = "{k}", filter = {city = "{scope.city}"}}
    hits = "results.items"
    id = "document.id"
    token_env = "HOTELS_TOKEN"
"""

from __future__ import annotations

import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from ringtrue.retrieve.connectors import connect

DOCUMENTS = {
    "sea-view": ("Lisbon", "quiet room with a view of the sea"),
    "family-suite": ("Lisbon", "suite for families with a view of the garden"),
    "city-single": ("Oslo", "single room in the centre, quiet at night"),
    "roof-pool": ("Oslo", "heated pool on the roof"),
}
TOKEN = "a-token-for-this-example"


class Search(BaseHTTPRequestHandler):
    """Stands for the search you already run: it counts the words a document shares with the question."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        allowed = self.headers["Authorization"] == f"Bearer {TOKEN}"
        self.reply(200, self.found(asked)) if allowed else self.reply(401, {"error": "no valid token"})

    def found(self, asked: dict[str, Any]) -> dict[str, Any]:
        words, city = set(asked["query"].split()), asked.get("filter", {}).get("city")
        scores = {name: len(words & set(text.split())) for name, (place, text) in DOCUMENTS.items() if city in (None, place)}
        best = sorted((name for name in scores if scores[name]), key=lambda name: -scores[name])[: asked["limit"]]
        return {"results": {"items": [{"document": {"id": name}, "score": scores[name]} for name in best]}}

    def reply(self, status: int, answer: dict[str, Any]) -> None:
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Search)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.environ["HOTELS_TOKEN"] = TOKEN  # yours is set outside
    hotels = connect(
        {
            "kind": "http",
            "url": f"http://127.0.0.1:{server.server_address[1]}/find",
            "body": {"query": "{text}", "limit": "{k}", "filter": {"city": "{scope.city}"}},
            "hits": "results.items",
            "id": "document.id",
            "token_env": "HOTELS_TOKEN",
        },
        name="hotels",
    )
    for scope in (None, {"city": "Oslo"}):
        print(f"within {scope}:" if scope else "everywhere:")
        for hit in hotels.search("quiet room with a view", k=3, scope=scope):
            print(f"  {hit.score:4.1f}  {hit.doc_id}")
    server.shutdown()
    server.server_close()


if __name__ == "__main__":
    main()
