"""The words of a text as trigger phrases and feedback compare them. It loads no NumPy: the memory's server starts without."""

from __future__ import annotations

import re
from unicodedata import category, normalize

from ringtrue.errors import InputError

_ASCII_WORD = re.compile(r"[a-z0-9]+")


def plain(text: str) -> str:
    """Return text that every index and wire can hold: a lone surrogate becomes U+FFFD, NUL a space.

    >>> plain("a\\ud800b\\0c")
    'a\\ufffdb c'
    """
    if not isinstance(text, str):
        raise InputError(f"{text!r:.60} is not a question; ask with a text")
    if not text.isascii():
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text.replace("\0", " ")


def words_of(text: str) -> list[str]:
    """Return the words of a text as triggers compare them.

    >>> words_of("The User_ID, ＳＴＲＡẞＥ")
    ['the', 'user', 'id', 'strasse']
    """
    text = plain(text)
    if text.isascii():
        return _ASCII_WORD.findall(text.casefold())
    letters: list[str] = []
    for sign in normalize("NFKC", normalize("NFKC", text).casefold()):
        kind = category(sign)
        if kind[0] in "LN" or (kind[0] == "M" and letters and letters[-1] != " "):
            letters.append(sign)
        elif kind != "Cf":  # invisible signs such as soft hyphens and joiners do not part a word
            letters.append(" ")
    return "".join(letters).split()
