"""A prompt → the words worth searching, and the FTS5 expression for them (A-3)."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_STOPPED = """
a about above after again against all also am an and any anyone anything are aren't as at be because been before being
below between both but by came can can't cannot come could couldn't did didn't do does doesn't doing don't done down
during each either else even ever every few for from further get gets getting give given go goes going gone got had
hadn't has hasn't have haven't having he her here hers herself hey hi him himself his how however i i'd i'll i'm i've if
in into is isn't it it's its itself just know let let's like look made make makes making many may maybe me might mine
more most much must my myself need needs no nor not now of off ok okay on once one only onto or other our ours ourselves
out over own perhaps please put quite rather really said same say says see seem seems shall she should shouldn't show
since so some someone something still such sure take tell than thank thanks that that's the their theirs them themselves
then there there's these they they're thing things think this those though through to too under until up upon us use
used uses using very via want wanted wants was wasn't way we we'll we're we've well were weren't what what's when where
whether which while who whom whose why will with within without won't would wouldn't yes yet you you'd you'll you're
you've your yours yourself yourselves
"""
STOP_WORDS = frozenset(_STOPPED.split())
"""Words that stand in any prompt, with and without what follows their apostrophe."""
PREFIX_FROM = 3
"""Letters from which a word also stands for what begins with it: ``auth``, ``env`` and ``doc``, but not ``id`` or ``ci``."""
_WORD = re.compile(r"[^\W_]+(?:[_.\-]+[^\W_]+|['’](?:[st]|re|ve|ll|d|m)\b)*")
_JOINTS = "_.-"
_VERB, _NOUN = re.compile(r"[a-z]+[aeou]y"), re.compile(r"[a-z]+[aeou]yments?")


def query_words(text: str, limit: int) -> list[str]:
    """Return at most ``limit`` words of a text, in their order, in small letters and each once; stop words are left out.

    Letters and digits make a word; one joined by ``_``, ``.`` or ``-`` stays whole.

    >>> query_words("Why did we choose JWT over user_id cookies, and JWT for the API?", 15)
    ['choose', 'jwt', 'user_id', 'cookies', 'api']
    """
    if not text.isascii():
        from unicodedata import normalize  # the tokenizer of the index joins what was typed in pieces: e and its accent

        text = normalize("NFC", text)
    words: dict[str, None] = {}
    for match in _WORD.finditer(text):
        if len(words) >= limit:
            break
        word = match[0].lower().replace("’", "'")
        if word in STOP_WORDS:
            continue
        word = word.partition("'")[0]
        if len(word) > 1 and word not in STOP_WORDS:
            words[word] = None
    return list(words)


def match_expression(text: str, limit: int) -> str | None:
    """Return the FTS5 expression that finds any of the words of a text, or None where there is nothing to look for.

    Every word is quoted, so that no prompt can write an operator. A compound is an exact phrase: with a star, its last part
    would stand for all that begins with it, and ``user_id`` would find "user identity".

    >>> match_expression("auth for user_id near db", 15)
    '"auth"* OR "user_id" OR "near"* OR "db"'
    """
    return expression(query_words(text, limit))


def expression(words: Iterable[str]) -> str | None:
    """Return the FTS5 expression for words that ``query_words`` returned."""
    sought: list[str] = []
    for word in words:
        sought.append(f'"{word}"*' if _may_go_on(word) else f'"{word}"')
        # The stemmer writes "deploi" for deploy and "deploy" for deployment: here neither begins with the other.
        if _VERB.fullmatch(word):
            sought.append(f'"{word}ment"')
        elif _NOUN.fullmatch(word):
            sought.append(f'"{word.removesuffix("s").removesuffix("ment")}"')
    return " OR ".join(sought) or None


def _may_go_on(word: str) -> bool:
    return len(word) >= PREFIX_FROM and not word.isdigit() and not any(joint in word for joint in _JOINTS)
