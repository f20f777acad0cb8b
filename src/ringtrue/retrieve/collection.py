"""``Collection``: documents on disk that can also be searched by any retriever."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ringtrue.retrieve.builders import build
from ringtrue.retrieve.documents import DocumentStore
from ringtrue.retrieve.documents import Ingested as Ingested
from ringtrue.retrieve.protocol import Retriever


class Collection(DocumentStore):
    """A folder with documents and the indexes over them."""

    def retriever(self, expression: str | Mapping[str, Any] = "hybrid") -> Retriever:
        """Return the retriever an expression names over these documents: ``rrf(bm25, dense) >> mmr(0.7)``."""
        return build(expression, self)
