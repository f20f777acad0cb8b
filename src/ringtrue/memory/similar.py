"""Which memories are compared with which, by the same rule for the doctor and for a memory that is added (A-2)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ringtrue.errors import RingtrueError
from ringtrue.memory.hook.files import own_folder
from ringtrue.memory.hook.memory import Memory
from ringtrue.memory.pairs import Pair, pairs_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ENCODED = 3000
"""Memories up to which meanings are compared, too; the first time that takes some milliseconds each."""


def vectors_of(root: str, memories: Sequence[Memory]) -> tuple[NDArray[np.float32] | None, str]:
    """Return the meanings of memories, and how they can be compared: 'words and meaning', or 'words' and why."""
    if len(memories) < 2:
        return None, "words, of fewer than two memories"
    if len(memories) > ENCODED:
        return None, f"words, since there are more than {ENCODED:,} memories"
    try:
        from ringtrue.retrieve.encode import Vectors, encoder

        texts = [f"{memory.title}. {memory.body}" for memory in memories]
        return Vectors(Path(own_folder(root)) / "doctor", encoder()).of(texts), "words and meaning"
    except (RingtrueError, ImportError, OSError) as error:
        return None, f"words, since the encoder cannot be used: {error}"


def alike_to(root: str, active: Sequence[Memory], memory_id: str) -> list[Pair]:
    """Return the pairs that one memory makes with the active ones, each of which the doctor shows as well.

    Words are compared first, and meanings of those pairs alone that words bring up: an encoder takes a second to start.
    """
    found = pairs_of(active, only=memory_id)
    if not found or len(active) > ENCODED:
        return found
    import numpy as np

    names = {name for pair in found for name in (pair.first, pair.second)}
    chosen = [place for place, memory in enumerate(active) if memory.id in names]
    vectors, _ = vectors_of(root, [active[place] for place in chosen])
    if vectors is None:
        return found
    # The others have no meaning here, hence no part in any pair; the weights of words are still those of the whole store.
    whole = np.zeros((len(active), vectors.shape[1]), np.float32)
    whole[chosen] = vectors
    kept = {frozenset((pair.first, pair.second)) for pair in found}
    return [pair for pair in pairs_of(active, whole, only=memory_id) if frozenset((pair.first, pair.second)) in kept]
