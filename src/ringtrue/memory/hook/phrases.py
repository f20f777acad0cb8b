"""Trigger phrases: the words by which a memory wants to be called, found word for word wherever a prompt has them (A-3, A-4).

Words are runs of letters and digits, whatever their case; what stands between them is ignored. Stop words count here: "ship it"
is said or it is not. A phrase calls when it has two words or more, not all of them stop words, or is one rare word.
"""

from __future__ import annotations

import re

from .words import LONGEST, STOP_WORDS, cut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .memory import Memory

RARE = 1.0
"""The rarity of a word that may call alone: it is in no list of common words."""
LONGEST_HEARD = 1_000_000
"""Characters of a text in which phrases are looked for: of a longer one, its beginning and its end."""
_WORD = re.compile(r"[^\W_]+")


def spoken(text: str) -> str:
    """Return the words of a text, parted and enclosed by single spaces, for phrases to be looked up in.

    >>> spoken("Looks GOOD, ship-it!")
    ' looks good ship it '
    """
    long = len(text) > LONGEST
    text = cut(text, LONGEST_HEARD)
    if not text.isascii():
        from unicodedata import normalize

        # Piece by piece: sorting the accents of one run of thousands would take as long as all else.
        text = " ".join(normalize("NFKC", word) for word in text.split() if len(word) <= (50 if long else 500))
    return f" {' '.join(_WORD.findall(text.casefold()))} "


def phrases_of(memory: Memory) -> list[str]:
    """Return the phrases of a memory that may call it, as words parted by spaces, each once."""
    if not memory.trigger_phrases:
        return []
    phrases = dict.fromkeys(spoken(phrase)[1:-1] for phrase in memory.trigger_phrases)
    return [phrase for phrase in phrases if _may_call(phrase)]


def called(memory: Memory, said: str) -> str:
    """Return the longest phrase of a memory that ``spoken`` words hold, or an empty text.

    >>> from .memory import Memory
    >>> memory = Memory(id="a", category="runbook", title="Release", body="", trigger_phrases=("ship it",))
    >>> called(memory, spoken("Looks good, ship it")), called(memory, spoken("ship all of it"))
    ('ship it', '')
    """
    found = [phrase for phrase in phrases_of(memory) if f" {phrase} " in said]
    return max(found, key=lambda phrase: (phrase.count(" "), phrase), default="")


def _may_call(phrase: str) -> bool:
    words = phrase.split()
    if len(words) > 1:
        return any(word not in STOP_WORDS for word in words)
    from .rarity import rarity

    return any(len(word) > 2 and rarity(word) >= RARE for word in words)
