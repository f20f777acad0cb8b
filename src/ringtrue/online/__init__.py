"""Online: what real users and agents do → log, feedback, judgments, decisions. The SDK that live systems import.

Comes in: searches and what became of them. Goes out: records in the store, judgments, states of tests and flags. May not: slow
down or break the search it watches; print.

The names are imported on first use: a live system pays only for those it takes.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ringtrue.online.abtest import (
        Recorded,
        Scores,
        Standing,
        begin_now,
        checked_scores,
        counted_as,
        create_test,
        found_test,
        record_difference,
        record_scores,
        set_status,
        standing,
    )
    from ringtrue.online.bias import Attraction, Examination, Shown, attractions
    from ringtrue.online.buckets import bucket
    from ringtrue.online.candidate import Described
    from ringtrue.online.confidence import Confidence, confidences, to_validate, validate_batch
    from ringtrue.online.derive import Derived, derive_into, derive_judgments, question_id
    from ringtrue.online.detect import DetectionRules, file_read, re_searches, references, scroll_pasts
    from ringtrue.online.evidence import Evidence, gather, shadow_of
    from ringtrue.online.exchange import SOURCES, Imported, export_rows, import_files, queries_of
    from ringtrue.online.feedback import check_event, link, link_all, record_feedback
    from ringtrue.online.figures import Figures, LogFigures, Losses, log_figures, losses
    from ringtrue.online.flags import PRESETS, Flags, change_flag, existing_flag, is_on, only_forced, overrides
    from ringtrue.online.generator import LlmGenerator
    from ringtrue.online.graduate import NO_CONSTITUTIONAL, Decision, decide, explain, roll_back, step
    from ringtrue.online.health import Health, health_of, review_and_evaluation
    from ringtrue.online.identify import event_name, query_name
    from ringtrue.online.interleave import Interleaved, as_flag, from_flags, interleaved
    from ringtrue.online.interleave_outcome import InterleavingOutcome, count_log, judge_credits
    from ringtrue.online.lines import line_of, row_of
    from ringtrue.online.log import LoggedSearch, QueryLog, Watched, log_folder
    from ringtrue.online.missing import Missing, missing_of
    from ringtrue.online.on_golden import OnGolden, measures_for, record_on_golden, without_constitutional
    from ringtrue.online.precedence import qrels, winning
    from ringtrue.online.proxy import quality_proxy, saturating
    from ringtrue.online.redact import Redactor, Unredacted
    from ringtrue.online.refresh import Progress, Situation, propose_from_log
    from ringtrue.online.results import record_evaluation
    from ringtrue.online.review import Publication, Rater, ReviewQueue, pairs_of
    from ringtrue.online.scoring import (
        Scored,
        feed_for_test,
        feed_judged,
        golden_scorer,
        grades_by_words,
        grades_of,
        scorer,
    )
    from ringtrue.online.sessions import (
        Correlation,
        SessionSummary,
        TaskOutcome,
        correlations,
        session_summaries,
        stored_outcomes,
        task_points,
    )
    from ringtrue.online.shadow import Shadow, ShadowCounts
    from ringtrue.online.spans import queries_in_spans
    from ringtrue.online.summary import summarise
    from ringtrue.online.tally import Counts, living
    from ringtrue.online.triggers import (
        LearnedTriggers,
        Lesson,
        Phrase,
        Rehearsal,
        Safeguards,
        learn_from_log,
        learn_from_selection,
        learn_into,
        learned_phrases,
        rehearse,
        roll_back_triggers,
        serving_phrases,
        standing_phrases,
        trigger_log,
    )
    from ringtrue.online.ubi import ACTIONS, rows_in_ubi
    from ringtrue.online.writer import Recovered
    from ringtrue.store import FeedbackEvent, LoggedQuery
    from ringtrue.traffic import TrafficMiddleware

_HOME = {
    "buckets": ("bucket",),
    "candidate": ("Described",),
    "evidence": (
        "Evidence",
        "gather",
        "shadow_of",
    ),
    "flags": (
        "PRESETS",
        "Flags",
        "change_flag",
        "existing_flag",
        "is_on",
        "only_forced",
        "overrides",
    ),
    "graduate": (
        "NO_CONSTITUTIONAL",
        "Decision",
        "decide",
        "explain",
        "roll_back",
        "step",
    ),
    "health": (
        "Health",
        "health_of",
        "review_and_evaluation",
    ),
    "on_golden": (
        "OnGolden",
        "measures_for",
        "record_on_golden",
        "without_constitutional",
    ),
    "scoring": (
        "Scored",
        "feed_for_test",
        "feed_judged",
        "golden_scorer",
        "grades_by_words",
        "grades_of",
        "scorer",
    ),
    "shadow": (
        "Shadow",
        "ShadowCounts",
    ),
    "summary": ("summarise",),
    "abtest": (
        "Recorded",
        "Scores",
        "Standing",
        "begin_now",
        "checked_scores",
        "create_test",
        "found_test",
        "counted_as",
        "record_difference",
        "record_scores",
        "set_status",
        "standing",
    ),
    "interleave": ("Interleaved", "as_flag", "from_flags", "interleaved"),
    "interleave_outcome": ("InterleavingOutcome", "count_log", "judge_credits"),
    "exchange": ("SOURCES", "Imported", "export_rows", "import_files", "queries_of"),
    "figures": ("Figures", "LogFigures", "Losses", "log_figures", "losses"),
    "identify": ("event_name", "query_name"),
    "lines": ("LoggedQuery", "line_of", "row_of"),
    "missing": ("Missing", "missing_of"),
    "log": ("LoggedSearch", "QueryLog", "Watched", "log_folder"),
    "proxy": ("quality_proxy", "saturating"),
    "redact": ("Redactor", "Unredacted"),
    "results": ("record_evaluation",),
    "generator": ("LlmGenerator",),
    "refresh": ("Progress", "Situation", "propose_from_log"),
    # The queue's own Standing stays there: the name belongs to the sequential test here.
    "review": ("Publication", "Rater", "ReviewQueue", "pairs_of"),
    "spans": ("queries_in_spans",),
    "tally": ("Counts", "living"),
    "ubi": ("ACTIONS", "rows_in_ubi"),
    "writer": ("Recovered",),
    "bias": ("Attraction", "Examination", "Shown", "attractions"),
    "confidence": ("Confidence", "confidences", "to_validate", "validate_batch"),
    "derive": ("Derived", "derive_into", "derive_judgments", "question_id"),
    "detect": ("DetectionRules", "file_read", "re_searches", "references", "scroll_pasts"),
    "feedback": ("FeedbackEvent", "check_event", "link", "link_all", "record_feedback"),
    "precedence": ("qrels", "winning"),
    "sessions": (
        "Correlation",
        "SessionSummary",
        "TaskOutcome",
        "correlations",
        "session_summaries",
        "stored_outcomes",
        "task_points",
    ),
    "triggers": (
        "LearnedTriggers",
        "Lesson",
        "Phrase",
        "Rehearsal",
        "Safeguards",
        "learn_from_log",
        "learn_from_selection",
        "learn_into",
        "learned_phrases",
        "rehearse",
        "roll_back_triggers",
        "serving_phrases",
        "standing_phrases",
        "trigger_log",
    ),
}
_MODULE_OF = {name: f"ringtrue.online.{module}" for module, names in _HOME.items() for name in names}
_MODULE_OF["TrafficMiddleware"] = "ringtrue.traffic"

__all__ = [
    "ACTIONS",
    "NO_CONSTITUTIONAL",
    "PRESETS",
    "SOURCES",
    "Attraction",
    "Confidence",
    "Correlation",
    "Counts",
    "Decision",
    "Derived",
    "Described",
    "DetectionRules",
    "Evidence",
    "Examination",
    "FeedbackEvent",
    "Figures",
    "Flags",
    "Health",
    "Imported",
    "Interleaved",
    "InterleavingOutcome",
    "LearnedTriggers",
    "Lesson",
    "LlmGenerator",
    "LogFigures",
    "LoggedQuery",
    "LoggedSearch",
    "Losses",
    "Missing",
    "OnGolden",
    "Phrase",
    "Progress",
    "Publication",
    "QueryLog",
    "Rater",
    "Recorded",
    "Recovered",
    "Redactor",
    "Rehearsal",
    "ReviewQueue",
    "Safeguards",
    "Scored",
    "Scores",
    "SessionSummary",
    "Shadow",
    "ShadowCounts",
    "Shown",
    "Situation",
    "Standing",
    "TaskOutcome",
    "TrafficMiddleware",
    "Unredacted",
    "Watched",
    "as_flag",
    "attractions",
    "begin_now",
    "bucket",
    "change_flag",
    "check_event",
    "checked_scores",
    "confidences",
    "correlations",
    "count_log",
    "counted_as",
    "create_test",
    "decide",
    "derive_into",
    "derive_judgments",
    "event_name",
    "existing_flag",
    "explain",
    "export_rows",
    "feed_for_test",
    "feed_judged",
    "file_read",
    "found_test",
    "from_flags",
    "gather",
    "golden_scorer",
    "grades_by_words",
    "grades_of",
    "health_of",
    "import_files",
    "interleaved",
    "is_on",
    "judge_credits",
    "learn_from_log",
    "learn_from_selection",
    "learn_into",
    "learned_phrases",
    "line_of",
    "link",
    "link_all",
    "living",
    "log_figures",
    "log_folder",
    "losses",
    "measures_for",
    "missing_of",
    "only_forced",
    "overrides",
    "pairs_of",
    "propose_from_log",
    "qrels",
    "quality_proxy",
    "queries_in_spans",
    "queries_of",
    "query_name",
    "question_id",
    "re_searches",
    "record_difference",
    "record_evaluation",
    "record_feedback",
    "record_on_golden",
    "record_scores",
    "references",
    "rehearse",
    "review_and_evaluation",
    "roll_back",
    "roll_back_triggers",
    "row_of",
    "rows_in_ubi",
    "saturating",
    "scorer",
    "scroll_pasts",
    "serving_phrases",
    "session_summaries",
    "set_status",
    "shadow_of",
    "standing",
    "standing_phrases",
    "step",
    "stored_outcomes",
    "summarise",
    "task_points",
    "to_validate",
    "trigger_log",
    "validate_batch",
    "winning",
    "without_constitutional",
]


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        return getattr(import_module(_MODULE_OF[name]), name)
    raise AttributeError(f"module 'ringtrue.online' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
