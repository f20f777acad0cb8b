"""Search a LangChain vector store or retriever through Ringtrue, exactly as the program uses it.

In ringtrue.toml a connection names where the object is; a function is called without arguments::

    [connections.hotel]
    kind = "langchain"
    object = "shop.search:make"         # package.module:name

and then::

    ringtrue search "how do I get to my plane" --retriever "connect('hotel')"
"""

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore

from ringtrue.retrieve.connectors import connect
from ringtrue.retrieve.connectors.objects import LangChain
from ringtrue.retrieve.encode import encoder

DOCUMENTS = {
    "shuttle": "A minibus leaves for the airport every half hour.",
    "late-arrival": "After midnight the night porter opens; ring the bell.",
    "pool": "The pool is heated and open from seven to ten.",
    "parking": "The yard gate closes at midnight. Park on the promenade after that.",
    "breakfast": "Breakfast is served from seven. A bag is packed for those who leave early.",
}


class LocalEmbeddings(Embeddings):
    """Ringtrue's encoder, so that the example needs no network; yours stays as it is."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [row.tolist() for row in encoder().encode(texts)]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


def make() -> InMemoryVectorStore:
    store = InMemoryVectorStore(LocalEmbeddings())
    store.add_documents([Document(id=name, page_content=text) for name, text in DOCUMENTS.items()])
    return store


def main() -> None:
    hotel = connect({"kind": "langchain", "object": f"{__name__}:make"}, name="hotel")
    for rank, hit in enumerate(hotel.search("how do I get to my plane", k=3), 1):
        print(rank, hit.doc_id, f"{hit.score:.3f}")
    # A program passes the object itself: a store, as_retriever(), or a retriever of its own.
    mine = LangChain(retriever=make().as_retriever())
    print("retriever:", mine.search("where do I leave the car", k=1)[0].doc_id)


if __name__ == "__main__":
    main()
