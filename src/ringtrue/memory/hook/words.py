"""A prompt → the words worth searching, the FTS5 expression for them, and the trigger phrases that it says."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .memory import Memory

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
_PART = re.compile(r"[^\W_]+")
_COMMAND = re.compile(r"^\s*/[\w.-]+(?::[\w.-]+)*(?:\s+|$)")
_JOINTS = "_.-"
_LONGEST = 500
LONGEST = 20_000
"""Characters of a text that are looked at: of a longer one, its beginning and its end."""
_NUMBERS = re.compile(r"\d+s")
_HYPHENED = re.compile(r"[^\W\d_]+-[^\W\d_]+")
_LETTERED = re.compile(r"(?<![\w.-])([^\W\d_])-([^\W\d_]{2,})(?![\w-])")
_REFERRING = re.compile(r"\b(?:its?|that|this|those|these|them|they|their|same|again|there)\b")
_EXISTING = re.compile(r"\b(?:is|are|was|were|be|isn['’]t|aren['’]t)\s+there\b|\bthere(?:['’]s|\s+(?:is|are|was|were)\b)")
"""A ``there`` that points nowhere."""
_ASKING = re.compile(
    r"\b(?:explain|remind|recall|remember|expand|elaborate|details?|more|else)\b"
    r"|^\W*(?:(?:and|but|so|ok|okay|then|now|well|hm+)\W+)*"
    r"(?:what|why|how|which|when|where|is|are|was|were|do\s+(?:we|i|they|you)|does|did|can|could|may|should|shall|have|has)\b"
)
_REQUEST = re.compile(r"^\W*(?:(?:and|but|so|ok|okay|then|now|please)\W+)*(?:can|could|would|will)\s+you\b|^\W*who\b")
"""Asked as a question, a task is still a task; and who did something is asked of the files, not of the topic."""
_KNOWING = re.compile(r"\b(?:explain|remind|recall|remember|expand|elaborate|details?|tell)\b")
_GOING_ON = frozenset(("continue", "proceed", "resume", "fix", "solve", "do", "try", "retry", "go", "keep", "carry"))
_BESIDE = frozenset(
    (
        *("on", "going", "with", "it", "that", "this", "those", "these", "them", "again", "and", "so", "then", "now", "just"),
        *("please", "yes", "ok", "okay", "let's", "let", "us", "me", "the"),
    )
)
"""Words that may stand beside them in a prompt that has nothing of its own: "yes, go on with that"."""
_VERB, _NOUN = re.compile(r"[a-z]+[aeou]y"), re.compile(r"[a-z]+[aeou]yments?")


def query_words(text: str, limit: int) -> list[str]:
    """Return at most ``limit`` words of a text, in their order, in small letters and each once; stop words are left out.

    Letters and digits make a word; one joined by ``_``, ``.`` or ``-`` stays whole. Where there are more, telling ones are
    taken before others, and of these the nearest to an end of the text: a question stands before or after what is pasted.

    >>> query_words("Why did we choose JWT over user_id cookies, and JWT for the API?", 15)
    ['choose', 'jwt', 'user_id', 'cookies', 'api']
    """
    words = words_in(cut(text))
    return words if len(words) <= limit else _most_telling(words, limit)


def without_command(text: str) -> str:
    """Return a prompt without the slash command it begins with, whose name says nothing about the topic; paths stay.

    >>> without_command("/memory:search token rotation"), without_command("/etc/hosts is wrong")
    ('token rotation', '/etc/hosts is wrong')
    """
    return _COMMAND.sub("", text, count=1)


def words_in(text: str) -> list[str]:
    """Return all words of a text that could be searched for, in their order and each once."""
    if not text.isascii():
        text = _composed(text)
    words: dict[str, None] = {}
    for match in _WORD.finditer(text):
        word = match[0].lower().replace("’", "'")
        if word in STOP_WORDS:
            continue
        word = word.partition("'")[0]
        if len(word) > 1 and word not in STOP_WORDS:
            words[word] = None
    return list(words)


def cut(text: str, longest: int = LONGEST) -> str:
    """Return the beginning and the end of a text that is too long to be looked at as a whole; others as they are."""
    if len(text) <= longest:
        return text
    head, tail = text[: longest // 2], text[1 - longest // 2 :]
    return f"{head.rsplit(None, 1)[0] if head.strip() else ''}\n{tail.split(None, 1)[-1] if tail.strip() else ''}"


def joined(text: str) -> list[str]:
    """Return the compounds of a text that are also written as one word: those with a single letter before the hyphen.

    >>> joined("E-mail and the x-axis of an all-in-one plot")
    ['Email', 'xaxis']
    """
    return [f"{letter}{rest}" for letter, rest in _LETTERED.findall(text)] if "-" in text else []


def refers_back(text: str) -> bool:
    """True if a text points to what was said before.

    >>> [refers_back(text) for text in ("how do we fix it?", "write one about spring", "is there a joke about bees?")]
    [True, False, False]
    """
    return bool(_REFERRING.search(_EXISTING.sub(" ", text.lower())))


def goes_on(text: str) -> bool:
    """True if a text says nothing but to go on with what was said before: "continue", "fix that"."""
    words = re.findall(r"[^\W_]+(?:'[^\W_]+)?", text.lower().replace("’", "'"))
    return not _GOING_ON.isdisjoint(words) and all(word in _GOING_ON or word in _BESIDE for word in words)


def takes_up(text: str) -> bool:
    """True if a text asks about what was said before or says to go on with it; thanks and tasks of their own do neither.

    >>> [takes_up(text) for text in ("how do we fix it?", "ok, go on", "thanks, that was great", "run the tests again")]
    [True, True, False, False]
    """
    if goes_on(text):
        return True
    small = text.lower().strip()
    if _REQUEST.search(small):
        return bool(_KNOWING.search(small))
    return small.rstrip(" .!)\"'").endswith("?") or bool(_ASKING.search(small))


def beginning(text: str, limit: int) -> str:
    """Return the beginning of a text that has no more than ``limit`` words to search for."""
    words: set[str] = set()
    for match in _WORD.finditer(text):
        words.update(words_in(match[0]))
        if len(words) > limit:
            return text[: match.start()].rstrip()
    return text


def _most_telling(words: list[str], limit: int) -> list[str]:
    from .rarity import TELLING, rarity

    last = len(words) - 1

    def order(place: int) -> tuple[bool, int]:
        parts = [part for part in _PART.findall(words[place]) if not part.isdigit()]
        return not any(rarity(part) >= TELLING for part in parts), min(place, last - place)

    return [words[place] for place in sorted(sorted(range(len(words)), key=order)[:limit])]


def _composed(text: str) -> str:
    """Return a text with letter and accent joined where they were typed in pieces, as the tokenizer of the index joins them.

    Word by word, and long ones in parts: sorting the accents of a run of twenty thousand would take half a second.
    """
    from unicodedata import normalize

    words = [
        normalize("NFC", word)
        if len(word) <= _LONGEST
        else "".join(normalize("NFC", word[start : start + _LONGEST]) for start in range(0, len(word), _LONGEST))
        for word in text.split(" ")
    ]
    return " ".join(words)


def match_expression(text: str, limit: int) -> str | None:
    """Return the FTS5 expression that finds any of the words of a text, or None if there is nothing to look for.

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
        elif _HYPHENED.fullmatch(word):
            sought.append(f'"{word.replace("-", "")}"')
        elif word.isdigit():
            sought.append(f'"{word}s"')
        elif _NUMBERS.fullmatch(word):
            sought.append(f'"{word[:-1]}"')
    return " OR ".join(sought) or None


def _may_go_on(word: str) -> bool:
    return len(word) >= PREFIX_FROM and not word.isdigit() and not any(joint in word for joint in _JOINTS)


RARE = 1.0
"""The rarity of a word that may call alone: it is in no list of common words."""
LONGEST_HEARD = 1_000_000
"""Characters of a text in which phrases are looked for: of a longer one, its beginning and its end."""


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
    return f" {' '.join(_PART.findall(text.casefold()))} "


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
    """True for two words or more, not all of them stop words ("ship it" is said or it is not), and for one rare word."""
    words = phrase.split()
    if len(words) > 1:
        return any(word not in STOP_WORDS for word in words)
    from .rarity import rarity

    return any(len(word) > 2 and rarity(word) >= RARE for word in words)
