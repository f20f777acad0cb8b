"""An answer as it comes → the fields of a logged query. Nothing of the answer is changed, and nothing is read twice.

Also how much memory a waiting event takes, so that the queue can be bounded in bytes: cheap, and rather more than less.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from sys import getsizeof
from typing import TYPE_CHECKING, Any, NamedTuple

from ringtrue.answers import StageLogged
from ringtrue.errors import InputError
from ringtrue.records import Hit
from ringtrue.store import FeedbackEvent, LoggedQuery

if TYPE_CHECKING:
    from ringtrue.retrieve import Seen

IDS = ("doc_id", "id", "_id", "document_id", "node_id", "id_")
SCORES = ("score", "_score", "similarity", "relevance")
STAGES = {"rerank": "rerank", "mmr": "rerank", "recency": "boost", "tier": "boost", "threshold": "filter", "top": "final-rank"}
"""What the steps of a pipeline are called in the log; a step of one's own keeps its name."""
_ROW = 1300
"""A record with its id, its time, its empty mappings and its place in the queue."""
_ID, _FLOAT = 8, 32


class Answered(NamedTuple):
    """What an answer says: ids, scores where every hit has one, and per channel the ids it had, in its order."""

    result_ids: tuple[str, ...]
    scores: tuple[float, ...]
    channel_contributions: dict[str, tuple[str, ...]]


def read_answer(answer: Any) -> Answered:
    """Return what an answer says; raises InputError for one that cannot be read without using it up.

    >>> read_answer([("pool", 0.9), ("spa", 0.4)])
    Answered(result_ids=('pool', 'spa'), scores=(0.9, 0.4), channel_contributions={})
    """
    if isinstance(answer, str | bytes | Mapping | Set) or not isinstance(answer, Sequence):
        raise InputError(
            f"the answer is {type(answer).__name__}, no list of hits; give the log results=, which makes one of it"
        )
    if set(map(type, answer)) <= {Hit}:
        return _of_hits(answer)
    pairs = [_id_and_score(item) for item in answer]
    scores = tuple([score for _, score in pairs])
    return Answered(tuple([doc_id for doc_id, _ in pairs]), () if _unknown(scores) else scores, {})


def _of_hits(hits: Sequence[Hit]) -> Answered:
    """Return what our own hits say; lists in brackets, since generators would take twice the time of the caller."""
    ids = tuple([hit.doc_id for hit in hits])
    scores = tuple([hit.score for hit in hits])
    ranks: dict[str, list[tuple[int, str]]] = {}
    for hit in hits:
        doc_id = hit.doc_id
        for channel, rank in hit.channels.items():
            if channel in ranks:
                ranks[channel].append((rank, doc_id))
            else:
                ranks[channel] = [(rank, doc_id)]
    for found in ranks.values():
        found.sort()
    channels = {channel: tuple([doc_id for _, doc_id in found]) for channel, found in ranks.items()}
    return Answered(ids, () if _unknown(scores) else scores, channels)


def _unknown(scores: Sequence[float]) -> bool:
    """True where a score is none."""
    return math.isnan(sum(scores)) or math.isinf(sum(scores))


def _id_and_score(item: Any) -> tuple[str, float]:
    if type(item) is str:
        return item, math.nan
    if type(item) is Hit:
        return item.doc_id, item.score
    if isinstance(item, str | int) and not isinstance(item, bool):
        return str(item), math.nan
    if isinstance(item, tuple | list) and len(item) == 2:
        if type(item[0]) is str and type(item[1]) is float and math.isfinite(item[1]):
            return item[0], item[1]
        if isinstance(item[0], str | int):
            return str(item[0]), _number(item[1])
        return _id_and_score(item[0])[0], _number(item[1])  # (document, score), as vector stores answer
    if isinstance(item, Mapping):
        inner = item.get("document", item)
        found = _first(item, IDS) or (_first(inner, IDS) if isinstance(inner, Mapping) else None)
        return _known(found, item), _number(_first(item, SCORES))
    found = next((value for name in IDS if (value := getattr(item, name, None)) is not None), None)
    if found is None and isinstance(metadata := getattr(item, "metadata", None), Mapping):
        found = _first(metadata, IDS)  # a document of LangChain may have its id there
    if found is None and (inner := getattr(item, "node", None) or getattr(item, "document", None)) is not None:
        return _id_and_score(inner)[0], _number(getattr(item, "score", None))
    return _known(found, item), _number(getattr(item, "score", None))


def _known(doc_id: Any, item: Any) -> str:
    if doc_id is None:
        raise InputError(
            f"a hit of type {type(item).__name__} has no id; give the log results=, which returns ids or (id, score)"
        )
    return str(doc_id)


def _first(item: Mapping[str, Any], names: Iterable[str]) -> Any:
    return next((item[name] for name in names if item.get(name) is not None), None)


def _number(value: Any) -> float:
    try:
        number = math.nan if value is None else float(value)
    except (TypeError, ValueError):
        return math.nan
    return number if math.isfinite(number) else math.nan


def stages_of(seen: Seen | None) -> tuple[tuple[StageLogged, ...], dict[str, float]]:
    """Return what each stage of an observed retriever took in, gave out and took, and the milliseconds by stage.

    *candidate* takes in what all channels listed and gives out the documents among it; *fusion* takes those.
    """
    from ringtrue.retrieve import Fused, Stepped

    if seen is None:
        return (), {}
    figures: list[StageLogged] = []
    base = seen.base if isinstance(seen, Stepped) else seen
    if isinstance(base, Fused):
        spent = sum(channel.ms for channel in base.channels)
        listed = sum(len(channel.hits) for channel in base.channels)
        figures.append(StageLogged("candidate", listed, len(base.order), spent))
        figures.append(StageLogged("fusion", len(base.order), len(base.hits), max(0.0, base.ms - spent)))
    else:
        figures.append(StageLogged("candidate", len(base.hits), len(base.hits), base.ms))
    if isinstance(seen, Stepped):
        before = len(base.hits)
        for step in seen.steps:
            name = STAGES.get(step.name.split("(")[0], step.name)
            figures.append(StageLogged(name, before, len(step.hits), step.ms))
            before = len(step.hits)
    latency: dict[str, float] = {}
    for figure in figures:
        latency[figure.name] = latency.get(figure.name, 0.0) + figure.ms
    return tuple(figures), latency


def weight(row: LoggedQuery | FeedbackEvent) -> int:
    """Return the bytes that a row occupies while it waits."""
    if isinstance(row, FeedbackEvent):
        return _ROW + _data(row.metadata)
    answer = answer_weight(row.query, row.result_ids, row.channel_contributions)
    rest = sum(map(_data, (row.flags, row.stage_latency_ms, row.fusion_weights, row.fallback, row.intent, row.user_id)))
    return answer + 150 * len(row.stages) + rest


def answer_weight(query: str, ids: Sequence[str], channels: Mapping[str, Sequence[str]]) -> int:
    """Return the bytes that a search with its answer occupies while it waits."""
    total = _ROW + getsizeof(query) + sum(map(getsizeof, ids)) + (_ID + _FLOAT) * len(ids)
    for listed in channels.values():
        total += 120 + _ID * len(listed)  # the ids are those of the results; a channel adds a place for each
    return total


def fields_weight(fields: Mapping[str, Any]) -> int:
    """Return the bytes of further fields of a search."""
    return sum(map(_data, fields.values()))


def _data(value: Any, depth: int = 0) -> int:
    if isinstance(value, Mapping) and depth < 8:
        return 240 + sum(100 + getsizeof(name) + _data(item, depth + 1) for name, item in value.items())
    if isinstance(value, list | tuple | set | frozenset) and depth < 8:
        return 120 + sum(16 + _data(item, depth + 1) for item in value)
    return getsizeof(value)
