"""Retrieval: documents come in, indexes are kept on disk, a question goes in and hits come out.

May not: measure, judge, print. Retrievers are values written in the measures' grammar (``rrf(bm25, dense)``); every hit says
which channels found it, at which rank, and what each stage made of it. Only ``connectors`` opens network connections.
"""

from ringtrue.retrieve.collection import Collection, Ingested
from ringtrue.retrieve.expression import as_expression, build, canonical, key, names_documents
from ringtrue.retrieve.kept import Kept, indexes_of
from ringtrue.retrieve.protocol import Retriever, as_retriever, search_many

__all__ = [
    "Collection",
    "Ingested",
    "Kept",
    "Retriever",
    "as_expression",
    "as_retriever",
    "build",
    "canonical",
    "indexes_of",
    "key",
    "names_documents",
    "search_many",
]
