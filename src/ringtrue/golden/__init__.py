"""Golden sets: files ⇄ GoldenSet, and everything that is done to a set before and after it is measured with.

Comes in: files and folders in a dozen formats, bytes that strangers send, names of shipped sets, GoldenSets, runs for pooling
and planning, searches and ratings for a refresh. Goes out: GoldenSets, validation reports, differences, splits, plans, pools,
proposals; files written from a set, and what they lost. May not: measure, print, read the environment or the clock, or know
the database; it imports only errors, records, the file formats and the statistics.
"""

from __future__ import annotations

from ringtrue.golden.bootstrap import (
    Bootstrapped as Bootstrapped,
    KnownItems as KnownItems,
    Row as Row,
    confirmed as confirmed,
    id_from_text as id_from_text,
    known_item as known_item,
    rewrite as rewrite,
)
from ringtrue.golden.bounds import UploadLimits as UploadLimits
from ringtrue.golden.citations import Citation as Citation, Cited as Cited, cited as cited, read_citations as read_citations
from ringtrue.golden.convert import convert as convert
from ringtrue.golden.duplicates import near_duplicates as near_duplicates, normalise as normalise
from ringtrue.golden.formats import (
    FORMATS as FORMATS,
    Format as Format,
    format_named as format_named,
    require_version as require_version,
    save as save,
)
from ringtrue.golden.generate import (
    Generated as Generated,
    Generator as Generator,
    Made as Made,
    OfflineGenerator as OfflineGenerator,
    generate as generate,
)
from ringtrue.golden.load import (
    holds_golden_set as holds_golden_set,
    load as load,
    load_test_set as load_test_set,
    locate as locate,
    shipped as shipped,
)
from ringtrue.golden.overlap import (
    Copied as Copied,
    OverlapSummary as OverlapSummary,
    content_words as content_words,
    is_copied as is_copied,
    longest_shared_phrase as longest_shared_phrase,
    overlap as overlap,
    summarise as summarise,
)
from ringtrue.golden.plan import (
    Candidate as Candidate,
    Plan as Plan,
    Size as Size,
    SliceSize as SliceSize,
    plan as plan,
    worth_judging as worth_judging,
)
from ringtrue.golden.pool import Contribution as Contribution, Pool as Pool, pool as pool
from ringtrue.golden.profiles import PROFILES as PROFILES
from ringtrue.golden.ratings import (
    RULES as RULES,
    Dispute as Dispute,
    Rating as Rating,
    Rule as Rule,
    agreement as agreement,
    by_pair as by_pair,
    disputes as disputes,
    rater_name as rater_name,
    settle as settle,
)
from ringtrue.golden.record import golden_from as golden_from, record_of as record_of
from ringtrue.golden.refresh import (
    Proposal as Proposal,
    Refreshed as Refreshed,
    age_in_days as age_in_days,
    age_warning as age_warning,
    propose as propose,
    refresh as refresh,
)
from ringtrue.golden.report import Report as Report
from ringtrue.golden.rules import about_scale as about_scale, check_grades as check_grades
from ringtrue.golden.slices import slice_fields as slice_fields, slice_of as slice_of
from ringtrue.golden.split import (
    Leak as Leak,
    Look as Look,
    leakage as leakage,
    ledger_beside as ledger_beside,
    looks as looks,
    read_looks as read_looks,
    record_look as record_look,
    split as split,
)
from ringtrue.golden.traffic import (
    Asked as Asked,
    Coverage as Coverage,
    Question as Question,
    Search as Search,
    choose as choose,
    coverage as coverage,
    questions as questions,
)
from ringtrue.golden.upload import read_upload as read_upload
from ringtrue.golden.validate import validate as validate, validate_file as validate_file
from ringtrue.golden.version import (
    Difference as Difference,
    Version as Version,
    content_hash as content_hash,
    corpus_hash as corpus_hash,
    diff as diff,
    parse_version as parse_version,
    version_name as version_name,
)
