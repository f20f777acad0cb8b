"""What somebody is about to do, read off a prompt: seven intents by the words that give them away, nothing learned."""

from __future__ import annotations

import re

_SIGNS = (
    (
        "security_audit",
        r"secur\w*|audits?|auditing|vulnerab\w*|exploit\w*|attack\w*|threat\w*|credential\w*|secrets?|permission\w*|privilege\w*|"
        r"ssrf|xss|csrf|injection|encrypt\w*|leak(?:ed|s|ing)?|tokens?|certificate\w*|privacy|personal data|"
        r"who can (?:read|see|reach)",
    ),
    (
        "fix_bug",
        r"bugs?|fix(?:es|ed|ing)?|errors?|fail(?:s|ed|ing|ure)?s?|broken|breaks|crash\w*|stuck|wrong|exception\w*|traceback|"
        r"debug\w*|regression\w*|flaky|hangs?|hung|timeouts?|reject(?:s|ed)|duplicate[sd]?|missing|lost|vanish\w*|complain\w*|"
        r"again|suddenly|no longer works|does(?:n't| not) work|root cause|symptoms?",
    ),
    (
        "find_decision",
        r"why (?:do|did|are|is|was|were|have|has|not|we)|decisions?|decided?|decide|choice|chose|chosen|choosing|"
        r"agreed|rationale|trade-?offs?|alternatives?|instead of|rather than|reason for|ruled out",
    ),
    (
        "refactor",
        r"refactor\w*|clean ?up|restructur\w*|simplif\w*|renam\w*|extract|split (?:up|out|the)|merge the|dedup\w*|rewrit\w*|"
        r"replac(?:e|ing)|remov(?:e|ing)|migrat\w*|leftovers?|legacy|tech(?:nical)? debt|move .* (?:out of|into)|separate",
    ),
    (
        "find_spec",
        r"specs?|specification\w*|requirements?|contract\w*|clauses?|written|documented|polic(?:y|ies)|rules?|standards?|limits?|"
        r"obligations?|handover|acceptance criteria|document about|sla",
    ),
    (
        "add_feature",
        r"add(?:ing)?|implement\w*|build(?:ing)?|creat(?:e|ing)|introduc\w*|support for|extend\w*|writing|new (?:\w+ )?"
        r"(?:feature|field|endpoint|service|page|column|command|option|test)s?|need to|i want to|how do i",
    ),
)
_PATTERNS = tuple((intent, re.compile(rf"\b(?:{signs})\b", re.I)) for intent, signs in _SIGNS)
INTENTS = ("add_feature", "fix_bug", "refactor", "security_audit", "understand", "find_spec", "find_decision")


def intent_of(text: str) -> str:
    """Return the intent most signs of a text speak for; 'understand' where none does. Among equals the rarer intent wins.

    >>> intent_of("why did we choose Postgres over SQLite?"), intent_of("the worker crashes with a timeout, fix it")
    ('find_decision', 'fix_bug')
    """
    best, most = "understand", 0
    for intent, pattern in _PATTERNS:
        count = len({match.lower() for match in pattern.findall(text)})
        if count > most:
            best, most = intent, count
    return best
