"""From a candidate to everybody: shadow runs, sequential tests, interleaving, flags, graduation and health."""

from typing import TYPE_CHECKING

from ringtrue.exports import on_first_use

if TYPE_CHECKING:
    from ringtrue.rollout.abtest import (
        begin_now as begin_now,
        checked_scores as checked_scores,
        counted_as as counted_as,
        create_test as create_test,
        found_test as found_test,
        record_difference as record_difference,
        record_scores as record_scores,
        Recorded as Recorded,
        PairedScores as PairedScores,
        set_status as set_status,
        TestStanding as TestStanding,
        standing as standing,
    )
    from ringtrue.rollout.candidate import Described as Described
    from ringtrue.rollout.evidence import (
        compared as compared,
        Feed as Feed,
        gather as gather,
        Scored as Scored,
        shadow_of as shadow_of,
        summarise as summarise,
    )
    from ringtrue.rollout.flags import (
        bucket as bucket,
        change_flag as change_flag,
        existing_flag as existing_flag,
        Flags as Flags,
        is_on as is_on,
        only_forced as only_forced,
        overrides as overrides,
    )
    from ringtrue.rollout.graduate import (
        decide as decide,
        Decision as Decision,
        explain as explain,
        NO_CONSTITUTIONAL as NO_CONSTITUTIONAL,
        roll_back as roll_back,
        step as step,
    )
    from ringtrue.rollout.health import (
        Health as Health,
        health_of as health_of,
        review_and_evaluation as review_and_evaluation,
    )
    from ringtrue.rollout.interleave import (
        as_flag as as_flag,
        count_log as count_log,
        from_flags as from_flags,
        Interleaved as Interleaved,
        interleaved as interleaved,
        InterleavingOutcome as InterleavingOutcome,
        judge_credits as judge_credits,
    )
    from ringtrue.rollout.scoring import (
        feed_for_test as feed_for_test,
        feed_judged as feed_judged,
        golden_scorer as golden_scorer,
        grades_by_words as grades_by_words,
        judged_shadow_of as judged_shadow_of,
        measures_for as measures_for,
        OnGolden as OnGolden,
        record_evaluation as record_evaluation,
        record_on_golden as record_on_golden,
        scorer as scorer,
        without_constitutional as without_constitutional,
    )
    from ringtrue.rollout.shadow import Shadow as Shadow, ShadowCounts as ShadowCounts
else:
    __getattr__, __dir__ = on_first_use(__name__)
