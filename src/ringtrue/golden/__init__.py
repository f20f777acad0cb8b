"""Golden sets: files ⇄ GoldenSet, and everything that is done to a set before and after it is measured with.

Comes in: files and folders in a dozen formats, bytes that strangers send, names of shipped sets, GoldenSets, runs for pooling
and planning, searches and ratings for a refresh. Goes out: GoldenSets, validation reports, differences, splits, plans, pools,
proposals; files written from a set, and what they lost. May not: measure, print, read the environment or the clock, or know
the database; it imports only errors, records, the file formats and the statistics.
"""

from __future__ import annotations

from ringtrue.golden.bootstrap import Bootstrapped, KnownItems, Row, confirmed, id_from_text, known_item, rewrite
from ringtrue.golden.bounds import UploadLimits
from ringtrue.golden.citations import Citation, Cited, cited, read_citations
from ringtrue.golden.convert import convert
from ringtrue.golden.duplicates import near_duplicates, normalise
from ringtrue.golden.formats import FORMATS, Format, format_named, require_version, save
from ringtrue.golden.generate import Generated, Generator, Made, OfflineGenerator, generate
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
from ringtrue.golden.ratings import RULES, Dispute, Rating, Rule, agreement, by_pair, disputes, rater_name, settle
from ringtrue.golden.record import golden_from, record_of
from ringtrue.golden.refresh import Proposal, Refreshed, age_in_days, age_warning, propose, refresh
from ringtrue.golden.report import Report
from ringtrue.golden.rules import about_scale, check_grades
from ringtrue.golden.slices import slice_fields, slice_of
from ringtrue.golden.split import Leak, Look, leakage, ledger_beside, looks, read_looks, record_look, split
from ringtrue.golden.traffic import Asked, Coverage, Question, Search, choose, coverage, questions
from ringtrue.golden.upload import read_upload
from ringtrue.golden.validate import validate, validate_file
from ringtrue.golden.version import (
    Difference,
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
    "RULES",
    "Asked",
    "Bootstrapped",
    "Candidate",
    "Citation",
    "Cited",
    "Contribution",
    "Copied",
    "Coverage",
    "Difference",
    "Dispute",
    "Format",
    "Generated",
    "Generator",
    "KnownItems",
    "Leak",
    "Look",
    "Made",
    "OfflineGenerator",
    "OverlapSummary",
    "Plan",
    "Pool",
    "Proposal",
    "Question",
    "Rating",
    "Refreshed",
    "Report",
    "Row",
    "Rule",
    "Search",
    "Size",
    "SliceSize",
    "UploadLimits",
    "Version",
    "about_scale",
    "age_in_days",
    "age_warning",
    "agreement",
    "by_pair",
    "check_grades",
    "choose",
    "cited",
    "confirmed",
    "content_hash",
    "content_words",
    "convert",
    "corpus_hash",
    "coverage",
    "diff",
    "disputes",
    "format_named",
    "generate",
    "golden_from",
    "holds_golden_set",
    "id_from_text",
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
    "propose",
    "questions",
    "rater_name",
    "read_citations",
    "read_looks",
    "read_upload",
    "record_look",
    "record_of",
    "refresh",
    "require_version",
    "rewrite",
    "save",
    "settle",
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
