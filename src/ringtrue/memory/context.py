"""What a model should know before it goes on (A-7): the memories for a text within a budget of tokens.

Three modes differ in how many memories they look at and how much they may cost. Where nobody chooses, the pressure does: how
full the model's window is.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ringtrue.errors import InputError, nearest
from ringtrue.memory.escaping import block, element, summary, tokens_of
from ringtrue.memory.hook.index import MemoryHit
from ringtrue.memory.hook.memory import LINKS, Memory
from ringtrue.memory.tool_context import Session


@dataclass(frozen=True, slots=True)
class Mode:
    """How much is looked at: places in the ranking, tokens of the text, and whether causal links are followed."""

    k: int
    budget: int
    linked: bool


MODES: Mapping[str, Mode] = {"quick": Mode(5, 1500, False), "focused": Mode(10, 1750, False), "deep": Mode(15, 2000, True)}
ROOMY, TIGHT = 0.5, 0.8
"""Shares of the window in use up to which the deep mode is taken, and from which the quick one is."""
SMALLEST_BUDGET = 100
CONSTITUTIONAL, FOUND = "constitutional", "found"
ALREADY = "(given earlier in this session)"


@dataclass(frozen=True, slots=True)
class Shown:
    """A memory in a context: why it is there ('found', 'constitutional', or a link such as 'leads_to other-id'), and what was
    given of it: its 'summary', its 'title' alone where there was no more room, or only that it was 'already' given."""

    memory: Memory
    why: str
    given: str
    rank: int | None = None
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Context:
    """A text within its budget, the memories in it, how many more there was no room for, and what the session saved."""

    text: str
    shown: tuple[Shown, ...]
    left_out: int
    budget: int
    tokens: int
    saved: int


def choose_mode(mode: str, *, used: int | None, window: int | None) -> tuple[str, float | None]:
    """Return the mode and the pressure it was chosen by, which is None where it is not known.

    A mode that is given is taken. Else at least 80 % of the window in use makes it quick, less than half deep; focused
    where nothing is known. Raises InputError for a mode or numbers that cannot be.

    >>> choose_mode("", used=170_000, window=200_000), choose_mode("deep", used=None, window=None)
    (('quick', 0.85), ('deep', None))
    """
    if mode and mode not in MODES:
        raise InputError(f"there is no mode '{mode}'; did you mean {nearest(mode, MODES)}?")
    if (used is None) != (window is None):
        raise InputError("tokens_used and tokens_window belong together; give both or neither")
    pressure = None
    if used is not None and window is not None:
        if used < 0 or window < 1:
            raise InputError(f"{used} tokens used of {window} cannot be; give counts of tokens")
        pressure = min(1.0, used / window)
    if mode:
        return mode, pressure
    if pressure is None:
        return "focused", None
    return ("quick" if pressure >= TIGHT else "deep" if pressure < ROOMY else "focused"), pressure


def linked(hits: Sequence[MemoryHit], memories: Sequence[Memory]) -> list[tuple[str, Memory]]:
    """Return (link, memory) for what the causal links of the hits lead to or come from, one step, the best hit first."""
    known = {memory.id: memory for memory in memories}
    taken = {hit.memory.id for hit in hits}
    found: list[tuple[str, Memory]] = []
    for hit in hits:
        outward = [(f"{kind} of {hit.memory.id}", one) for kind in LINKS for one in hit.memory.links.get(kind, ())]
        inward = [
            (f"{kind} {hit.memory.id}", memory.id)
            for memory in memories
            for kind in LINKS
            if hit.memory.id in memory.links.get(kind, ())
        ]
        for why, name in outward + inward:
            if name in known and name not in taken:
                taken.add(name)
                found.append((why, known[name]))
    return found


def build_context(
    root: str,
    hits: Sequence[MemoryHit],
    *,
    found: Collection[str],
    also: Sequence[tuple[str, Memory]] = (),
    budget: int,
    session: Session | None = None,
) -> Context:
    """Return the text that tells of the hits, then of what is linked with them, in at most ``budget`` tokens.

    The constitutional come first and are never left out. ``found`` is the ids that the search itself returned. What the
    session has already costs a line without its text. Raises InputError for a budget that is too small for the constitutional.
    """
    if budget < SMALLEST_BUDGET:
        raise InputError(f"a budget of {budget} tokens holds nothing; give {SMALLEST_BUDGET} or more")
    first = sorted(hits, key=lambda hit: hit.memory.tier != "constitutional")  # stable: else by rank
    wanted: list[tuple[Memory, str, int | None, float | None]] = []
    for hit in first:
        own = hit.memory.id in found
        wanted.append((hit.memory, FOUND if own else CONSTITUTIONAL, hit.rank, hit.score if own else None))
    wanted += [(memory, why, None, None) for why, memory in also]
    room = budget - tokens_of(block(root, ["x"]))
    kept = [tokens_of(element(memory, "", why=CONSTITUTIONAL)) for memory, *_ in wanted if memory.tier == "constitutional"]
    reserve = sum(kept)
    if reserve > room:
        raise InputError(
            f"{len(kept)} constitutional memories need {reserve + budget - room} tokens and the budget is {budget}; "
            "raise the budget or give some of them a lower tier"
        )
    elements: list[str] = []
    shown: list[Shown] = []
    saved = left_out = 0
    for memory, why, rank, score in wanted:
        bound = memory.tier == "constitutional"
        reserve -= kept.pop(0) if bound else 0
        made, given, spared = _fitted(memory, why, room - reserve, session, bound=bound)
        saved += spared
        if not made:
            left_out += 1
            continue
        room -= tokens_of(made)
        elements.append(made)
        shown.append(Shown(memory, why, given, rank, score))
    text = block(root, elements)
    return Context(text, tuple(shown), left_out, budget, tokens_of(text), saved)


def _fitted(memory: Memory, why: str, room: int, session: Session | None, *, bound: bool) -> tuple[str, str, int]:
    """Return what the room has of a memory, what was given of it, and the tokens that the session spared; empty for nothing."""
    text = summary(memory)
    whole, line = element(memory, text, why=why), element(memory, "", why=why)
    if tokens_of(whole) > room:
        return (line, "title", 0) if bound or tokens_of(line) <= room else ("", "", 0)
    if session is None:
        return whole, "summary", 0
    short = element(memory, "", why=why, note=ALREADY)
    spared = max(0, tokens_of(whole) - tokens_of(short)) if session.has(memory, text) else 0
    session.send(memory, text)
    session.spare(spared)
    return (short, "already", spared) if spared else (whole, "summary", 0)
