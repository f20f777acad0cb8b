"""The static vectors of the ``wordllama`` wheel: one vector per token, a text is their mean. Light, fast, weaker.

The wheel's files are read directly: the package itself, whose import needs more than is wanted here, is never imported.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ringtrue.errors import InputError, MissingInput
from ringtrue.retrieve.encode.bert import read_weights
from ringtrue.retrieve.encode.folder import package_folder
from ringtrue.retrieve.encode.vectors import STATIC, Matrix, unit_rows
from ringtrue.retrieve.library import library
from ringtrue.retrieve.protocol import plain

BLOCK = 1024
_TOKENS = 8192
_WEIGHTS = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
CURE = "pip install --no-deps wordllama"


@dataclass(frozen=True)
class WordLlama:
    """The 256-dimensional vectors in a folder laid out as the wheel."""

    folder: Path

    @classmethod
    def installed(cls, *, int8: bool = False) -> WordLlama:
        """Return the installed ones; raises MissingInput with the cure."""
        if int8:
            raise InputError(f"'{STATIC}' has no int8 form, it only looks vectors up; leave int8 out")
        folder = package_folder(STATIC)
        if folder is None:
            raise MissingInput(f"the vectors of '{STATIC}' are not installed; {CURE}")
        return cls(folder)

    def _part(self, name: str) -> Path:
        file = self.folder / name
        if not file.is_file():
            raise MissingInput(f"{file}: is not there; install the wheel again: {CURE}")
        return file

    @cached_property
    def key(self) -> str:
        """A hash of vectors and tokenizer."""
        digest = hashlib.sha256()
        for name in (_WEIGHTS, _TOKENIZER):
            with self._part(name).open("rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
        return digest.hexdigest()[:16]

    @property
    def size(self) -> int:
        """The number of dimensions."""
        return int(self.table.shape[1])

    @property
    def length(self) -> int:
        """The most tokens worth averaging: there is no limit, but the mean of a long text means little."""
        return 512

    @cached_property
    def table(self) -> Matrix:
        """One row per token."""
        return read_weights(self._part(_WEIGHTS))["embedding.weight"]

    @cached_property
    def _tokenizer(self) -> Any:
        tokenizer = library("tokenizers", "dense").Tokenizer.from_file(str(self._part(_TOKENIZER)))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        return tokenizer

    def encode(self, texts: Sequence[str], *, query: bool = False) -> Matrix:
        """Return one vector of length 1 per text; questions and passages are treated alike."""
        found = np.empty((len(texts), self.size), np.float32)
        for start in range(0, len(texts), BLOCK):
            block = [plain(text) for text in texts[start : start + BLOCK]]
            items = self._tokenizer.encode_batch_fast(block, add_special_tokens=False)
            found[start : start + len(block)] = unit_rows(np.stack([self._mean(item.ids) for item in items]))
        return found

    def _mean(self, ids: list[int]) -> Matrix:
        total = np.zeros(self.size, np.float32)
        for start in range(0, len(ids), _TOKENS):  # a book has more tokens than should lie in memory as vectors
            total += self.table[ids[start : start + _TOKENS]].sum(axis=0)
        return np.asarray(total / np.float32(max(len(ids), 1)), np.float32)
