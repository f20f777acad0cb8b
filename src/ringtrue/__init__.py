"""Ringtrue tells you whether a search is good, whether a change made it better or worse, and whether that is certain.

>>> import ringtrue
>>> scores = ringtrue.score({"q1": {"a": 2.0, "b": 1.0}}, {"q1": {"b": 1}}, ["RR", "nDCG@10"])
>>> scores["RR"]
0.5

The names below are the public interface; everything else may change between versions. They are imported on first use, so
``import ringtrue`` itself costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ringtrue.client import Client
    from ringtrue.errors import (
        AccessDenied,
        BadAnswer,
        CannotDecide,
        InputError,
        MissingInput,
        RingtrueError,
        SearchFailed,
        SpecError,
        TimedOut,
        Unreachable,
        ValidationFailed,
    )
    from ringtrue.formats import read_qrels, read_run, write_qrels, write_run
    from ringtrue.golden import load, load_test_set, validate
    from ringtrue.measures import Facts, Measure, Scores, score
    from ringtrue.records import Document, GoldenSet, Hit, Judgment, Qrels, Query, Ranking, Run, Stage
    from ringtrue.retrieve import Collection, Retriever, as_retriever
    from ringtrue.retrieve.connectors import connect
    from ringtrue.run import Evaluation, evaluate, open_run
    from ringtrue.stats import ranking_difference
    from ringtrue.verdict import Baseline, Comparison, Policy, Verdict, compare, gate

_HOME = {
    "client": ("Client",),
    "errors": (
        "AccessDenied", "BadAnswer", "CannotDecide", "InputError", "MissingInput", "RingtrueError", "SearchFailed", "SpecError",
        "TimedOut", "Unreachable", "ValidationFailed",
    ),
    "formats": ("read_qrels", "read_run", "write_qrels", "write_run"),
    "golden": ("load", "load_test_set", "validate"),
    "measures": ("Facts", "Measure", "Scores", "score"),
    "records": ("Document", "GoldenSet", "Hit", "Judgment", "Qrels", "Query", "Ranking", "Run", "Stage"),
    "retrieve": ("Collection", "Retriever", "as_retriever"),
    "retrieve.connectors": ("connect",),
    "run": ("Evaluation", "evaluate", "open_run"),
    "stats": ("ranking_difference",),
    "verdict": ("Baseline", "Comparison", "Policy", "Verdict", "compare", "gate"),
}  # fmt: skip
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "AccessDenied",
    "BadAnswer",
    "Baseline",
    "CannotDecide",
    "Client",
    "Collection",
    "Comparison",
    "Document",
    "Evaluation",
    "Facts",
    "GoldenSet",
    "Hit",
    "InputError",
    "Judgment",
    "Measure",
    "MissingInput",
    "Policy",
    "Qrels",
    "Query",
    "Ranking",
    "Retriever",
    "RingtrueError",
    "Run",
    "Scores",
    "SearchFailed",
    "SpecError",
    "Stage",
    "TimedOut",
    "Unreachable",
    "ValidationFailed",
    "Verdict",
    "as_retriever",
    "compare",
    "connect",
    "evaluate",
    "gate",
    "load",
    "load_test_set",
    "open_run",
    "ranking_difference",
    "read_qrels",
    "read_run",
    "score",
    "validate",
    "write_qrels",
    "write_run",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("ringtrue")
    if name in _MODULE_OF:
        return getattr(import_module(f"ringtrue.{_MODULE_OF[name]}"), name)
    raise AttributeError(f"module 'ringtrue' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
