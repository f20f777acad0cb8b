"""Search a LlamaIndex index or retriever through Ringtrue, exactly as the program uses it.

In ringtrue.toml a connection names where the object is; a function is called without arguments::

    [connections.hotel]
    kind = "llamaindex"
    object = "shop.search:make"         # package.module:name

and then::

    ringtrue search "how do I get to my plane" --retriever "connect('hotel')"
"""

from llama_index.core import VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.schema import TextNode

from ringtrue.retrieve.connectors import connect
from ringtrue.retrieve.connectors.objects import LlamaIndex
from ringtrue.retrieve.encode import encoder

DOCUMENTS = {
    "shuttle": "A minibus leaves for the airport every half hour.",
    "late-arrival": "After midnight the night porter opens; ring the bell.",
    "pool": "The pool is heated and open from seven to ten.",
    "parking": "The yard gate closes at midnight. Park on the promenade after that.",
    "breakfast": "Breakfast is served from seven. A bag is packed for those who leave early.",
}


class LocalEmbedding(BaseEmbedding):
    """Ringtrue's encoder, so that the example needs no network; yours stays as it is."""

    def _get_text_embedding(self, text: str) -> list[float]:
        return [float(number) for number in encoder().encode([text])[0]]

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_text_embedding(query)


def make() -> VectorStoreIndex:
    return VectorStoreIndex([TextNode(id_=name, text=text) for name, text in DOCUMENTS.items()], embed_model=LocalEmbedding())


def main() -> None:
    hotel = connect({"kind": "llamaindex", "object": f"{__name__}:make"}, name="hotel")
    for rank, hit in enumerate(hotel.search("how do I get to my plane", k=3), 1):
        print(rank, hit.doc_id, f"{hit.score:.3f}")
    # A program passes the object itself: an index, as_retriever(), or a retriever of its own.
    mine = LlamaIndex(retriever=make().as_retriever())
    print("retriever:", mine.search("where do I leave the car", k=1)[0].doc_id)


if __name__ == "__main__":
    main()
