"""How far an item is trusted, from what was said about it (F-3).

Useful adds 0.10, not useful takes 0.05, within [0, 1]. At 0.9 with five validations an item may be promoted. A session has one
vote on an item, its last: one agent that says it five times is one voice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ringtrue.answers import Actor
from ringtrue.errors import InputError
from ringtrue.feedback.detect import OPENING, VALIDATING
from ringtrue.log.linking import by_time, link_all, stable_id
from ringtrue.store import DEFAULT_PROJECT, FeedbackEvent, LoggedQuery

USEFUL = 0.10
NOT_USEFUL = -0.05
START = 0.5
PROMOTED_AT = 0.9
LEAST_VALIDATIONS = 5


@dataclass(frozen=True, slots=True)
class Confidence:
    """The trust in one item and how many sessions spoke about it."""

    value: float = START
    useful: int = 0
    not_useful: int = 0

    @property
    def validations(self) -> int:
        return self.useful + self.not_useful

    @property
    def promotion_eligible(self) -> bool:
        """True at 0.9 or more after five validations or more."""
        return self.value >= PROMOTED_AT and self.validations >= LEAST_VALIDATIONS

    def validated(self, useful: bool) -> Confidence:
        """Return the confidence after one more validation.

        >>> Confidence(0.97).validated(True).value, Confidence(0.5).validated(False).value
        (1.0, 0.45)
        """
        # Rounded: four steps of 0.10 from 0.5 are 0.9, not 0.8999999999999999.
        value = round(min(1.0, max(0.0, self.value + (USEFUL if useful else NOT_USEFUL))), 9)
        return Confidence(value, self.useful + useful, self.not_useful + (not useful))


def confidences(events: Iterable[FeedbackEvent], *, start: Mapping[str, float] | None = None) -> dict[str, Confidence]:
    """Return the confidence of every validated item: one vote a session, its last, in the order of their times.

    ``start`` is what items had before; 0.5 where it does not say. Raises InputError for a start outside [0, 1].
    """
    before = start or {}
    for item_id, value in before.items():
        if not 0.0 <= value <= 1.0:
            raise InputError(f"item '{item_id}' starts with confidence {value!r}; write a number from 0 to 1")
    votes: dict[tuple[str, str, str], FeedbackEvent] = {}
    for event in sorted(events, key=by_time):
        if event.event_type in VALIDATING and event.item_id is not None:
            votes[event.project, event.session_id, event.item_id] = event
    found: dict[str, Confidence] = {}
    for (_, _, item_id), event in sorted(votes.items(), key=lambda vote: by_time(vote[1])):
        now = found.get(item_id) or Confidence(before.get(item_id, START))
        found[item_id] = now.validated(event.event_type == "validate_useful")
    return found


def to_validate(events: Iterable[FeedbackEvent], session_id: str) -> list[str]:
    """Return the items a session opened and said nothing about, as they were opened: what to ask when a task ends."""
    mine = [event for event in events if event.session_id == session_id]
    said = {event.item_id for event in mine if event.event_type in VALIDATING}
    opened = dict.fromkeys(event.item_id for event in sorted(mine, key=by_time) if event.event_type in OPENING)
    return [item_id for item_id in opened if item_id is not None and item_id not in said]


def validate_batch(
    verdicts: Mapping[str, bool],
    *,
    session_id: str,
    at: str,
    searches: Iterable[LoggedQuery] = (),
    actor: Actor = "unknown",
    task_id: str = "",
    project: str = DEFAULT_PROJECT,
) -> list[FeedbackEvent]:
    """Return the events of a task's end, one per item (id → useful), linked to the searches that showed them.

    The ids come from session, task and item: handing in the same batch again, at whatever time, adds nothing.
    """
    events = [
        FeedbackEvent(
            stable_id("validate", project, session_id, task_id, item_id),
            "validate_useful" if useful else "validate_not_useful",
            session_id,
            at,
            project=project,
            item_id=item_id,
            actor=actor,
            metadata={"batch": True, **({"task_id": task_id} if task_id else {})},
        )
        for item_id, useful in verdicts.items()
    ]
    return link_all(events, searches)
