"""A precomputed run as a search: what a system answered once is answered again, by query id or by query text.

A question that the run never answered is an error, not an empty answer: the system behind the file may well have found
something. An answer that stands in the file as empty is empty.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ringtrue.errors import BadAnswer, InputError, nearest
from ringtrue.formats import Place, field_of, lines, read_jsonl, read_run, usable_id
from ringtrue.id_columns import Ints
from ringtrue.records import Run
from ringtrue.retrieve.connectors.base import Connector
from ringtrue.retrieve.connectors.settings import Text
from ringtrue.retrieve.connectors.web import one_line
from ringtrue.retrieve.protocol import Scope, plain

_IDS = ("_id", "id", "query_id")
_TEXTS = ("text", "query", "query_text")


@dataclass(frozen=True, kw_only=True)
class RunFile(Connector):
    """A run file; it is read at the first question."""

    PATHS: ClassVar[tuple[str, ...]] = ("path", "queries")

    path: Text | Path
    """The run: TREC, TSV, CSV, Parquet, JSON, JSON lines or YAML, also gzipped."""
    queries: Text | Path | None = None
    """Query texts, BEIR queries.jsonl or lines of id, tab, text; with it questions are texts, without it they are query ids."""
    format: str | None = None
    """Format of the run where its ending does not say it."""

    def ask(self, text: str, *, k: int, scope: Scope | None) -> Iterable[Any]:
        """Return a stored answer, order and scores as in the file; raises BadAnswer for a question it does not hold."""
        self.no_scope(scope)
        return self._answer(self._query_of(text))

    @cached_property
    def _run(self) -> Run:
        return read_run(self.path, kind=self.format)

    @cached_property
    def _codes(self) -> dict[str, int]:
        return {query_id: code for code, query_id in enumerate(self._run.query_ids)}

    @cached_property
    def _order(self) -> tuple[Ints, Ints]:
        """Rows of the run by query and rank, and where each query begins among them."""
        order = self._run.order
        return order, np.searchsorted(self._run.query[order], np.arange(len(self._run.query_ids) + 1))

    @cached_property
    def _ids(self) -> Mapping[str, list[str]]:
        """Query ids by text: one text may have been asked twice."""
        found: dict[str, list[str]] = {}
        assert self.queries is not None
        for query_id, text in _queries(Path(self.queries)):
            found.setdefault(_key(text), []).append(query_id)
        return found

    def _query_of(self, text: str) -> str:
        shown = one_line(text)[:60]
        if self.queries is None:
            return self._known(text, f"{self.path} has no query '{shown}'")
        ids = self._ids.get(_key(text), [])
        if not ids:
            raise BadAnswer(
                f"{self.name}: {self.queries} has no query with the text '{shown}'; ask one of its {len(self._ids)}"
            )
        answered = [self._known(query_id, f"{self.path} has no query '{query_id}' ('{shown}')") for query_id in ids]
        if any(self._answer(query_id) != self._answer(ids[0]) for query_id in ids[1:]):
            raise InputError(f"{self.name}: '{shown}' is the text of '{ids[0]}' and '{ids[1]}', answered differently; drop one")
        return answered[0]

    def _known(self, query_id: str, problem: str) -> str:
        if query_id in self._codes or query_id in self._run.answered:
            return query_id
        known = nearest(query_id, [*self._run.query_ids, *sorted(self._run.answered)])
        hint = f"did you mean {known}?" if self.queries is None else "make the run again with it"
        raise BadAnswer(f"{self.name}: {problem}; {hint}")

    def _answer(self, query_id: str) -> list[tuple[str, float]]:
        if query_id not in self._codes:
            return []
        order, starts = self._order
        code = self._codes[query_id]
        rows = order[starts[code] : starts[code + 1]]
        # Of a run whose order is the truth, the numbers are none of its own.
        scores = [math.nan] * len(rows) if self._run.ordered else self._run.score[rows].tolist()
        return list(zip(self._run.docs.take(rows), scores, strict=True))


def _key(text: str) -> str:
    """Two texts are the same question when they differ in blanks only."""
    return " ".join(plain(text).split())


def _queries(path: Path) -> Iterable[tuple[str, str]]:
    """Yield (id, text) of a queries file; raises InputError with file, line and cure."""
    seen: set[str] = set()
    found = _json_lines(path) if ".jsonl" in path.suffixes or ".ndjson" in path.suffixes else _table(path)
    for place, query_id, text in found:
        if query_id in seen:
            raise place.error(f"query '{query_id}' comes twice", "keep one of the two")
        seen.add(query_id)
        yield query_id, text


def _json_lines(path: Path) -> Iterable[tuple[Place, str, str]]:
    for place, record in read_jsonl(path):
        id_field = next((name for name in _IDS if name in record), _IDS[0])
        text_field = next((name for name in _TEXTS if name in record), _TEXTS[0])
        query_id = str(field_of(record, id_field, (str, int), place))
        yield place, usable_id(query_id, place), field_of(record, text_field, str, place)


def _table(path: Path) -> Iterable[tuple[Place, str, str]]:
    for number, line in lines(path):
        if not line.strip():
            continue
        place = Place(str(path), number)
        query_id, tab, text = line.partition("\t")
        if not tab:
            raise place.error(f"{line!r:.60} has no tab", "write id, tab, text")
        if number == 1 and query_id.lower() in ("id", "_id", "query_id", "query-id", "qid"):
            continue
        yield place, usable_id(query_id, place), text
