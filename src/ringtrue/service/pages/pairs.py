"""How pages show a pair of question and document."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from markupsafe import Markup, escape

from ringtrue.golden import content_words
from ringtrue.service.auth import LOCAL, Caller
from ringtrue.store import ReviewItem

MEANINGS = ("about something else", "on the topic, no answer", "answers it in part", "answers it fully")
"""What each grade means, in a few words; the guidelines say more."""


def nameless(caller: Caller) -> bool:
    """True where a reader without a key has not said who they are."""
    return caller.key_id is None and caller.who == LOCAL


def marked(text: str, question: str) -> Markup:
    """Return a text with the words of a question marked in it, whatever their ending.

    >>> str(marked("Late <b> checkouts", "a late checkout?"))
    '<mark>Late</mark> &lt;b&gt; <mark>checkouts</mark>'
    """
    wanted = frozenset(content_words(question))
    if not wanted:
        return escape(text)

    @cache
    def meant(word: str) -> bool:
        return not wanted.isdisjoint(content_words(word))

    # Split by what is captured: every second part is a word.
    parts = re.split(r"(\w+)", text)
    return Markup("").join(
        Markup("<mark>{}</mark>").format(part) if place % 2 and meant(part) else part for place, part in enumerate(parts)
    )


def shown_pair(item: ReviewItem) -> dict[str, Any]:
    """Return what the template of a pair is given."""
    return {"item": item, "text": marked(item.text, item.query), "title": marked(item.title or item.doc_id, item.query)}
