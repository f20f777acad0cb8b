"""Ringtrue tells you whether a search is good, whether a change made it better or worse, and whether that is certain.

>>> import ringtrue
>>> scores = ringtrue.score({"q1": {"a": 2.0, "b": 1.0}}, {"q1": {"b": 1}}, ["RR", "nDCG@10"])
>>> scores["RR"]
0.5

The names below are the public interface; everything else may change between versions. They are imported on first use, so
``import ringtrue`` itself costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringtrue.exports import on_first_use

if TYPE_CHECKING:
    from ringtrue.client import Client as Client
    from ringtrue.errors import (
        AccessDenied as AccessDenied,
        BadAnswer as BadAnswer,
        CannotDecide as CannotDecide,
        InputError as InputError,
        MissingInput as MissingInput,
        RingtrueError as RingtrueError,
        SearchFailed as SearchFailed,
        SpecError as SpecError,
        TimedOut as TimedOut,
        Unreachable as Unreachable,
        ValidationFailed as ValidationFailed,
    )
    from ringtrue.formats import (
        read_qrels as read_qrels,
        read_run as read_run,
        write_qrels as write_qrels,
        write_run as write_run,
    )
    from ringtrue.golden import load as load, load_test_set as load_test_set, validate as validate
    from ringtrue.measures import Facts as Facts, Measure as Measure, Scores as Scores, score as score
    from ringtrue.records import (
        Document as Document,
        GoldenSet as GoldenSet,
        Hit as Hit,
        Judgment as Judgment,
        Qrels as Qrels,
        Query as Query,
        Ranking as Ranking,
        Run as Run,
        Stage as Stage,
    )
    from ringtrue.retrieve import Collection as Collection, Retriever as Retriever, as_retriever as as_retriever
    from ringtrue.retrieve.connectors import connect as connect
    from ringtrue.run import Evaluation as Evaluation, evaluate as evaluate, open_run as open_run
    from ringtrue.stats import ranking_difference as ranking_difference
    from ringtrue.verdict import (
        Baseline as Baseline,
        Comparison as Comparison,
        Policy as Policy,
        Verdict as Verdict,
        compare as compare,
        gate as gate,
    )
else:
    _named, __dir__ = on_first_use(__name__)

    def __getattr__(name: str) -> object:
        if name == "__version__":
            from importlib.metadata import version

            return version("ringtrue")
        return _named(name)
