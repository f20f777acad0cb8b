"""Texts → vectors. ``encoder("all-MiniLM-L6-v2").encode(["a text"])`` needs no PyTorch and no network.

``encode(texts)`` returns one float32 row of length 1 per text; ``encode(texts, query=True)`` does so for questions, which some
models prefix differently; ``key`` names model and settings, so that vectors of one never pass for another's; ``size`` is the
number of dimensions. Vectors on disk are in ``cache``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float32]
DEFAULT_MODEL = "all-MiniLM-L6-v2"
STATIC = "wordllama"
_LOADING = threading.Lock()


class Encoder(Protocol):
    """Anything that turns texts into vectors of length 1."""

    @property
    def key(self) -> str: ...

    @property
    def size(self) -> int: ...

    @property
    def length(self) -> int:
        """The most tokens of a text that are read."""

    def encode(self, texts: Sequence[str], *, query: bool = False, progress: Callable[[int], None] | None = None) -> Matrix:
        """Return one row per text, in the order given; ``query`` says that the texts are questions, not passages."""


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


def unit_rows(values: Matrix) -> Matrix:
    """Return rows of length 1. A row of zeros, which has no direction, gets the first axis: no index then divides by zero.

    >>> unit_rows(np.array([[3, 4], [0, 0]], np.float32)).tolist()
    [[0.6000000238418579, 0.800000011920929], [1.0, 0.0]]
    """
    # In double precision neither tiny nor huge values lose their length.
    lengths = np.sqrt(np.square(values, dtype=np.float64).sum(axis=1, keepdims=True))
    rows = np.asarray(values / np.where(lengths > 0, lengths, 1.0), np.float32)
    rows[lengths[:, 0] == 0, :1] = 1.0
    return rows
