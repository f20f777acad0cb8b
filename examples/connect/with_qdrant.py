"""Search a collection of Qdrant through Ringtrue.

In ringtrue.toml the same connection to a server is::

    [connections.hotel]
    kind = "qdrant"
    url = "https://qdrant.example.com:6333"
    collection = "hotel"
    document = "page"                   # the payload field that holds the document id
    api_key_env = "QDRANT_KEY"          # the name of an environment variable, never the value

and then::

    ringtrue search "how do I get to my plane" --retriever "connect('hotel')"

This example uses the local mode of qdrant-client, which keeps a collection in a folder and needs no server.
"""

import tempfile

from qdrant_client import QdrantClient, models

from ringtrue.retrieve.connectors import connect
from ringtrue.retrieve.connectors.qdrant import Qdrant
from ringtrue.retrieve.encode import encoder

DOCUMENTS = {
    "shuttle": "A minibus leaves for the airport every half hour.",
    "late-arrival": "After midnight the night porter opens; ring the bell.",
    "pool": "The pool is heated and open from seven to ten.",
    "parking": "The yard gate closes at midnight. Park on the promenade after that.",
    "breakfast": "Breakfast is served from seven. A bag is packed for those who leave early.",
}


def fill(client: QdrantClient) -> QdrantClient:
    client.create_collection("hotel", vectors_config=models.VectorParams(size=384, distance=models.Distance.COSINE))
    rows = zip(DOCUMENTS, encoder().encode(list(DOCUMENTS.values())).tolist(), strict=True)
    points = [
        models.PointStruct(id=number, vector=vector, payload={"page": page}) for number, (page, vector) in enumerate(rows)
    ]
    client.upsert("hotel", points)
    return client


def main() -> None:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        fill(QdrantClient(path=folder)).close()
        hotel = connect({"kind": "qdrant", "path": folder, "collection": "hotel", "document": "page"}, name="hotel")
        for rank, hit in enumerate(hotel.search("how do I get to my plane", k=3), 1):
            print(rank, hit.doc_id, f"{hit.score:.3f}")

    # A program that already has a client passes it on; a collection in memory can only be reached so.
    mine = Qdrant(client=fill(QdrantClient(":memory:")), collection="hotel", document="page")
    print("in memory:", mine.search("where do I leave the car", k=1)[0].doc_id)


if __name__ == "__main__":
    main()
