"""Search a collection of a Chroma server through Ringtrue.

In ringtrue.toml the same connection is::

    [connections.hotel]
    kind = "chroma"
    url = "https://chroma.example.com"
    collection = "hotel"
    token_env = "CHROMA_TOKEN"          # the name of an environment variable, never the value

and then::

    ringtrue search "how do I get to my plane" --retriever "connect('hotel')"

This example starts a server of its own, from the package chromadb, and stops it at the end.
"""

import json
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

from ringtrue.retrieve.connectors import connect
from ringtrue.retrieve.encode import encoder

DOCUMENTS = {
    "shuttle": "A minibus leaves for the airport every half hour.",
    "late-arrival": "After midnight the night porter opens; ring the bell.",
    "pool": "The pool is heated and open from seven to ten.",
    "parking": "The yard gate closes at midnight. Park on the promenade after that.",
    "breakfast": "Breakfast is served from seven. A bag is packed for those who leave early.",
}
COLLECTIONS = "/api/v2/tenants/default_tenant/databases/default_database/collections"


def post(url: str, body: object) -> dict[str, str]:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return dict(json.load(answer))


def fill(url: str) -> None:
    made = post(url + COLLECTIONS, {"name": "hotel", "configuration": {"hnsw": {"space": "cosine"}}})
    texts = list(DOCUMENTS.values())
    records = {"ids": list(DOCUMENTS), "documents": texts, "embeddings": encoder().encode(texts).tolist()}
    post(f"{url}{COLLECTIONS}/{made['id']}/add", records)


def ask(url: str) -> None:
    hotel = connect({"kind": "chroma", "url": url, "collection": "hotel"}, name="hotel")
    for rank, hit in enumerate(hotel.search("how do I get to my plane", k=3), 1):
        print(rank, hit.doc_id, f"{hit.score:.3f}")


def main() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # The same as: chroma run --path … --host 127.0.0.1 --port …
    start = "import sys, chromadb_rust_bindings as chroma; chroma.cli(['chroma', 'run', *sys.argv[1:]])"
    with tempfile.TemporaryDirectory() as folder:
        options = ["--path", folder, "--host", "127.0.0.1", "--port", str(port)]
        server = subprocess.Popen(
            [sys.executable, "-c", start, *options], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            for _ in range(600):
                if server.poll() is not None:
                    sys.exit("Chroma did not start; pip install chromadb")
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v2/heartbeat", timeout=5).close()
                    break
                except OSError:
                    time.sleep(0.1)
            fill(f"http://127.0.0.1:{port}")
            ask(f"http://127.0.0.1:{port}")
        finally:
            server.terminate()
            server.wait(10)


if __name__ == "__main__":
    main()
