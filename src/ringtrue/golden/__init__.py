"""Golden sets: files ⇄ GoldenSet, and everything that is done to a set before and after it is measured with.

Comes in: files and folders in a dozen formats, bytes that strangers send, names of shipped sets, GoldenSets, runs for pooling
and planning, searches and ratings for a refresh. Goes out: GoldenSets, validation reports, differences, splits, plans, pools,
proposals; files written from a set, and what they lost. May not: measure, print, read the environment or the clock, or know
the database; it imports only errors, records, the file formats and the statistics.
"""

from __future__ import annotations

from ringtrue.golden.bootstrap import (
    CONFIRM as CONFIRM,
    Citation as Citation,
    Row as Row,
    cited as cited,
    known_item as known_item,
    read_citations as read_citations,
    rewrite as rewrite,
)
from ringtrue.golden.formats import (
    FORMATS as FORMATS,
    detect as detect,
    format_named as format_named,
    require_version as require_version,
    save as save,
)
from ringtrue.golden.formats.fields import PROFILES as PROFILES
from ringtrue.golden.generating import Generator as Generator, OfflineGenerator as OfflineGenerator, generate as generate
from ringtrue.golden.likeness import (
    STOP_WORDS as STOP_WORDS,
    content_words as content_words,
    is_copied as is_copied,
    near_duplicates as near_duplicates,
    normalise as normalise,
    overlap as overlap,
    summarise as summarise,
)
from ringtrue.golden.loading import (
    golden_from as golden_from,
    holds_golden_set as holds_golden_set,
    load as load,
    load_test_set as load_test_set,
    locate as locate,
    record_of as record_of,
    shipped as shipped,
)
from ringtrue.golden.ratings import (
    KAPPA as KAPPA,
    RULES as RULES,
    RaterDispute as RaterDispute,
    Rating as Rating,
    Rule as Rule,
    agreement as agreement,
    by_pair as by_pair,
    disagreement as disagreement,
    disputes as disputes,
    rater_name as rater_name,
    settle as settle,
    settled_judgments as settled_judgments,
)
from ringtrue.golden.refreshing import (
    AskedQuestions as AskedQuestions,
    Coverage as Coverage,
    Proposal as Proposal,
    AskedQuestion as AskedQuestion,
    Refreshed as Refreshed,
    age_in_days as age_in_days,
    age_warning as age_warning,
    choose as choose,
    coverage as coverage,
    propose as propose,
    questions as questions,
    refresh as refresh,
)
from ringtrue.golden.rules import about_scale as about_scale, check_grades as check_grades
from ringtrue.golden.planning import (
    LEDGER as LEDGER,
    NO_VALUE as NO_VALUE,
    Candidate as Candidate,
    leakage as leakage,
    ledger_beside as ledger_beside,
    looks as looks,
    plan as plan,
    pool as pool,
    read_looks as read_looks,
    record_look as record_look,
    slice_fields as slice_fields,
    slice_of as slice_of,
    split as split,
    worth_judging as worth_judging,
)
from ringtrue.golden.upload import UploadLimits as UploadLimits, read_upload as read_upload
from ringtrue.golden.validation import (
    ValidationReport as ValidationReport,
    validate as validate,
    validate_file as validate_file,
)
from ringtrue.golden.version import (
    VersionDifference as VersionDifference,
    Version as Version,
    content_hash as content_hash,
    corpus_hash as corpus_hash,
    diff as diff,
    parse_version as parse_version,
    version_name as version_name,
)
