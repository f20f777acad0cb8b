"""Memories come from files that others may have written: what keeps their text data, their paths inside, secrets out."""

from __future__ import annotations

import os
import re

from .memory import TITLE_LIMIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .memory import Memory

_ARROW, _TAGS = "->", "#tags:"
_UNSEEN = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
_HIDDEN = frozenset((*_UNSEEN, "Mn", "Me"))
_BLANK = frozenset("\u115f\u1160\u3164\uffa0\u2800")
"""Letters and signs by their kind, and yet nothing to see."""
_LINES = 100
_LOOKED_AT = 4 * TITLE_LIMIT
"""Characters of a title that are cleaned; what can be shown of it is shorter still."""


def clean_title(title: str) -> str:
    """Return a title as one visible line: no control or invisible characters, no marks that our own lines are made of.

    What is hidden goes first, or ``-<zero width>>`` would become an arrow afterwards.

    >>> clean_title("Use JWT -> /etc/passwd #tags:admin")
    'Use JWT - /etc/passwd #tags admin'
    """
    title = title[:_LOOKED_AT]
    if not (title.isascii() and title.isprintable()):
        title = _visible(title)
    if ">" in title:
        title = re.sub(r"-+>+", "-", title)
    if "#" in title:
        title = re.sub(r"#\s*tags\s*:", "#tags ", title, flags=re.IGNORECASE)
    return " ".join(title.split())[:TITLE_LIMIT].rstrip()


def _visible(text: str) -> str:
    from unicodedata import category, normalize

    text = normalize("NFC", text)  # an accent typed apart is joined to its letter, and stays
    wide = normalize("NFKC", text)
    if wide != text and ("<" in wide or _ARROW in wide or _TAGS in wide.lower().replace(" ", "")):
        text = wide  # marks in other widths are read as the marks
    kinds = [(letter, category(letter)) for letter in text]
    return "".join(
        " " if letter in "\t\n\r\v\f" or kind in ("Zl", "Zp") else "" if kind in _HIDDEN or letter in _BLANK else letter
        for letter, kind in kinds
    )


def title_of(memory: Memory) -> str:
    """Return a title that is safe to show: one visible line without secrets; the id where nothing is left."""
    return hide_secrets(clean_title(memory.title)) or memory.id


def lines_of(texts: Iterable[str]) -> list[str]:
    """Return texts of a memory, each as one visible line without secrets; at most a hundred of them."""
    return [clean for text in tuple(texts)[:_LINES] if (clean := hide_secrets(clean_title(text)))]


def visible_line(text: str) -> str:
    """Return a text, such as a path, as one line without what cannot be seen; all that can be seen stays as it is.

    >>> visible_line("/memory/\u202enosj.x\\n")
    '/memory/nosj.x'
    """
    if text.isprintable():
        return text
    from unicodedata import category

    return "".join(letter for letter in text if category(letter) not in _UNSEEN)


def escape(text: str) -> str:
    """Return a text for an XML element or attribute; characters that XML does not allow are left out.

    >>> escape('</memory-context> & "more"')
    '&lt;/memory-context&gt; &amp; &quot;more&quot;'
    """
    if not text.isprintable():
        text = "".join(letter for letter in text if letter >= " " or letter in "\t\n")
        text = text.encode("utf-8", "ignore").decode("utf-8")  # a lone surrogate cannot be written out
        text = text.replace("\x7f", "").replace("\ufffe", "").replace("\uffff", "")
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace('"', "&quot;").replace("'", "&#39;")


def inside(root: str, path: str) -> bool:
    """True if a path, after all links and ``..``, lies in a folder; a relative one starts there.

    >>> inside("/memory", "decision/x.json"), inside("/memory", "../secrets.json"), inside("/memory", "/memory-2/x.json")
    (True, False, False)
    """
    try:
        whole, real = os.path.realpath(root), os.path.realpath(os.path.join(root, path))
    except (OSError, ValueError):  # a loop of links, or a name that cannot be one
        return False
    return real == whole or real.startswith(whole.rstrip(os.sep) + os.sep)


def read_plain(path: str, most: int) -> bytes:
    """Return what a plain file holds; raises OSError for anything else, a link or a pipe included, and beyond ``most`` bytes.

    A folder may hold a pipe that nobody writes to or a link to a device without an end: neither may keep a reader.
    """
    handle = os.open(path, os.O_RDONLY | _CAREFULLY)
    try:
        state = os.fstat(handle)
        if state.st_mode & 0o170000 != 0o100000:
            raise OSError(22, "it is not a plain file", path)
        if state.st_size > most:
            raise OSError(27, f"it is larger than {most:,} bytes", path)
        parts: list[bytes] = []
        left = most
        while left > 0 and (part := os.read(handle, min(left, 1 << 20))):
            parts.append(part)
            left -= len(part)
        return b"".join(parts)
    finally:
        os.close(handle)


_CAREFULLY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


# Prefixes that their makers chose so that they can be recognised; each is certain on its own. No part may be tried again from
# every place of a long run: a text of "sk-sk-sk-" would keep a prompt for minutes, and no watchdog ends a search for a pattern.
_KEY = (
    r"\b(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b|\bAIza[\w-]{30,}|\bGOCSPX-[\w-]{20,}|\bAGE-SECRET-KEY-1[0-9A-Z]{50,}"
    r"|\bsk-(?=[\w-]{0,80}\d)[\w-]{20,}|\b(?:sk|rk|whsec)_(?:live_|test_)?(?=\w{0,80}\d)[A-Za-z0-9]{16,}"
    r"|\bSG\.[\w-]{16,}\.[\w-]{16,}|\bkey-[0-9a-f]{32}\b|\b(?:AC|SK)[0-9a-f]{32}\b|\bsq0[a-z]{3}-[\w-]{20,}"
)
_TOKEN = (
    r"\bgh[pousr]_[A-Za-z0-9]{30,}|\bgithub_pat_\w{22,}|\bgl(?:pat|dt|rt|cbt|ptt|ft|soat)-[\w-]{18,}|\bxox[a-z]-[\w-]{10,}"
    r"|\bxapp-[\w-]{10,}|\bya29\.[\w-]{20,}|\bhf_[A-Za-z0-9]{30,}|\bnpm_[A-Za-z0-9]{30,}|\bpypi-[\w-]{30,}|\bdop_v1_[a-f0-9]{40,}"
    r"|\bdckr_pat_[\w-]{20,}|\b\d{8,10}:AA[\w-]{30,}|(?<![\w-])eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*|\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{30,}"
    r"|\blin_api_\w{30,}"
)
_PRIVATE = r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY[A-Z ]{0,20}-----(?:(?!-----BEGIN).)*?(?:-----END [A-Z ]{0,60}-----|\Z)"
_BEARER = r"\b(?:bearer|authorization:\s*\w+|x-api-key:)\s+(?P<value>[\w.~+/-]{16,}={0,2})"
_LOGIN = r"://[^\s/@:]{0,100}:(?P<value>[^\s/@]{3,200})@"
_WORDED = r"""
    (?P<word>pass(?:word|wd|phrase|code)?|pwd|secret|token|credentials?|api[\s_-]?key|access[\s_-]?key|account[\s_-]?key
    |private[\s_-]?key|signing[\s_-]?key|client[\s_-]?secret)[\w-]{0,24}["'`]?\s{0,3}(?P<sign>=>|:=|[:=]|\bis\b)\s{0,3}
    (?P<quote>["'`]?)
    (?P<value>[^\s"'`,;&<>(){}\[\]$%*|\\](?:[^\s"'`,;&<>(){}\[\]$|\\]|&(?!\w{1,40}=)|\$(?![A-Z_]{2}|\{)){5,400})
    (?P<after>["'`(\[{]?)
"""
# A prefix that nothing else has needs no digit behind it, unlike "sk-" and "sk_", with which names begin as well.
_PREFIXED = (
    r"\b(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,}|\bwhsec_[A-Za-z0-9+/]{24,}"
    r"|\bsk-(?:ant|proj|svcacct|admin)-[\w-]{20,}"
)
_HINTS = (
    "pass", "pwd", "secret", "token", "credential", "key", "bearer", "authorization",
)  # fmt: skip
_FILLER = re.compile(
    r"x{3,}|\.{3}|example|changeme|change-me|redacted|placeholder|dummy|your[_-]|env[.:_]|vault|secrets?[./:]", re.I
)
_SHORTEST = 14
"""No key with a prefix of its own is shorter."""
_compiled: list[tuple[str, re.Pattern[str], Callable[[re.Match[str]], bool]]] = []


def find_secrets(text: str) -> list[tuple[str, int, int]]:
    """Return what must not be stored: kind, start and end of each, in their order, none inside another.

    The kinds are 'private key', 'key', 'token', 'login' (in an address) and 'password'.

    >>> find_secrets("staging: postgres://app:correct-horse@db/main")
    [('login', 24, 37)]
    """
    small = text.lower()
    signed = "=" in small or ":" in small or "is" in small
    hinted = "-----begin" in small or (signed and any(hint in small for hint in _HINTS))
    # Nearly every text ends here: no long word that is none, no address with a login, no telling word.
    if not hinted and "://" not in small and not any(len(word) >= _SHORTEST and not _a_word(word) for word in text.split()):
        return []
    if not _compiled:
        _compile()
    found: list[tuple[str, int, int]] = []
    taken = bytearray()
    for kind, pattern, certain in _compiled:
        for match in pattern.finditer(text):
            start, end = match.span("value") if "value" in pattern.groupindex else match.span()
            if certain(match):
                if kind == "password":
                    whole = _whole(text, end, match["quote"])
                    end = end if 1 in taken[end:whole] else whole
                taken = taken or bytearray(len(text))
                if 1 not in taken[start:end]:
                    taken[start:end] = b"\1" * (end - start)
                    found.append((kind, start, end))
    return sorted(found, key=lambda one: one[1])


def hide_secrets(text: str) -> str:
    """Return a text with ``[token]`` and the like in place of every secret.

    >>> hide_secrets("postgres://app:correct-horse@db/main")
    'postgres://app:[login]@db/main'
    """
    for kind, start, end in reversed(find_secrets(text)):
        text = f"{text[:start]}[{kind}]{text[end:]}"
    return text


def _a_word(text: str) -> bool:
    """True for what language writes: letters alone, small ones but for the first."""
    bare = text.strip(".,;:!?()\"'`")
    return bare.isalpha() and bare[1:].islower()


def _compile() -> None:
    """Compile on first use: a hook that only reads never pays for it."""
    always: Callable[[re.Match[str]], bool] = lambda match: True  # noqa: E731
    _compiled.extend(
        (
            ("private key", re.compile(_PRIVATE, re.S), always),
            ("key", re.compile(_KEY), always),
            ("key", re.compile(_PREFIXED), lambda match: not _FILLER.search(match[0])),
            ("token", re.compile(_TOKEN), always),
            ("token", re.compile(_BEARER, re.I), lambda match: _random(match["value"])),
            ("login", re.compile(_LOGIN), lambda match: not _stand_in(match["value"])),
            ("password", re.compile(_WORDED, re.I | re.X), _worded),
        )
    )


def _stand_in(value: str) -> bool:
    """True for what documentation writes in place of a secret: ``<password>``, ``${DB_PASSWORD}``, ``***``, ``PASSWORD``."""
    core = value.strip(".,:;!?")
    if core[:1] in "<[{$%*" or _FILLER.search(core):
        return True
    named = core.isupper() and core.replace("_", "").isalpha()
    return named or core.lower() in ("password", "pass", "secret", "token", "pwd")


def _worded(match: re.Match[str]) -> bool:
    value, sign, quote = match["value"].rstrip(".:!?"), match["sign"], match["quote"]
    if _stand_in(value) or (match["after"] and match["after"] in "([{"):  # a call or a look-up is code, not a value
        return False
    chosen = "pass" in match["word"].lower() or "pwd" in match["word"].lower()
    if not chosen:
        return _random(value)
    if quote and match["after"] == quote:
        return sign != "is" or not value.isalpha()
    if sign == "=" and value.isalpha():
        return match.start("value") == match.end("sign") and len(value) >= 8 and not value.islower()
    return _mixed(value)


def _whole(text: str, end: int, quote: str) -> int:
    """Return where a password ends that was recognised up to a sign: at its closing quote, else where the word does."""
    most = min(len(text), end + 400)
    if quote:
        closing = text.find(quote, end, most)
        if closing >= 0 and "\n" not in text[end:closing]:
            return closing
    last = end
    while last < most and not text[last].isspace() and text[last] not in "\"'`,;\\":
        last += 1
    while last > end and text[last - 1] in ".:!?)]}>":
        last -= 1
    return last


def _mixed(value: str) -> bool:
    """True for letters with digits among them that are neither a path nor a dotted name."""
    letters, digits = any(map(str.isalpha, value)), any(map(str.isdigit, value))
    return len(value) >= 6 and letters and digits and "/" not in value and "_" not in value


def _random(value: str) -> bool:
    """True for a value that only a machine makes: long, letters and digits mixed, few of them twice."""
    return len(value) >= 16 and _mixed(value.replace("/", "").replace("_", "")) and len(set(value)) >= 10 and not _wordy(value)


def _wordy(value: str) -> bool:
    """True for names made of words: ``refresh-token-v2-rotation``."""
    parts = re.split(r"[-_./]", value)
    return len(parts) > 1 and all(re.fullmatch(r"[A-Za-z]*\d{0,4}", part) for part in parts)
