"""Pairs of question and document → grades by people → the next version of a golden set."""

from typing import TYPE_CHECKING

from ringtrue.exports import on_first_use

if TYPE_CHECKING:
    from ringtrue.review.pairs import backlog_rows as backlog_rows
    from ringtrue.review.pairs import chosen as chosen, grouped as grouped, weekly_flow as weekly_flow
    from ringtrue.review.agreement import Coefficient as Coefficient, RatingTable as RatingTable
    from ringtrue.review.agreement import coefficients as coefficients, equal_share as equal_share, in_words as in_words
    from ringtrue.review.agreement import rating_tables as rating_tables
    from ringtrue.review.agreement import (
        Gate as Gate,
        gate as gate,
        judge_of as judge_of,
        require as require,
        said_by_raters as said_by_raters,
    )
    from ringtrue.review.pairs import (
        disputed as disputed,
        key_of as key_of,
        pairs_of as pairs_of,
        STATES as STATES,
        passages_of as passages_of,
    )
    from ringtrue.review.from_log import LlmGenerator as LlmGenerator
    from ringtrue.review.queue import (
        GUIDELINES as GUIDELINES,
        RESERVED as RESERVED,
        Publication as Publication,
        ReviewQueue as ReviewQueue,
    )
    from ringtrue.review.refresh import Situation as Situation, propose_from_log as propose_from_log
else:
    __getattr__, __dir__ = on_first_use(__name__)
