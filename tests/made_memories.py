"""Memories and memory folders made for tests."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from ringtrue.memory.hook.files import write
from ringtrue.memory.hook.memory import BODY_FIELDS, CATEGORIES, Memory, body_of

WORDS = """
    cache queue token index ledger export session cookie invoice tenant worker migration schema rollback release gateway retry
    timeout bucket replica cursor webhook signature batch partition shard broker metric alert budget license receipt refund tax
""".split()  # noqa: SIM905


def memory(id: str, title: str = "", body: str = "", *, category: str = "decision", **fields: Any) -> Memory:
    """Return a memory whose content is one field."""
    content = {BODY_FIELDS[category][0]: body} if body else {}
    return Memory(id=id, title=title or id, category=category, content=content, body=body_of(category, content), **fields)


def store(root: Path, count: int, *, seed: int = 1) -> list[Memory]:
    """Fill a folder with memories of drawn words, and return them as they were written."""
    rng = random.Random(seed)
    made = []
    for number in range(count):
        category = CATEGORIES[number % len(CATEGORIES)]
        title, body = " ".join(rng.choices(WORDS, k=4)), " ".join(rng.choices(WORDS, k=30))
        tags = tuple(rng.sample(WORDS, 2))
        one = memory(f"{category.replace('_', '-')}-{number}", title, body, category=category, tags=tags)
        write(str(root), one)
        made.append(one)
    return made
