"""What people and agents did with answers → linked events → judgments, sessions and learned trigger phrases."""

from typing import TYPE_CHECKING

from ringtrue.exports import on_first_use

if TYPE_CHECKING:
    from ringtrue.feedback.bias import (
        Shown as Shown,
        attractions as attractions,
    )
    from ringtrue.feedback.detect import (
        Confidence as Confidence,
        confidences as confidences,
        to_validate as to_validate,
        validate_batch as validate_batch,
    )
    from ringtrue.feedback.derive import (
        KEY as KEY,
        ONE_OF as ONE_OF,
        QUERY as QUERY,
        SELECTING as SELECTING,
        Derived as Derived,
        derive_into as derive_into,
        derive_judgments as derive_judgments,
        keyed as keyed,
        qrels as qrels,
        question_id as question_id,
        text_key as text_key,
        variant_of as variant_of,
        winning_by_words as winning_by_words,
    )
    from ringtrue.feedback.detect import (
        file_read as file_read,
        re_searches as re_searches,
        references as references,
        scroll_pasts as scroll_pasts,
    )
    from ringtrue.feedback.sessions import (
        OUTCOMES as OUTCOMES,
        Correlation as Correlation,
        SessionSummary as SessionSummary,
        TaskOutcome as TaskOutcome,
        correlations as correlations,
        session_summaries as session_summaries,
        stored_outcomes as stored_outcomes,
        task_points as task_points,
    )
    from ringtrue.feedback.triggers import (
        LearnedTriggers as LearnedTriggers,
        Rehearsal as Rehearsal,
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
else:
    __getattr__, __dir__ = on_first_use(__name__)
