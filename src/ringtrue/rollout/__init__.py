"""From a candidate to everybody: shadow runs, sequential tests, interleaving, flags, graduation and health."""

from typing import TYPE_CHECKING

from ringtrue.exports import on_first_use

if TYPE_CHECKING:
    from ringtrue.rollout.abtest import (
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
    from ringtrue.rollout.flags import bucket as bucket
    from ringtrue.rollout.candidate import Described as Described
    from ringtrue.rollout.evidence import Evidence as Evidence, gather as gather, shadow_of as shadow_of
    from ringtrue.rollout.flags import (
        Flags as Flags,
        PRESETS as PRESETS,
        change_flag as change_flag,
        existing_flag as existing_flag,
        is_on as is_on,
        only_forced as only_forced,
        overrides as overrides,
    )
    from ringtrue.rollout.graduate import (
        Decision as Decision,
        NO_CONSTITUTIONAL as NO_CONSTITUTIONAL,
        decide as decide,
        explain as explain,
        roll_back as roll_back,
        step as step,
    )
    from ringtrue.rollout.health import Health as Health, health_of as health_of, review_and_evaluation as review_and_evaluation
    from ringtrue.rollout.interleave import (
        Interleaved as Interleaved,
        as_flag as as_flag,
        from_flags as from_flags,
        interleaved as interleaved,
    )
    from ringtrue.rollout.interleave_outcome import (
        InterleavingOutcome as InterleavingOutcome,
        count_log as count_log,
        judge_credits as judge_credits,
    )
    from ringtrue.rollout.shadow_summary import Missing as Missing, missing_of as missing_of
    from ringtrue.rollout.results import (
        OnGolden as OnGolden,
        measures_for as measures_for,
        record_on_golden as record_on_golden,
        without_constitutional as without_constitutional,
    )
    from ringtrue.rollout.scoring import (
        Scored as Scored,
        feed_for_test as feed_for_test,
        feed_judged as feed_judged,
        golden_scorer as golden_scorer,
        grades_by_words as grades_by_words,
        grades_of as grades_of,
        scorer as scorer,
    )
    from ringtrue.rollout.shadow import Shadow as Shadow, ShadowCounts as ShadowCounts
    from ringtrue.rollout.shadow_summary import summarise as summarise
    from ringtrue.rollout.results import record_evaluation as record_evaluation
else:
    __getattr__, __dir__ = on_first_use(__name__)
