"""What may not be stored is taken out before it is stored, in the writer's thread and so off the caller's path.

Each kind of secrets and personal data has rules that take it out of a text: ``a@b.example`` becomes ``[email]``. Patterns
find candidates; if a kind has a check sum or a structure (cards, IBANs, addresses), that decides. Numbers alone are no
telephone numbers: product numbers, ISBNs, versions and dates are what people search for.
"""

from __future__ import annotations

import hashlib
import ipaddress
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

from ringtrue.config import secret
from ringtrue.errors import InputError, check_choice
from ringtrue.store import FeedbackEvent, LoggedQuery

_EMAIL = re.compile(
    r"[\w.+%'-]{1,64}(?:@|\s?[\[({]at[\])}]\s?)(?:[\w-]{1,63}(?:\.|\s?[\[({]dot[\])}]\s?)){1,8}[^\W\d_]{2,24}"
    r"|\b[\w.+-]{1,64} at (?:[\w-]{1,63} dot ){1,4}(?:com|org|net|edu|io|co|uk|de|fr|it|es|nl|ch|at|eu|us|in)\b",
    re.I,
)

# Prefixes that their makers chose so that they can be recognised; each is certain on its own.
_KEY = re.compile(
    r"-----BEGIN [A-Z ]{0,40}(?:PRIVATE KEY|CERTIFICATE)[A-Z ]{0,20}-----.*?(?:-----END [A-Z ]{0,60}-----|\Z)"
    r"|\b(?:A3T[A-Z0-9]|AKIA|ASIA|AROA|AIDA|AGPA|ANPA|ABIA|ACCA)[A-Z0-9]{16}\b"
    r"|\bgh[pousr]_[A-Za-z0-9]{30,}|\bgithub_pat_\w{22,}"
    r"|\bgl(?:pat|dt|rt|cbt|ptt|ft|soat)-[\w-]{18,}"
    r"|\bsk-(?:[a-z]+-)*[\w-]{20,}"
    r"|\b(?:sk|pk|rk|whsec)_(?:live_|test_)?[A-Za-z0-9]{16,}"
    r"|\bxox[a-z]-[\w-]{10,}|\bxapp-[\w-]{10,}"
    r"|\bAIza[\w-]{30,}|\bya29\.[\w-]{20,}|\bGOCSPX-[\w-]{20,}"
    r"|\bhf_[A-Za-z0-9]{30,}|\bnpm_[A-Za-z0-9]{30,}|\bpypi-[\w-]{30,}|\bdop_v1_[a-f0-9]{40,}|\bdckr_pat_[\w-]{20,}"
    r"|\bSG\.[\w-]{16,}\.[\w-]{16,}|\bkey-[0-9a-f]{32}\b|\b(?:AC|SK)[0-9a-f]{32}\b|\b\d{8,10}:AA[\w-]{30,}"
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"
    r"|\bAGE-SECRET-KEY-1[0-9A-Z]{50,}|\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{30,}|\bsq0[a-z]{3}-[\w-]{20,}|\blin_api_\w{30,}",
    re.S,
)
_BEARER = re.compile(r"\b(?:bearer|basic|authorization:\s*\w+|token)\s+(?P<value>[\w.~+/-]{12,}={0,2})", re.I)
_URL_LOGIN = re.compile(r"(?<=://)[^\s/@:]{0,100}:[^\s/@]{1,200}(?=@)")
_WORDED = re.compile(
    r"""(?P<word>pass(?:word|wd|phrase|code)?|pwd|pw|secret|token|credentials?|api[\s_-]?key|access[\s_-]?key|account[\s_-]?key
        |private[\s_-]?key|client[\s_-]?secret|auth|signature|sig|key|pin)
        (?P<rest>[\w-]{0,24}["'`]?\s{0,3}(?:=>|:=|[:=]|\bis\b|\s)\s{0,3})
        (?P<quote>["'`]?)(?P<value>[^\s"'`,;&<>()]{4,400})""",
    re.I | re.X,
)
_PASSWORD = re.compile(r"pass|pwd|pw|credential", re.I)
_BARE = re.compile(r"(?<![\w-])(?:password|passwd|pwd)(?![\w-])", re.I)
_TECHNICAL = re.compile(
    r"(?:open|o)?auth\d|wpa\d|argon\d\w*|pbkdf\d|[by]crypt\d*|sha-?\d+|md\d|base\d+|utf-?\d+|https?\d|ipv\d|x509\w*|rfc\d+|tls\w{0,4}"
    r"|win(?:dows)?\d+|office\d+|excel\d+|outlook\d+|mac(?:os)?\d+|ios\d+|android\d+|ubuntu\d+|debian\d+|centos\d+|rhel\d+"
    r"|python\d+|java\d+|php\d+|node\d*js|log4j\w*|mysql\w*|postgres\w*|pg\d+|sqlite\d|neo4j|db2|ntlmv\d|snmpv\d|smb\d|ssh\d"
    r"|iphone\d+\w*|ipad\d+|galaxy\w*|pixel\d+\w*|xbox\w*|ps\d|step\d+|page\d+|chapter\d+|level\d+|error\d+|v\d+|web3\w*"
    r"|\d+(?:fa|th|st|nd|rd|char\w*|digits?|bits?|days?|hours?|months?|times|min\w*)",
    re.I,
)
"""What follows the word *password* in harmless queries, with letters and digits like one: ``password oauth2 grant``."""
_FILLER = frozenset(
    ["null", "none", "true", "false", "undefined", "empty", "changed", "wrong", "required", "expired", "invalid", "missing"]
)

_PHONE = re.compile(
    r"(?<![\w.,+/=#-])(?:"
    r"(?:\+|00(?=[1-9]))[1-9](?:[\s./()-]{0,3}\d){7,14}"  # +49 (0)30 123-456, 0044 20 7946 0958
    r"|(?:1[\s.-])?\(\d{3}\)[\s.-]?\d{3}[\s.-]\d{4}"  # (415) 555-0132
    r"|(?:1[.-])?[2-9]\d{2}([ .-])[2-9]\d{2}\1\d{4}"  # 415-555-0132
    r"|\(?0\d{2,5}\)?[\s/]\d{3,4}[\s-]?\d{3,5}|0\d{3,4}-\d{7,8}"  # (020) 7946 0958, 030/1234567, 0171-1234567
    r"|0[1-9](?:[ .]\d{2}){4}"  # 06 12 34 56 78
    r")(?:\s?(?:x|ext\.?)\s?\d{1,5})?(?![\w/=-]|[.,]\d)"
)
_PHONE_WORD = re.compile(
    r"\b(?:phone|tel|telephone|mobile|cell|call|fax|whatsapp|sms|text me|handy|telefon|tél|téléphone|móvil|teléfono)"
    r"\b[^\w+(]{0,4}(?:(?:me|us|at|on|is|no|nr|number|numéro|nummer|número)\b[^\w+(]{0,4}){0,3}(?P<value>\+?\(?\d[\d\s().-]{5,18}\d)",
    re.I,
)
_CARD = re.compile(r"(?<![\w.+-])\d(?:[ -]?\d){12,18}(?![\w-]|\.\d)")
_ISSUER = re.compile(
    r"4\d{15}(?:\d{3})?$|5[1-5]\d{14}$|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}$|3[47]\d{13}$|3(?:0[0-5]|[68]\d)\d{11}$"
    r"|6(?:011|5\d\d|4[4-9]\d)\d{12}$|35(?:2[89]|[3-8]\d)\d{12}$|62\d{14,17}$|(?:5018|5020|5038|6304|6759|676[1-3])\d{8,15}$"
)
_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]{1,4}){3,8}\b", re.I)
IBAN_LENGTHS: Mapping[str, int] = {
    "AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22, "BR": 29, "BY": 28, "CH": 21,
    "CR": 22, "CY": 28, "CZ": 24, "DE": 22, "DK": 18, "DO": 28, "EE": 20, "EG": 29, "ES": 24, "FI": 18, "FO": 18, "FR": 27,
    "GB": 22, "GE": 22, "GI": 23, "GL": 18, "GR": 27, "GT": 28, "HR": 21, "HU": 28, "IE": 22, "IL": 23, "IQ": 23, "IS": 26,
    "IT": 27, "JO": 30, "KW": 30, "KZ": 20, "LB": 28, "LC": 32, "LI": 21, "LT": 20, "LU": 20, "LV": 21, "MC": 27, "MD": 24,
    "ME": 22, "MK": 19, "MR": 27, "MT": 31, "MU": 30, "NL": 18, "NO": 15, "PK": 24, "PL": 28, "PS": 29, "PT": 25, "QA": 29,
    "RO": 24, "RS": 22, "SA": 24, "SC": 31, "SE": 24, "SI": 19, "SK": 24, "SM": 27, "ST": 25, "SV": 28, "TL": 23, "TN": 24,
    "TR": 26, "UA": 29, "VA": 22, "VG": 24, "XK": 20,
}  # fmt: skip
_SSN = re.compile(r"(?<![\w-])(?!000|666|9\d\d)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\w-])")
_SSN_WORD = re.compile(r"\b(?:ssn|social security(?: number| no\.?)?)\b\D{0,6}(?P<value>\d{3}[ -]?\d{2}[ -]?\d{4})\b", re.I)
_IPV4 = re.compile(r"(?<![\w.-])(?:\d{1,3}\.){3}\d{1,3}(?![\w-]|\.\d)")
_VERSION = re.compile(
    r"(?:\bv|\bver|version|release|build|firmware|driver|update|upgrade to|==|>=|<=|~=|section|chapter|§)\.?\s*$", re.I
)
_IPV6 = re.compile(r"(?<![\w:.])[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,7}(?:\.\d{1,3}){0,3}(?![\w:])", re.I)


def _entropy(text: str) -> float:
    """Return the bits a character carries."""
    return -sum(count / len(text) * math.log2(count / len(text)) for count in Counter(text).values())


def _secretive(value: str) -> bool:
    """True for a value that is not a word: long and random, with letters and digits mixed."""
    mixed = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    return len(value) >= 12 and mixed and _entropy(value) >= 3.0


_LONG = re.compile(r"(?<![\w/+.-])[A-Za-z0-9_+/-]{32,}={0,2}(?![\w.])")


def _is_random(match: re.Match[str]) -> bool:
    """True for what stands alone and only a machine can have made: long, in capitals, small letters and digits at random."""
    text = match[0]
    kinds = [sum(map(test, text)) for test in (str.isupper, str.islower, str.isdigit)]
    return min(kinds) >= 3 and _entropy(text) >= 4.0 and "/" not in text.strip("/")


def _is_worded(match: re.Match[str]) -> bool:
    """True for a secret that is called one."""
    value, said = match["value"], match["rest"]
    if "[" in value[:1] or value.lower().strip(".!?") in _FILLER:
        return False  # already taken out, or nothing to take out
    assigned = any(sign in said for sign in ":=")
    if _PASSWORD.search(match["word"]) or match["word"].lower() == "pin":
        # People choose short ones; after "is" or a blank only what is not a plain word, lest "password reset" goes.
        bare = said.isspace() and _BARE.match(match.string, match.start()) is not None
        told = said.strip() == "is" or _mixed(value) or (bare and _chosen(value))
        return assigned or (not value.isalpha() and told)
    # What is assigned without a blank was copied from a file, and may be a plain word.
    copied = said.strip("\"'`").endswith("=") and match["word"].lower() != "key" and len(value) >= 8 and value.isalnum()
    return copied or _secretive(value)


def _mixed(value: str) -> bool:
    """True for letters with digits and marks among them: ``hunt3r!x``, not ``reset.`` or ``2024``."""
    core = value.strip(".,:;!?")
    return len(core) >= 6 and all(any(map(test, core)) for test in (str.isalpha, str.isdigit, lambda sign: not sign.isalnum()))


def _chosen(value: str) -> bool:
    """True for what people choose as a password: letters with digits, or with marks that no word has."""
    core = value.strip(".,:;!?")
    if len(core) < 6 or not any(map(str.isalpha, core)) or _TECHNICAL.fullmatch(core):
        return False
    return (core.isalnum() and any(map(str.isdigit, core))) or any(sign in "!$%^*#~" for sign in core)


def luhn(digits: str) -> bool:
    """True if the last digit is the check digit of the others, as on cards.

    >>> luhn("4111111111111111"), luhn("4111111111111112")
    (True, False)
    """
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (1 + place % 2)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def _is_card(match: re.Match[str]) -> bool:
    digits = re.sub(r"\D", "", match[0])
    return bool(_ISSUER.match(digits)) and luhn(digits)


def _iban_length(match: re.Match[str]) -> int:
    """Return where the number ends: a word may follow without a mark between, and the country says how long it is."""
    length = IBAN_LENGTHS.get(match[0][:2].upper(), 0)
    places = [place for place, letter in enumerate(match[0], 1) if letter.isalnum()]
    end = places[min(length, len(places)) - 1]
    plain, after = re.sub(r"[ -]", "", match[0][:end]).upper(), match[0][end : end + 1]
    if len(plain) != length or after.isalnum():
        return 0
    return end if int("".join(str(int(sign, 36)) for sign in plain[4:] + plain[:4])) % 97 == 1 else 0


def _is_address(match: re.Match[str]) -> bool:
    """True for an IP address that is not the version of something, nor a name in code such as ``add::dec``."""
    found, text = match[0], match.string
    if ":" in found and (sum(map(bool, found.split(":"))) < 3 or not any(map(str.isdigit, found))):
        return False
    if ":" not in found and _VERSION.search(text, max(0, match.start() - 24), match.start()):
        return False
    try:
        return bool(ipaddress.ip_address(found))
    except ValueError:
        return False


SHORTEST_KEY = 14
"""No key with a prefix of its own is shorter."""


def _has_long_word(text: str) -> bool:
    return max(map(len, text.split()), default=0) >= SHORTEST_KEY or "-----BEGIN" in text


def _one_of(*hints: str) -> Callable[[str], bool]:
    """Return whether a text has one of these words; cheap, since every query comes by here.

    Other alphabets have letters that an expression takes for one of these, such as the sign of the Kelvin for a K.
    """

    def may_hold(text: str) -> bool:
        small = text.lower()
        for hint in hints:
            if hint in small:
                return True
        return not text.isascii()

    return may_hold


class RedactionRule(NamedTuple):
    """What is taken out: a pattern's whole match, or its group ``value`` with all behind it."""

    pattern: re.Pattern[str]
    may_hold: Callable[[str], bool] = bool
    """Asked of the text before the pattern is looked for."""
    holds: Callable[[re.Match[str]], bool | int] = lambda match: True
    """Whether a match is one, or how many of its letters are."""

    def replaced(self, kind: str, match: re.Match[str]) -> str:
        """Return what stands in the place of a match."""
        found = self.holds(match)
        if not found:
            return match[0]
        start = match.start("value") - match.start() if "value" in self.pattern.groupindex else 0
        return f"{match[0][:start]}[{kind}]" + ("" if found is True else match[0][found:])


_KEY_WORDS = _one_of("pass", "pwd", "pw", "secret", "token", "credential", "key", "auth", "sig", "pin", "bearer", "basic")
_PHONE_WORDS = _one_of("phone", "tel", "mobile", "cell", "call", "fax", "whatsapp", "sms", "text me", "handy")
# In this order: what is certain first, so that a later kind does not cut a piece out of it.
KINDS: Mapping[str, tuple[RedactionRule, ...]] = {
    "key": (
        RedactionRule(_KEY, _has_long_word),
        RedactionRule(_LONG, lambda text: len(text) >= 32 and _has_long_word(text), _is_random),
        RedactionRule(_URL_LOGIN, lambda text: "://" in text and _has_long_word(text)),
        RedactionRule(_BEARER, _KEY_WORDS, lambda match: _secretive(match["value"])),
        RedactionRule(_WORDED, _KEY_WORDS, _is_worded),
    ),
    "email": (RedactionRule(_EMAIL, _one_of("@", " at ", "[at", "(at", "{at")),),
    "iban": (RedactionRule(_IBAN, holds=_iban_length),),
    "card": (RedactionRule(_CARD, holds=_is_card),),
    "ssn": (RedactionRule(_SSN, lambda text: "-" in text), RedactionRule(_SSN_WORD, _one_of("ssn", "social security"))),
    "ip": (
        RedactionRule(_IPV4, lambda text: "." in text, _is_address),
        RedactionRule(_IPV6, lambda text: "::" in text or text.count(":") > 6, _is_address),
    ),
    "phone": (
        RedactionRule(_PHONE, holds=lambda match: 8 <= sum(map(str.isdigit, match[0])) <= 15),
        RedactionRule(_PHONE_WORD, _PHONE_WORDS),
    ),
}
_DIGITS = {"iban": 12, "card": 13, "ssn": 9, "phone": 7, "ip": 1}
"""Digits without which a kind cannot be there; most queries have none."""


def take_out(text: str, kinds: tuple[str, ...]) -> str:
    """Return a text without secrets and personal data of these kinds.

    >>> take_out("invoice of ada@example.org, card 4111 1111 1111 1111", ("email", "card"))
    'invoice of [email], card [card]'
    """
    digits = sum(map(text.count, "0123456789"))
    for kind in kinds:
        if digits >= _DIGITS.get(kind, 0):
            for rule in KINDS[kind]:
                if rule.may_hold(text):
                    text = rule.pattern.sub(partial(rule.replaced, kind), text)
    return text


SALT_VARIABLE = "RINGTRUE_LOG_SALT"
ERROR = "error: "
"""How a reason begins if the search raised; the type of the error follows."""
DEPTH = 8
"""Lists and objects that may lie in each other; those that lie deeper are left out, not stored unread."""
SWITCHES = frozenset(["on", "off", "control", "treatment"])
"""What a flag says if it is not a plain yes or no; it tells nothing about a question."""
ID_NAMES = frozenset(["repeats", "opened_below", "linked_by", "retriever", "feature", "items", "action"])
"""Names in flags and metadata under which Ringtrue itself keeps ids and its own words."""
_LABELS = ("mode", "mode_override", "token_pressure_level", "eval_category")
_LABEL = re.compile(r"[A-Za-z0-9_.:/@+-]{1,64}")
_HASH = re.compile(r"h_[0-9a-f]{32}")
_TYPE = re.compile(r"[A-Z][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Redactor:
    """What is taken out of query texts, metadata and reasons before they are stored.

    ``kinds`` are the built-in ones, ``patterns`` regular expressions of your own by the name that replaces what they find,
    ``functions`` anything else. ``hash_only`` stores a keyed hash in the place of the query's text and of every other text
    that may hold words of it (intent, reasons, flags, metadata): equal ones can be counted, none can be read; of an error its
    type stays. ``hash_users`` does the same to user ids. Both need a salt, the key, from ``salt`` or from RINGTRUE_LOG_SALT in
    the environment; every project makes another key of it. Names of tools and retrievers, and ids of sessions, results and
    traces are kept: they join.

    >>> Redactor(patterns={"room": r"\\bR-[0-9]{3}\\b"}).text("towels for R-214, mail ada@example.org")
    'towels for [room], mail [email]'
    """

    kinds: tuple[str, ...] = tuple(KINDS)
    patterns: Mapping[str, str | re.Pattern[str]] = field(default_factory=dict)
    functions: tuple[Callable[[str], str], ...] = ()
    hash_only: bool = False
    hash_users: bool = False
    salt: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for kind in self.kinds:
            check_choice(kind, KINDS, f"there is no kind '{kind}' to redact")
        try:
            compiled = {name: re.compile(pattern) for name, pattern in self.patterns.items()}
        except re.error as problem:
            raise InputError(f"the pattern {problem.pattern!r} cannot be read ({problem}); fix the expression") from None
        object.__setattr__(self, "patterns", compiled)
        if (self.hash_only or self.hash_users) and self.salt is None:
            # Without a key anybody could hash guesses and compare.
            object.__setattr__(self, "salt", secret(SALT_VARIABLE))

    def text(self, text: str) -> str:
        """Return a text with everything taken out that may not be stored."""
        for function in self.functions:
            text = function(text)
        for name, pattern in self.patterns.items():
            text = re.sub(pattern, f"[{name}]", text)
        return take_out(text, self.kinds)

    def query(self, row: LoggedQuery) -> LoggedQuery:
        """Return a logged query that may be stored; with ``hash_only`` without a word of the question."""
        if self._inactive:
            return row
        hide = partial(self.hashed, project=row.project) if self.hash_only else self.text
        ids = frozenset(row.result_ids) if self.hash_only and row.flags else frozenset()
        new: dict[str, Any] = {"query": hide(row.query), "user_id": self.user(row.user_id, row.project)}
        if row.flags:
            new["flags"] = self._data(row.flags, row.project, ids)
        if row.intent is not None:
            new["intent"] = hide(row.intent)
        if row.fallback is not None:
            new["fallback"] = self._hashed_reason(row.fallback, row) if self.hash_only else self.text(row.fallback)
        for name in _LABELS:
            label = getattr(row, name)
            # A plain name out of a program's own list need not be hashed; anything that could be a sentence must.
            if label is not None and not (self.hash_only and _LABEL.fullmatch(label)):
                new[name] = hide(label)
        changed = {name: value for name, value in new.items() if value != getattr(row, name)}
        return replace(row, **changed) if changed else row

    def _hashed_reason(self, reason: str, row: LoggedQuery) -> str:
        if not reason.startswith(ERROR):
            return self.hashed(reason, row.project)
        kind = reason.removeprefix(ERROR).partition(":")[0]
        # What another system logged as an error may begin with any word.
        asked = row.query.casefold().split()
        known = _TYPE.fullmatch(kind) and not any(word in asked for word in (kind.casefold(), kind.casefold() + ":"))
        return ERROR + (kind if known else self.hashed(reason, row.project))

    def feedback(self, row: FeedbackEvent) -> FeedbackEvent:
        """Return a feedback event that may be stored."""
        if self._inactive:
            return row
        ids = frozenset(one for one in (row.query_id, row.item_id, row.session_id) if one is not None)
        return replace(row, metadata=self._data(row.metadata, row.project, ids), user_id=self.user(row.user_id, row.project))

    def failure(self, said: str, kind: str | None) -> str:
        """Return what may be stored of an error: its message without secrets; with ``hash_only`` no more than its type."""
        return (kind or "error") if self.hash_only else self.text(said)

    def user(self, user_id: str | None, project: str) -> str | None:
        """Return a user's id as it is stored, which is what delete-by-user must be given."""
        return self.hashed(user_id, project) if self.hash_users and user_id is not None else user_id

    def hashed(self, text: str, project: str) -> str:
        """Return the keyed hash that stands for a text in one project; upper and lower case and blanks do not matter."""
        if _HASH.fullmatch(text):
            return text  # it stands for a text already
        key = hashlib.blake2b(f"{project}\0{self.salt or ''}".encode(), digest_size=32).digest()
        plain = " ".join(text.casefold().split()).encode("utf-8", "surrogatepass")
        return "h_" + hashlib.blake2b(plain, key=key, digest_size=16).hexdigest()

    def _data(self, value: Any, project: str, ids: frozenset[str], *, named: str = "", depth: int = 0) -> Any:
        """Return a structure as it may be stored; with ``hash_only`` with hashes in the place of its texts, ``ids`` aside."""
        if isinstance(value, Mapping | list | tuple | set | frozenset) and depth >= DEPTH:
            return None
        if isinstance(value, Mapping):
            items = ((str(name), item) for name, item in value.items())
            return {
                self._key(name, project): self._data(item, project, ids, named=name, depth=depth + 1) for name, item in items
            }
        if isinstance(value, list | tuple | set | frozenset):
            return [self._data(item, project, ids, named=named, depth=depth + 1) for item in value]
        if not self.hash_only and self._is_secret(named, value):
            return "[key]"
        if isinstance(value, bool | int | float) or value is None:
            return value
        text = str(value)
        if not self.hash_only:
            return self.text(text)
        is_id = named in ID_NAMES or named == "id" or named.endswith(("_id", "_ids"))
        return text if is_id or text in SWITCHES or text in ids else self.hashed(text, project)

    def _key(self, name: str, project: str) -> str:
        if not self.hash_only:
            return self.text(name)
        return name if _LABEL.fullmatch(name) else self.hashed(name, project)

    def _is_secret(self, name: str, value: Any) -> bool:
        """True if a value is one by its name: under ``password`` a plain word is a secret, too."""
        if not name or "key" not in self.kinds or isinstance(value, bool) or not isinstance(value, str | int):
            return False
        return take_out(f"{name}={value}", ("key",)).startswith(f"{name}=[key]")

    @cached_property
    def _inactive(self) -> bool:
        return not (self.kinds or self.patterns or self.functions or self.hash_only or self.hash_users)


def redactor_of(given: Redactor | Callable[[str], str] | None) -> Redactor:
    """Return what redacts: as given, with a function of one's own, or nothing for None."""
    if isinstance(given, Redactor):
        return given
    return Redactor(kinds=(), functions=() if given is None else (given,))
