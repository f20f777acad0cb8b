"""Online: what real users and agents do → log, feedback, judgments, decisions. The SDK that live systems import.

Comes in: searches and what became of them. Goes out: records in the store, judgments, states of tests and flags. May not: slow
down or break the search it watches; print.

The names are imported on first use: a live system pays only for those it takes.
"""

from typing import TYPE_CHECKING

from ringtrue.exports import on_first_use

if TYPE_CHECKING:
    from ringtrue.online.abtest import (
        Recorded as Recorded,
        Scores as Scores,
        Standing as Standing,
        begin_now as begin_now,
        checked_scores as checked_scores,
        counted_as as counted_as,
        create_test as create_test,
        found_test as found_test,
        record_difference as record_difference,
        record_scores as record_scores,
        set_status as set_status,
        standing as standing,
    )
    from ringtrue.online.bias import (
        Attraction as Attraction,
        Examination as Examination,
        Shown as Shown,
        attractions as attractions,
    )
    from ringtrue.online.buckets import bucket as bucket
    from ringtrue.online.candidate import Described as Described
    from ringtrue.online.confidence import (
        Confidence as Confidence,
        confidences as confidences,
        to_validate as to_validate,
        validate_batch as validate_batch,
    )
    from ringtrue.online.derive import (
        Derived as Derived,
        derive_into as derive_into,
        derive_judgments as derive_judgments,
        question_id as question_id,
    )
    from ringtrue.online.detect import (
        DetectionRules as DetectionRules,
        file_read as file_read,
        re_searches as re_searches,
        references as references,
        scroll_pasts as scroll_pasts,
    )
    from ringtrue.online.evidence import Evidence as Evidence, gather as gather, shadow_of as shadow_of
    from ringtrue.online.exchange import (
        SOURCES as SOURCES,
        Imported as Imported,
        export_rows as export_rows,
        import_files as import_files,
        queries_of as queries_of,
    )
    from ringtrue.online.feedback import (
        check_event as check_event,
        link as link,
        link_all as link_all,
        record_feedback as record_feedback,
    )
    from ringtrue.online.figures import (
        Figures as Figures,
        LogFigures as LogFigures,
        Losses as Losses,
        log_figures as log_figures,
        losses as losses,
    )
    from ringtrue.online.flags import (
        PRESETS as PRESETS,
        Flags as Flags,
        change_flag as change_flag,
        existing_flag as existing_flag,
        is_on as is_on,
        only_forced as only_forced,
        overrides as overrides,
    )
    from ringtrue.online.generator import LlmGenerator as LlmGenerator
    from ringtrue.online.graduate import (
        NO_CONSTITUTIONAL as NO_CONSTITUTIONAL,
        Decision as Decision,
        decide as decide,
        explain as explain,
        roll_back as roll_back,
        step as step,
    )
    from ringtrue.online.health import Health as Health, health_of as health_of, review_and_evaluation as review_and_evaluation
    from ringtrue.online.identify import event_name as event_name, query_name as query_name
    from ringtrue.online.interleave import (
        Interleaved as Interleaved,
        as_flag as as_flag,
        from_flags as from_flags,
        interleaved as interleaved,
    )
    from ringtrue.online.interleave_outcome import (
        InterleavingOutcome as InterleavingOutcome,
        count_log as count_log,
        judge_credits as judge_credits,
    )
    from ringtrue.online.lines import line_of as line_of, row_of as row_of
    from ringtrue.online.log import (
        LoggedSearch as LoggedSearch,
        QueryLog as QueryLog,
        Watched as Watched,
        log_folder as log_folder,
    )
    from ringtrue.online.missing import Missing as Missing, missing_of as missing_of
    from ringtrue.online.on_golden import (
        OnGolden as OnGolden,
        measures_for as measures_for,
        record_on_golden as record_on_golden,
        without_constitutional as without_constitutional,
    )
    from ringtrue.online.precedence import qrels as qrels, winning as winning
    from ringtrue.online.proxy import quality_proxy as quality_proxy, saturating as saturating
    from ringtrue.online.redact import Redactor as Redactor, Unredacted as Unredacted
    from ringtrue.online.refresh import Progress as Progress, Situation as Situation, propose_from_log as propose_from_log
    from ringtrue.online.results import record_evaluation as record_evaluation
    from ringtrue.online.review import (
        Publication as Publication,
        Rater as Rater,
        ReviewQueue as ReviewQueue,
        pairs_of as pairs_of,
    )
    from ringtrue.online.scoring import (
        Scored as Scored,
        feed_for_test as feed_for_test,
        feed_judged as feed_judged,
        golden_scorer as golden_scorer,
        grades_by_words as grades_by_words,
        grades_of as grades_of,
        scorer as scorer,
    )
    from ringtrue.online.sessions import (
        Correlation as Correlation,
        SessionSummary as SessionSummary,
        TaskOutcome as TaskOutcome,
        correlations as correlations,
        session_summaries as session_summaries,
        stored_outcomes as stored_outcomes,
        task_points as task_points,
    )
    from ringtrue.online.shadow import Shadow as Shadow, ShadowCounts as ShadowCounts
    from ringtrue.online.spans import queries_in_spans as queries_in_spans
    from ringtrue.online.summary import summarise as summarise
    from ringtrue.online.tally import Counts as Counts, living as living
    from ringtrue.online.triggers import (
        LearnedTriggers as LearnedTriggers,
        Lesson as Lesson,
        Phrase as Phrase,
        Rehearsal as Rehearsal,
        Safeguards as Safeguards,
        learn_from_log as learn_from_log,
        learn_from_selection as learn_from_selection,
        learn_into as learn_into,
        learned_phrases as learned_phrases,
        rehearse as rehearse,
        roll_back_triggers as roll_back_triggers,
        serving_phrases as serving_phrases,
        standing_phrases as standing_phrases,
        trigger_log as trigger_log,
    )
    from ringtrue.online.ubi import ACTIONS as ACTIONS, rows_in_ubi as rows_in_ubi
    from ringtrue.online.writer import Recovered as Recovered
    from ringtrue.store import FeedbackEvent as FeedbackEvent, LoggedQuery as LoggedQuery
    from ringtrue.traffic import TrafficMiddleware as TrafficMiddleware
else:
    __getattr__, __dir__ = on_first_use(__name__)
