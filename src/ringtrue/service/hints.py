"""What helps, in the words of whoever reads it: a page has boxes to tick, REST fields to send, the command line options.

What lies below the service names options of the command line, and some of the service's own words name addresses. A message is
kept as it was raised, a failed job's for instance, and worded anew where it is shown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

Words = Sequence[tuple[re.Pattern[str], str]]
APART = "Compare different sets on purpose"
"""The box on the page Compare."""

_PAGES: Words = (
    (re.compile(r"(?:GET )?/v1/queries lists the newest"), "the query log lists the newest"),
    (re.compile(r"/v1/openapi\.json lists what there is"), "the menu leads to what there is"),
    (re.compile(r"allow it \(--allow-different-sets, allow_different_sets=True\)"), f"tick “{APART}”"),
    (re.compile(r", or accept it with --allow [\w-]+(?: \(allow= in Python\))?"), ""),
    (
        re.compile(r"map them with --id-pattern '[^']*'(?: \(ids= in Python\))?"),
        "name the documents of the set as the search does",
    ),
)
_REST: Words = (
    (re.compile(r"allow it \(--allow-different-sets, allow_different_sets=True\)"), 'send "allow_different_sets": true'),
    (re.compile(r"accept it with --allow ([\w-]+)(?: \(allow= in Python\))?"), r'send "allow": ["\1"]'),
    (re.compile(r"ringtrue test create \S+ --again"), 'POST /v1/tests with "again": true'),
    (re.compile(r"ringtrue test create(?: \S+)?"), "POST /v1/tests"),
    (re.compile(r"`ringtrue flag set (\S+) --state running`"), r'PUT /v1/flags/\1 with "state": "running"'),
    (re.compile(r"`ringtrue flag set`"), "PUT /v1/flags/{name}"),
    (re.compile(r"ringtrue flag set .+"), "PUT /v1/flags/{name}"),
    (
        re.compile(r"map them with --id-pattern '[^']*'(?: \(ids= in Python\))?"),
        "name the documents of the set as the search does",
    ),
)


def for_pages(message: str) -> str:
    """Return a message as a page tells it.

    >>> for_pages("no number: the run stops at rank 5; ask for more, or accept it with --allow cut-off (allow= in Python)")
    'no number: the run stops at rank 5; ask for more'
    """
    return _worded(message, _PAGES)


def for_rest(message: str) -> str:
    """Return a message as REST tells it.

    >>> for_rest("no number: the run stops at rank 5; ask for more, or accept it with --allow cut-off (allow= in Python)")
    'no number: the run stops at rank 5; ask for more, or send "allow": ["cut-off"]'
    """
    return _worded(message, _REST)


def _worded(message: str, words: Words) -> str:
    for pattern, said in words:
        message = pattern.sub(said, message)
    return message
