"""Texts → vectors. ``encoder("all-MiniLM-L6-v2").encode(["a text"])`` needs no PyTorch and no network.

``encode(texts)`` returns one float32 row of length 1 per text; ``encode(texts, query=True)`` does so for questions, which some
models prefix differently; ``key`` names model and settings, so that vectors of one never pass for another's; ``size`` is the
number of dimensions. Vectors on disk are in ``cache``.
"""

from __future__ import annotations

import threading
from functools import lru_cache

from ringtrue.retrieve.encode.vectors import (
    STATIC as STATIC,
    Encoder as Encoder,
    Matrix as Matrix,
    Vectors as Vectors,
    unit_rows as unit_rows,
)
from ringtrue.retrieve.expression import DEFAULT_MODEL as DEFAULT_MODEL

_LOADING = threading.Lock()


def encoder(name: str = DEFAULT_MODEL, *, int8: bool = False) -> Encoder:
    """Return the encoder of a name or folder, loaded once per process; raises MissingInput with the cure."""
    with _LOADING:  # lru_cache alone would let two threads load it twice
        return _loaded(name, int8)


@lru_cache(maxsize=8)
def _loaded(name: str, int8: bool) -> Encoder:
    if name == STATIC:
        from ringtrue.retrieve.encode.wordllama import WordLlama

        return WordLlama.installed(int8=int8)
    from ringtrue.retrieve.encode.model import Model

    return Model.named(name, int8=int8)
