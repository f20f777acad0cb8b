"""Memories that a prompt calls by name (A-7): a trigger phrase stands in it, word for word."""

from __future__ import annotations

from collections.abc import Iterable

from ringtrue.memory.hook.memory import Memory
from ringtrue.retrieve import words_of


def called(prompt: str, memories: Iterable[Memory]) -> list[tuple[Memory, list[str]]]:
    """Return the memories that are called and the phrases that call them, in the order of the channel ``trigger``.

    The longest phrase comes first, then more words in all phrases found, then the id, descending.

    >>> one = Memory(id="vat", category="constraint", title="VAT", body="", trigger_phrases=("vat id", "tax number"))
    >>> [(memory.id, phrases) for memory, phrases in called("Where is the VAT-ID kept?", [one])]
    [('vat', ['vat id'])]
    """
    words = words_of(prompt)
    found = []
    for memory in memories:
        phrases: dict[tuple[str, ...], str] = {}
        for phrase in memory.trigger_phrases:
            run = tuple(words_of(phrase))
            if run and any(tuple(words[start : start + len(run)]) == run for start in range(len(words) - len(run) + 1)):
                phrases.setdefault(run, phrase)
        if phrases:
            lengths = [len(run) for run in phrases]
            found.append(((max(lengths), sum(lengths), memory.id), memory, list(phrases.values())))
    found.sort(key=lambda one: one[0], reverse=True)
    return [(memory, phrases) for _, memory, phrases in found]
