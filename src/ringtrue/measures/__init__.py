"""Measures: judgments and a run come in, scores per query and their means go out.

Pure and columnar: no files, no printing, no randomness. What a measure *is* stands in ``definition`` (one table), how the
ranked ones are computed in ``ranked``, those that read whole answers in ``lists``; ``align`` joins run and judgments once
for all of them; ``score`` applies the policies of M-3; ``diagnostics`` and ``memory`` hold the figures that describe many
answers at once (M-8, M-9).
"""

from ringtrue.measures.definition import ALIASES, CATALOGUE, DEFINITIONS, Definition, Measure
from ringtrue.measures.lists import TIER_WEIGHTS, Facts
from ringtrue.measures.score import as_qrels, as_run, score
from ringtrue.measures.scores import Counted, Scores, Summary

__all__ = [
    "ALIASES",
    "CATALOGUE",
    "DEFINITIONS",
    "TIER_WEIGHTS",
    "Counted",
    "Definition",
    "Facts",
    "Measure",
    "Scores",
    "Summary",
    "as_qrels",
    "as_run",
    "score",
]
