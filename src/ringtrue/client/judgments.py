"""Which result answers which query how well, and who says so: ``/v1/judgments``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ringtrue.answers import JudgmentSource, KeptJudgment
from ringtrue.client.reading import read
from ringtrue.client.wire import Wire, given


class Judgments:
    """The judgments of the project."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def list(
        self, *, query_id: str | None = None, source: JudgmentSource | None = None, annotator: str | None = None
    ) -> Iterator[KeptJudgment]:
        """Yield judgments by query, item, source and annotator."""
        return self._wire.items(KeptJudgment, "/v1/judgments", query_id=query_id, source=source, annotator=annotator)

    def add(
        self,
        query_id: str,
        item_id: str,
        relevance: int,
        *,
        annotator: str | None = None,
        query: str | None = None,
        note: str = "",
    ) -> KeptJudgment:
        """Judge by hand, from 0 (not relevant) to 3 (answers it), and return what is kept; the annotator is the key's name."""
        said = {"query_id": query_id, "item_id": item_id, "relevance": relevance, "annotator": annotator, "query": query}
        return self.add_many([{**said, "note": note}])[0]

    def add_many(self, judgments: Iterable[Mapping[str, Any]]) -> tuple[KeptJudgment, ...]:
        """Judge by hand many pairs in one request, each with the fields of ``add``; 1,000 at most."""
        told = self._wire.write("POST", "/v1/judgments", {"judgments": [given(one) for one in judgments]})
        return read(tuple[KeptJudgment, ...], told)

    def delete(self, source: JudgmentSource, *, annotator: str | None = None, query_id: str | None = None) -> int:
        """Delete the judgments of a source, or only those of one annotator or query, and return how many; needs 'admin'."""
        told = self._wire.write("DELETE", "/v1/judgments", source=source, annotator=annotator, query_id=query_id)
        return int(told["deleted"])
