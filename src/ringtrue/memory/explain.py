"""Why a search found what it found, and what the hook makes of the same text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ringtrue.memory.hook.cache import open_index
from ringtrue.memory.hook.evidence import ends_of
from ringtrue.memory.hook.memory import Memory
from ringtrue.memory.hook.null_level import null_level
from ringtrue.memory.hook.phrases import called, spoken
from ringtrue.memory.hook.respond import find
from ringtrue.memory.hook.settings import Settings
from ringtrue.memory.hook.threshold import HookDecision, evidence_of


@dataclass(frozen=True)
class HookView:
    """What the hook makes of a text as a prompt: the words it looks at, what it decides, and the evidence of memories by id."""

    words: tuple[str, ...]
    decision: HookDecision
    evidence: Mapping[str, float]
    phrases: Mapping[str, str]
    """The trigger phrase by which the text calls a memory, if it does."""


def hook_view(root: str, text: str, memories: Sequence[Memory], settings: Settings, *, now: float) -> HookView:
    """Return how the hook sees a text and these memories; nothing is written but the caches."""
    level = null_level(open_index(root, settings), settings, root=root)
    decision = find(root, text, settings, now=now)
    words = dict.fromkeys(word for part in ends_of(text, settings.query_max_tokens) for word in part)
    evidence = {memory.id: evidence_of(text, memory, level, settings) for memory in memories}
    said = spoken(text)
    phrases = {memory.id: phrase for memory in memories if (phrase := called(memory, said))}
    return HookView(tuple(words), decision, evidence, phrases)
