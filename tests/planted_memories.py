"""Memories of a made-up project in which pairs are planted: contradictions, duplicates, and others that only look like it.

They stand in ``planted_memories.txt``. The rules of ``ringtrue.memory.pairs`` were made with the first sections in view; the
two called fresh were written afterwards, and the rules have not changed since.
"""

from __future__ import annotations

from pathlib import Path

from ringtrue.memory.hook.memory import Memory

_TEXT = Path(__file__).with_name("planted_memories.txt").read_text("utf-8")
SECTIONS = {
    section.split("\n", 1)[0]: section.split("\n", 1)[1].strip().splitlines()
    for section in _TEXT.removeprefix("# ").split("\n# ")
}


def planted(*, fresh: bool) -> tuple[list[Memory], dict[str, set[frozenset[str]]]]:
    """Return the memories and the ids of the planted pairs by kind: contradiction, duplicate and lookalike."""
    memories: list[Memory] = []
    truth: dict[str, set[frozenset[str]]] = {}
    before = "fresh " if fresh else ""

    def add(name: str, text: str) -> str:
        title, body = text.split(" | ")
        memories.append(Memory(id=name, category="decision", title=title, body=body, content={"decision": body}))
        return name

    for kind, section in (
        ("contradiction", f"{before}contradictions"),
        ("duplicate", f"{before}duplicates"),
        ("lookalike", "lookalikes"),
    ):
        truth[kind] = set()
        for number, line in enumerate(SECTIONS[section], 1):
            one, other = line.split(" || ")
            truth[kind].add(frozenset((add(f"{kind}-{number}-a", one), add(f"{kind}-{number}-b", other))))
    for number, line in enumerate(SECTIONS["unrelated"], 1):
        add(f"unrelated-{number}", line)
    return memories, truth
