"""Runs: a retriever and a golden set come in, an Evaluation goes out. Owner of pools, stopwatches and the result cache.

May not: judge, print. The retriever that is asked is the very object that serves live queries.
"""

from ringtrue.run.named import branch_and_commit as branch_and_commit, commit_of as commit_of
from ringtrue.run.evaluation import (
    DEFAULT_MEASURES as DEFAULT_MEASURES,
    NOT_CACHED as NOT_CACHED,
    REPLAYED as REPLAYED,
    Component as Component,
    Evaluation as Evaluation,
    Loss as Loss,
    Origin as Origin,
    Precondition as Precondition,
    Setup as Setup,
    usual_measures as usual_measures,
)
from ringtrue.run.evaluator import (
    Watcher as Watcher,
    evaluate as evaluate,
    machine as machine,
)
from ringtrue.run.figures import FIGURES as FIGURES, misspelt as misspelt
from ringtrue.run.folder import (
    RUNS as RUNS,
    json_value as json_value,
    new_run_folder as new_run_folder,
    newest_run as newest_run,
    numbered as numbered,
    open_run as open_run,
    packed as packed,
    run_folder as run_folder,
    save as save,
    unpacked as unpacked,
    write_new as write_new,
)
from ringtrue.run.named import (
    Search as Search,
    expressions_of as expressions_of,
    files_matching as files_matching,
    search_named as search_named,
    subjects_named as subjects_named,
)
from ringtrue.run.preconditions import foreign_ids as foreign_ids
from ringtrue.run.planting import (
    PartlyPlanted as PartlyPlanted,
    Planting as Planting,
    plant as plant,
    planted as planted,
    remove_planted as remove_planted,
)
from ringtrue.run.subject import (
    Routed as Routed,
    Subject as Subject,
    answered_passages as answered_passages,
    code_hash as code_hash,
    corpus_of as corpus_of,
    subject_of as subject_of,
)
