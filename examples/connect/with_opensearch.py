"""Search an OpenSearch or Elasticsearch index through Ringtrue.

In ringtrue.toml the same connection is::

    [connections.hotel]
    kind = "opensearch"                 # or "elasticsearch"
    url = "https://search.example.com:9200"
    index = "hotel"
    fields = ["title^2", "body"]
    user_env = "HOTEL_USER"             # names of environment variables, never the values
    password_env = "HOTEL_PASSWORD"

and then::

    ringtrue search "arriving after midnight" --retriever "connect('hotel')"

Neither system comes as a Python package, so this example starts the small stand-in server that the tests use. It speaks the
documented REST interface and is not a search engine.
"""

import sys
from pathlib import Path

# The tests' folder has the server; this one has files named like packages (mcp) and must not hide them.
sys.path[0] = str(Path(__file__).resolve().parents[2] / "tests")

DOCUMENTS = {
    "late-arrival": {"title": "Arriving late", "body": "After midnight the night porter opens; ring the bell.", "wing": "all"},
    "pool": {"title": "Pool", "body": "The pool is open from seven to ten, for children until eight.", "wing": "sea"},
    "parking": {
        "title": "Parking",
        "body": "The yard gate closes at midnight. Park on the promenade after that.",
        "wing": "garden",
    },
    "breakfast": {"title": "Breakfast", "body": "Served from seven. A bag is packed for those who leave early.", "wing": "all"},
}


def main() -> None:
    import json

    import httpx2

    from connectors.opensearch_server import serving
    from ringtrue.retrieve.connectors import connect

    with serving() as server:
        httpx2.put(f"{server.url}/hotel", json={"mappings": {"properties": {"wing": {"type": "keyword"}}}}).raise_for_status()
        lines = [line for key, document in DOCUMENTS.items() for line in ({"index": {"_id": key}}, document)]
        bulk = "".join(json.dumps(line) + "\n" for line in lines)
        headers = {"Content-Type": "application/x-ndjson"}
        httpx2.post(f"{server.url}/hotel/_bulk?refresh=true", content=bulk, headers=headers).raise_for_status()

        hotel = connect(
            {"kind": "opensearch", "url": server.url, "index": "hotel", "fields": ["title^2", "body"]}, name="hotel"
        )
        for question, scope in (("arriving after midnight", None), ("midnight", {"wing": "garden"})):
            print(question, scope or "")
            for hit in hotel.search(question, k=3, scope=scope):
                print(f"  {hit.score:.3f}  {hit.doc_id}")


if __name__ == "__main__":
    main()
