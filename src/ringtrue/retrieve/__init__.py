"""Retrieval: documents come in, indexes are kept on disk, a question goes in and hits come out.

May not: measure, judge, print. Retrievers are values written in the measures' grammar (``rrf(bm25, dense)``); every hit says
which channels found it, at which rank, and what each stage made of it. Only ``connectors`` opens network connections.
"""

from ringtrue.retrieve.collection import Collection, Ingested
from ringtrue.retrieve.expression import as_expression, build, canonical, expression_of, key, names_documents, parts_of
from ringtrue.retrieve.fuse import Fusion
from ringtrue.retrieve.kept import Kept, indexes_of
from ringtrue.retrieve.observe import Done, Fused, Listed, Observed, Seen, Stepped, observing
from ringtrue.retrieve.pipeline import Staged
from ringtrue.retrieve.protocol import Retriever, as_retriever, search_many

__all__ = [
    "Collection",
    "Done",
    "Fused",
    "Fusion",
    "Ingested",
    "Kept",
    "Listed",
    "Observed",
    "Retriever",
    "Seen",
    "Staged",
    "Stepped",
    "as_expression",
    "as_retriever",
    "build",
    "canonical",
    "expression_of",
    "indexes_of",
    "key",
    "names_documents",
    "observing",
    "parts_of",
    "search_many",
]
