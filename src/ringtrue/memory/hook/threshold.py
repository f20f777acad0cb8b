"""Whether to show a memory unasked: it is shown if its evidence stands out from what chance reaches in the same store."""

from __future__ import annotations

from .evidence import MemoryWords, beyond_numbers, ends_of, evidence, telling, weights
from .null_level import Level, null_level
from .words import called, goes_on, refers_back, spoken, takes_up

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from .index import Index, MemoryHit
    from .meaning import Meaning
    from .memory import Memory
    from .settings import Settings

CLOSE = 0.8
"""A further memory is shown if its evidence is at least this share of the best one's."""
CLEAR = 2.0
"""How many times the level makes a hit one of high confidence."""
MEANT = 2.05
"""The level of the evidence of meaning and words: the 98th percentile of chance, in standard deviations."""
OWN_SHARE = 0.5
"""The share of what a prompt itself says that a memory must have before earlier turns count for it: "write one about spring"
may share "write" with a memory about the turn before, and is not about that."""


class HookDecision:
    """What is shown: the hits in their order, the evidence and the confidence of each, the level they had to pass, and why."""

    __slots__ = ("confidence", "evidence", "inject", "level", "reason", "words_because")

    def __init__(
        self,
        *,
        reason: str,
        inject: Sequence[MemoryHit] = (),
        evidence: Sequence[float] = (),
        confidence: Sequence[str] = (),
        level: float | None = None,
    ) -> None:
        self.inject, self.evidence, self.confidence = list(inject), list(evidence), list(confidence)
        self.level, self.reason = level, reason
        self.words_because = ""
        """Why words decided alone; empty if meaning counted too."""


def decide(
    index: Index,
    found: Sequence[MemoryHit],
    text: str,
    settings: Settings,
    *,
    level: Level | None = None,
    root: str = "",
    prompt: str | None = None,
    shown: Collection[str] = (),
    spoke: str | None = None,
    meaning: Meaning | None = None,
) -> HookDecision:
    """Return which of the memories found for a text are shown unasked, if any.

    ``prompt`` is the part of the text that was said just now, if earlier turns were added to it. These help a memory only
    if the prompt asks about them or goes on with them, or shares what it says with the memory; what they bring up is never
    of high confidence, and not one of ``shown``, the ids that the session has seen. A memory that the prompt calls by a trigger
    phrase is shown; ``spoke`` is the prompt's ``spoken`` words if the caller has more of it than ``text``.
    With ``meaning`` the evidence is that of meaning and words together and the best comes first; without it, that of words.

    With ``threshold: fixed`` the scores of the settings decide. ``level`` is that of the store if the caller has it already;
    else it is looked up, or drawn and kept, under ``root``.
    """
    most = settings.auto_inject.max_results
    if not found or most < 1:
        return HookDecision(reason="nothing was found" if most else "nothing may be shown")
    if level is None:
        level = null_level(index, settings, root=root)
    own = text if prompt is None else prompt
    least = level.value if meaning is None else MEANT
    alone, turned = _alone_and_with_turns(text, own, [hit.memory for hit in found], level, settings, meaning)
    best = [max(one, 0.0 if hit.memory.id in shown else more) for hit, one, more in zip(found, alone, turned, strict=True)]
    said = spoken(own) if spoke is None else spoke
    calls = [bool(called(hit.memory, said)) for hit in found]
    if settings.threshold == "fixed":
        passing = _by_score(found, settings)
    else:
        floor = max(least, CLOSE * max(*alone, *turned))
        passing = [place for place, value in enumerate(best) if value > least and value >= floor]
    passing = sorted({*passing, *(place for place, calling in enumerate(calls) if calling)})
    chosen = sorted(passing, key=lambda place: (not calls[place], -best[place]))[:most]
    if meaning is None:
        chosen.sort()
    if not chosen:
        before = any(more > least and hit.memory.id in shown for hit, more in zip(found, turned, strict=True))
        return HookDecision(reason="this session has seen it" if before else "nothing stands out", level=least)
    if any(calls[place] for place in chosen):
        reason = "a trigger phrase calls"
    else:
        reason = "stands out" if settings.threshold != "fixed" else "scores enough"
    return HookDecision(
        reason=reason,
        inject=[found[place] for place in chosen],
        evidence=[best[place] for place in chosen],
        confidence=["high" if calls[place] else _confidence(alone[place], best[place], least) for place in chosen],
        level=least,
    )


def evidence_of(
    text: str, memories: Sequence[Memory], level: Level, settings: Settings, meaning: Meaning | None = None
) -> list[float]:
    """Return the evidence of memories for a text, as ``decide`` compares it with the level."""
    found = _evidence(text, [MemoryWords(memory, settings.body_max_chars) for memory in memories], level, settings)
    return found if meaning is None else meaning.evidence(text, memories, found)


def _alone_and_with_turns(
    text: str, prompt: str, memories: Sequence[Memory], level: Level, settings: Settings, meaning: Meaning | None
) -> tuple[list[float], list[float]]:
    """Return the evidence of each memory for a prompt alone and with earlier turns; 0 if these do not help the memory."""
    alone = evidence_of(prompt, memories, level, settings, meaning)
    if prompt == text:
        return alone, [0.0] * len(memories)
    words = [MemoryWords(memory, settings.body_max_chars) for memory in memories]
    helped = _helped_by_turns(prompt, words, level, settings)
    if not any(helped):
        return alone, [0.0] * len(memories)
    both = evidence_of(text, memories, level, settings, meaning)
    return alone, [value if helps else 0.0 for value, helps in zip(both, helped, strict=True)]


def _evidence(text: str, memories: Sequence[MemoryWords], level: Level, settings: Settings) -> list[float]:
    """Return the evidence of each memory for a text, the best of its ends if it is long."""
    best = [0.0] * len(memories)
    for words in ends_of(text, settings.query_max_tokens):
        weighed = weights(words, level.shares, level.size)
        best = [
            max(value, evidence(words, weighed, memory)) if beyond_numbers(words, memory) else value
            for value, memory in zip(best, memories, strict=True)
        ]
    return best


def _helped_by_turns(prompt: str, memories: Sequence[MemoryWords], level: Level, settings: Settings) -> list[bool]:
    """Return for each memory whether earlier turns count for it: not if the prompt is about something else."""
    own = telling(prompt, settings.query_max_tokens)
    if goes_on(prompt) or (refers_back(prompt) and takes_up(prompt)):
        return [True] * len(memories)
    if (not own or refers_back(prompt)) and not takes_up(prompt):
        # Thanks, or a task with an object of its own: "run the tests again".
        return [False] * len(memories)
    weighed = weights(own, level.shares, level.size)
    shared = [sum(weight * memory.counts(word) for word, weight in zip(own, weighed, strict=True)) for memory in memories]
    return [value >= OWN_SHARE * sum(weighed) for value in shared]


def _by_score(found: Sequence[MemoryHit], settings: Settings) -> list[int]:
    rule = settings.auto_inject
    best = found[0].score
    if best < rule.min_score_abs:
        return []
    return [place for place, hit in enumerate(found) if hit.score >= rule.relative_cutoff * best][: rule.max_results]


def _confidence(alone: float, best: float, level: float) -> str:
    """Being the only hit, or the best of weak ones, says nothing; only the prompt's own distance from chance does."""
    if best <= level:
        return "low"
    return "high" if alone >= CLEAR * level else "medium"
