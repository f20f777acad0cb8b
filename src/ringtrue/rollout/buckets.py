"""Who is in: a fixed place for every identity under every flag (S-4), and for every query under every shadow run (S-1)."""

from __future__ import annotations

import hashlib

STEPS = 2**53
"""As many places as a float can tell apart; 100 * place / STEPS is then exact enough never to reach 100."""


def bucket(identity: str, flag: str) -> float:
    """Return the place of an identity under a flag, from 0 up to but not including 100.

    It depends on these two texts alone, so it is the same in every process, on every machine and in every version; the flag's
    name salts it, so two flags divide the same people independently of each other.

    >>> bucket("user-1", "multi-vector") == bucket("user-1", "multi-vector")
    True
    >>> 0 <= bucket("user-1", "graph-scoring") < 100
    True
    """
    # The length in front keeps ("ab", "c") and ("a", "bc") apart.
    text = f"{len(flag)}:{flag}:{identity}".encode("utf-8", "surrogatepass")
    place = int.from_bytes(hashlib.sha256(text).digest()[:8], "big") >> 11
    return 100.0 * (place / STEPS)
