"""Tasks and what was said of memories at their end: kept in the journal, from where they come into the store.

An agent says before a task how much it knows and how unsure it is, from 0 to 1, and says so again when the task is done. The
difference is what it learned; ``learning_index`` is the mean of knowledge gained and uncertainty lost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from ringtrue.errors import InputError, nearest
from ringtrue.feedback import Confidence, TaskOutcome, confidences, validate_batch
from ringtrue.memory.hook.journal import events, record
from ringtrue.memory.hook.memory import Memory
from ringtrue.store import FeedbackEvent

TASK, VALIDATE = "task", "validate"
BEFORE, AFTER = "preflight", "postflight"
FIGURES = ("knowledge_delta", "uncertainty_reduction", "learning_index")


@dataclass(frozen=True, slots=True)
class State:
    """How much is known about a task and how unsure it is, each from 0 to 1."""

    knowledge: float
    uncertainty: float

    def __post_init__(self) -> None:
        for name in ("knowledge", "uncertainty"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
                raise InputError(f"{name} is {value!r}; write a number from 0 to 1, such as 0.7 for 70 of 100")


def outcome_of(session_id: str, task_id: str, before: State, after: State) -> TaskOutcome:
    """Return what a task taught.

    >>> outcome_of("s", "t", State(0.2, 0.8), State(0.7, 0.3)).learning_index
    0.5
    """
    gained = round(after.knowledge - before.knowledge, 9)
    lost = round(before.uncertainty - after.uncertainty, 9)
    return TaskOutcome(session_id, task_id, gained, lost, round((gained + lost) / 2, 9))


def preflight(root: str, *, session_id: str, task_id: str, state: State, now: float) -> bool:
    """Write down how a task begins; return True if it had begun before, which no longer counts then.

    Raises InputError without a session or a task to know it by, for a task that has ended, and where nothing can be written.
    """
    begun, ended = _task(root, session_id, task_id)
    if ended:
        raise InputError(f"task '{task_id}' of session '{session_id}' has ended already; give the next task another task_id")
    named = {"session_id": session_id, "task_id": task_id}
    _note(root, {"at": now, "event": TASK, "phase": BEFORE, **named, **asdict(state)})
    return begun is not None


def postflight(root: str, *, session_id: str, task_id: str, state: State, now: float) -> TaskOutcome:
    """Write down how a task ended and return what it taught; raises InputError if it never began or ended already."""
    begun, ended = _task(root, session_id, task_id)
    if ended:
        raise InputError(f"task '{task_id}' of session '{session_id}' has ended already; its outcome stands")
    if begun is None:
        known = sorted({str(event.get("task_id")) for event in _tasks(root) if event.get("session_id") == session_id})
        cure = f"did you mean {nearest(task_id, known)}?" if known else "call task_preflight when a task begins"
        raise InputError(f"task '{task_id}' of session '{session_id}' has no preflight; {cure}")
    outcome = outcome_of(session_id, task_id, begun, state)
    facts = {
        "session_id": session_id,
        "task_id": task_id,
        **asdict(state),
        **{name: getattr(outcome, name) for name in FIGURES},
    }
    _note(root, {"at": now, "event": TASK, "phase": AFTER, **facts})
    return outcome


def outcomes(root: str, *, since: float = 0.0, left: Counter[str] | None = None) -> list[tuple[float, TaskOutcome]]:
    """Return when each task ended and what it taught; ``left`` counts the others by why they have no outcome."""
    ended: list[tuple[float, TaskOutcome]] = []
    begun: set[tuple[Any, Any]] = set()
    left = Counter() if left is None else left
    for event in _tasks(root, since=since):
        task = event.get("session_id"), event.get("task_id")
        if event.get("phase") != AFTER:
            begun.add(task)
            continue
        begun.discard(task)
        try:
            ended.append((event["at"], TaskOutcome(str(task[0]), str(task[1]), *(event.get(name) for name in FIGURES))))
        except InputError:
            left["unreadable"] += 1
    if begun:
        left["task without a postflight"] += len(begun)
    return ended


def validate(
    root: str, verdicts: Mapping[str, bool], *, memories: Iterable[Memory], session_id: str, now: float, task_id: str = ""
) -> dict[str, Confidence]:
    """Write down which memories were useful and which not, and return how far each is trusted after it.

    A session has one vote on a memory, its last. Raises InputError for an id that is none of ``memories``, and then writes
    nothing; without a session to vote; and where nothing can be written.
    """
    if not session_id:
        raise InputError("there is no session to vote for; give a session_id")
    known = {memory.id: memory for memory in memories}
    check_known(verdicts, known.values())
    for name, useful in verdicts.items():
        _note(root, {"at": now, "event": VALIDATE, "session_id": session_id, "task_id": task_id, "id": name, "useful": useful})
    start = {name: memory.confidence for name, memory in known.items() if memory.confidence is not None}
    trusted = confidences(validations(root), start=start)
    return {name: trusted[name] for name in verdicts}


def check_known(names: Iterable[str], memories: Iterable[Memory]) -> None:
    """Raise InputError for the first id that none of the memories has."""
    known = {memory.id for memory in memories}
    for name in names:
        if name not in known:
            cure = f"did you mean {nearest(name, sorted(known))}?" if known else "the folder holds none yet"
            raise InputError(f"there is no memory '{name}'; {cure}")


def validations(root: str, *, since: float = 0.0) -> list[FeedbackEvent]:
    """Return the validations in the journal as feedback events, ready for the store; the same line is always the same event."""
    found: list[FeedbackEvent] = []
    for event in events(root, since=since):
        if event["event"] == VALIDATE and event.get("id") and event.get("session_id"):
            (one,) = validate_batch(
                {str(event["id"]): event.get("useful") is True},
                session_id=str(event["session_id"]),
                at=datetime.fromtimestamp(event["at"], UTC).isoformat(),
                actor="agent",
                task_id=str(event.get("task_id") or ""),
            )
            # Whoever changes their mind says something new; the store would keep the first of one id.
            found.append(replace(one, event_id=f"{one.event_id}_{int(event['at'] * 1000)}"))
    return found


def to_validate(root: str, *, session_id: str, since: float = 0.0) -> list[str]:
    """Return the memories a session read and said nothing about, as they were read: what to ask when a task ends."""
    read: dict[str, None] = {}
    said: set[str] = set()
    for event in events(root, since=since):
        if event.get("session_id") == session_id and event.get("id"):
            if event["event"] == "read":
                read[str(event["id"])] = None
            elif event["event"] == VALIDATE:
                said.add(str(event["id"]))
    return [name for name in read if name not in said]


def _tasks(root: str, *, since: float = 0.0) -> list[dict[str, Any]]:
    return [event for event in events(root, since=since) if event["event"] == TASK]


def _task(root: str, session_id: str, task_id: str) -> tuple[State | None, bool]:
    """Return how a task began, if it did, and whether it has ended; raises InputError without names to know it by."""
    for name, value in (("session_id", session_id), ("task_id", task_id)):
        if not value.strip():
            raise InputError(f"{name} is empty; name what the task belongs to")
    begun, ended = None, False
    for event in _tasks(root):
        if (event.get("session_id"), event.get("task_id")) == (session_id, task_id):
            if event.get("phase") == BEFORE:
                begun = State(event["knowledge"], event["uncertainty"])
            ended = ended or event.get("phase") == AFTER
    return begun, ended


def _note(root: str, event: Mapping[str, Any]) -> None:
    if not record(root, event):
        raise InputError(f"{root}: the journal cannot be written; make the folder writable")
