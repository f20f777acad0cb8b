"""Search a collection of Qdrant through Ringtrue; needs a server at http://localhost:6333, or at QDRANT_URL.

In ringtrue.toml the same connection is::

    [connections.hotel]
    kind = "qdrant"
    url = "https://qdrant.example.com:6333"
    collection = "hotel"
    document = "page"                   # the payload field that holds the document id
    api_key_env = "QDRANT_KEY"          # the name of an environment variable, never the value

and then::

    ringtrue search "how do I get to my plane" --retriever "connect('hotel')"
"""

import os
import uuid

import httpx2

from ringtrue.retrieve.connectors import connect
from ringtrue.retrieve.encode import encoder

DOCUMENTS = {
    "shuttle": "A minibus leaves for the airport every half hour.",
    "late-arrival": "After midnight the night porter opens; ring the bell.",
    "pool": "The pool is heated and open from seven to ten.",
    "parking": "The yard gate closes at midnight. Park on the promenade after that.",
    "breakfast": "Breakfast is served from seven. A bag is packed for those who leave early.",
}
URL = os.environ.get("QDRANT_URL", "http://localhost:6333")


def main() -> None:
    name = f"ringtrue-example-{uuid.uuid4()}"
    vectors = encoder().encode(list(DOCUMENTS.values())).tolist()
    points = [{"id": place, "vector": vectors[place], "payload": {"page": page}} for place, page in enumerate(DOCUMENTS)]
    with httpx2.Client(base_url=f"{URL}/collections") as server:
        server.put(f"/{name}", json={"vectors": {"size": len(vectors[0]), "distance": "Cosine"}}).raise_for_status()
        try:
            server.put(f"/{name}/points?wait=true", json={"points": points}).raise_for_status()
            hotel = connect({"kind": "qdrant", "url": URL, "collection": name, "document": "page"}, name="hotel")
            for rank, hit in enumerate(hotel.search("how do I get to my plane", k=3), 1):
                print(rank, hit.doc_id, f"{hit.score:.3f}")
        finally:
            server.delete(f"/{name}").raise_for_status()


if __name__ == "__main__":
    main()
