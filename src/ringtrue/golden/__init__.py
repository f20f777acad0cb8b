"""Golden sets: files ⇄ GoldenSet, and everything that is done to a set before and after it is measured with.

Comes in: files and folders in a dozen formats, names of shipped sets, GoldenSets, runs for pooling and planning.
Goes out: GoldenSets, validation reports, differences, splits, plans, pools; files written from a set, and what they
lost. May not: measure, print, read the environment or the clock, or know the database; it imports only errors, records,
the file formats and the statistics.
"""

from __future__ import annotations

from ringtrue.golden.bootstrap import KnownItems, known_item
from ringtrue.golden.convert import convert
from ringtrue.golden.duplicates import near_duplicates, normalise
from ringtrue.golden.formats import FORMATS, Format, format_named, save
from ringtrue.golden.load import holds_golden_set, load, load_test_set, locate, shipped
from ringtrue.golden.overlap import (
    Copied,
    OverlapSummary,
    content_words,
    is_copied,
    longest_shared_phrase,
    overlap,
    summarise,
)
from ringtrue.golden.plan import Candidate, Plan, Size, SliceSize, plan, worth_judging
from ringtrue.golden.pool import Contribution, Pool, pool
from ringtrue.golden.profiles import PROFILES
from ringtrue.golden.report import Problem, Report
from ringtrue.golden.slices import slice_fields, slice_of
from ringtrue.golden.split import Leak, Look, leakage, ledger_beside, looks, read_looks, record_look, split
from ringtrue.golden.validate import validate, validate_file
from ringtrue.golden.version import (
    Changes,
    Difference,
    JudgmentChange,
    Version,
    content_hash,
    corpus_hash,
    diff,
    parse_version,
    version_name,
)

__all__ = [
    "FORMATS",
    "PROFILES",
    "Candidate",
    "Changes",
    "Contribution",
    "Copied",
    "Difference",
    "Format",
    "JudgmentChange",
    "KnownItems",
    "Leak",
    "Look",
    "OverlapSummary",
    "Plan",
    "Pool",
    "Problem",
    "Report",
    "Size",
    "SliceSize",
    "Version",
    "content_hash",
    "content_words",
    "convert",
    "corpus_hash",
    "diff",
    "format_named",
    "holds_golden_set",
    "is_copied",
    "known_item",
    "leakage",
    "ledger_beside",
    "load",
    "load_test_set",
    "locate",
    "longest_shared_phrase",
    "looks",
    "near_duplicates",
    "normalise",
    "overlap",
    "parse_version",
    "plan",
    "pool",
    "read_looks",
    "record_look",
    "save",
    "shipped",
    "slice_fields",
    "slice_of",
    "split",
    "summarise",
    "validate",
    "validate_file",
    "version_name",
    "worth_judging",
]
