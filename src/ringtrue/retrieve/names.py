"""The names that a retriever expression may hold: one row each, with its options and their defaults.

The parser (``expression``), the reference page and the service's checks read this table; ``builders`` builds what a name means.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

DEFAULT_MODEL = "all-MiniLM-L6-v2"
HYBRID = "weighted(bm25, dense, depth=50, norm='z', w=[0.5, 0.5])"
"""Chosen on SciFact's training queries, LoCoMo's first half and the shipped sets: RRF falls behind its better channel if the
two are far apart, see docs/benchmarks.md."""
ALIASES = {"hybrid": HYBRID, "sparse": "splade"}


@dataclass(frozen=True)
class Name:
    """What a name is: a 'channel' finds, a 'fusion' joins two or more retrievers, a 'stage' works on hits after ``>>``."""

    kind: str
    means: str
    options: Mapping[str, Any] = field(default_factory=dict)
    first: str = ""
    """The option that a plain argument stands for: dense('model')."""
    of: str = ""
    """'one' if it takes another retriever as its argument."""
    documents: bool = False
    """True if it needs a collection of documents."""
    free: Any = None
    """The default of options whose names the user chooses; None if there are none."""


def _channel(means: str, *, first: str = "", of: str = "", documents: bool = True, **options: Any) -> Name:
    return Name("channel", means, options, first, of, documents)


def _fusion(means: str, **options: Any) -> Name:
    return Name("fusion", means, {**options, "depth": 100})


def _stage(means: str, *, first: str = "", documents: bool = True, free: Any = None, **options: Any) -> Name:
    return Name("stage", means, options, first, documents=documents, free=free)


# The default of a list of numbers is (0.0,), that of a list of texts ("",).
NAMES: Mapping[str, Name] = {
    "bm25": _channel("BM25 on Tantivy", title=3, tags=1, language="english"),
    "fts5": _channel("BM25 on SQLite's FTS5", title=5.0, tags=3.0, body=1.0),
    "dense": _channel(
        "sentence vectors, exact search",
        first="model",
        model=DEFAULT_MODEL,
        fields=("",),
        int8=False,
        store="float32",
        hnsw=0,
    ),
    "rm3": _channel("BM25 with pseudo-relevance feedback", docs=10, terms=20, weight=0.5, language="english"),
    "splade": _channel("learned sparse vectors, from a model folder", first="model", model=""),
    "graph": _channel(
        "neighbours of another retriever's hits along links",
        of="one",
        edges=("",),
        hops=1,
        decay=0.5,
        depth=50,
        direction="both",
    ),
    "trigger": _channel("documents whose trigger phrases stand in the query", field="triggers"),
    "memory": _channel(
        "an agent's memory: passages, trigger phrases, causal links and the session; or what the hook uses",
        first="strategy",
        strategy="hybrid",
        model=DEFAULT_MODEL,
        language="english",
        group=("",),
        words=1.0,
        meaning=1.0,
        constitutional=False,
    ),
    "connect": _channel("a search system described in ringtrue.toml", first="name", documents=False, name=""),
    "rrf": _fusion("reciprocal rank fusion", k=60, w=(0.0,)),
    "weighted": _fusion("weighted sum of normalised scores", w=(0.0,), norm="minmax"),
    "combsum": _fusion("sum of normalised scores"),
    "combmnz": _fusion("CombSUM times the lists that agree"),
    "adaptive": _fusion("RRF with weights by the kind of query", k=60),
}
STAGES: Mapping[str, Name] = {
    "rerank": _stage(
        "a cross-encoder from a folder, or an endpoint described in ringtrue.toml, orders the first hits anew",
        first="model",
        model="",
        connection="",
        depth=50,
    ),
    "mmr": _stage("maximal marginal relevance: less of the same", first="weight", weight=0.7, model=DEFAULT_MODEL, depth=50),
    "recency": _stage("newer documents first", field="date", half_life=30.0, weight=0.5, now="", depth=50),
    "tier": _stage("boosts by a metadata value: tier(core=1.5)", free=1.0, field="tier"),
    "threshold": _stage("only hits that score enough", documents=False, min=None, relative=None, gap=None),
    "top": _stage("the first n hits", first="n", documents=False, n=10),
}
ALL: Mapping[str, Name] = {**NAMES, **STAGES}
