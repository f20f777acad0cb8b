"""Text of documents and questions made harmless for Markdown: it is shown, never obeyed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_SPECIAL = re.compile(r"[\\`*\[\]|~{}!$]|^[-+#=](?=[-+#=\s]|$)|(?<=^\d)[.)](?=\s)|(?<![0-9A-Za-z])_|_(?![0-9A-Za-z])")
# Mentions, issue numbers and addresses wake people up or link other pages even where Markdown itself is escaped, and a
# backslash or an entity does not stop them; an invisible space does. The @ of nDCG@10 follows a letter and is none.
_LINKED = re.compile(
    r"(?<!\w)@(?=\w)|#(?=\w)|[!%&$~](?=\d)|\bwww(?=\.)|\b[a-z][a-z0-9+.-]*:(?=//)|\bmailto:|\bGH-(?=\d)", re.IGNORECASE
)
_GAP = "\u200b"
# Control characters, halves of surrogate pairs, marks that turn the direction of reading.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069\ufeff\ufffe\uffff]")


def md(value: object, *, most: int = 300) -> str:
    """Return a value as one line of Markdown that reads as the text itself, cut to ``most`` characters.

    >>> md("a | b <b>*c*</b> @team")
    'a \\\\| b &lt;b&gt;\\\\*c\\\\*&lt;/b&gt; @\\u200bteam'
    """
    text = clip(one_line(value), most)
    text = _LINKED.sub(lambda match: match[0] + _GAP, text)
    text = _SPECIAL.sub(lambda match: "\\" + match[0], text)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def one_line(value: object) -> str:
    """Return a value as text without line breaks, control characters or marks that turn the direction of reading."""
    return " ".join(_UNSEEN.sub(" ", str(value)).split())


def clip(text: str, most: int) -> str:
    """Return the beginning of a long text, with an ellipsis that says so."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def table(names: Sequence[str], rows: Iterable[Sequence[str]], *, text_columns: int = 1) -> str:
    """Return a Markdown table; the columns after the first ``text_columns`` are numbers."""
    marks = ["---" if index < text_columns else "---:" for index in range(len(names))]
    return "\n".join(f"| {' | '.join(cell or ' ' for cell in cells)} |" for cells in (names, marks, *rows))
