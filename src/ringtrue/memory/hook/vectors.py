"""The vectors of a store: what its memories say, and what everyday prompts say, in ``<root>/.ringtrue/vectors.bin``.

A memory has a vector for its whole text and one for each window of three sentences, so that one sentence of a long memory can
answer. They are found by a hash of the text that they were made of and count only for the model that made them: a memory that
was edited has none until they are made again. The file is made aside and moved into place.
"""

from __future__ import annotations

import json
import os
import re
import time
from functools import lru_cache

from .files import OWN, own_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from .encoder import BertEncoder, Matrix
    from .index import Index
    from .memory import Memory

VERSION = 1
FILE = "vectors.bin"
WINDOW, STEP = 3, 2
"""Sentences of a window, and from one window to the next."""
EVERYDAY, AT_ONCE = "everyday", 25
"""What the names of entries with everyday prompts begin with, and how many prompts an entry has: a tenth of a second's work."""
LARGEST_HEADER = 10_000_000
_BYTES = 4
_SENTENCE_END = re.compile(r"\n+|(?<=[.!?;])\s+")


def everyday_prompts() -> list[str]:
    """Return prompts that any user of a coding agent may type, and that are about no project: what chance is measured with."""
    with open(os.path.join(os.path.dirname(__file__), "everyday_prompts.txt"), encoding="ascii") as file:
        return file.read().splitlines()


def text_key(memory: Memory, body_max_chars: int) -> str:
    """Return a hash of all that the vectors of a memory are made of."""
    from _blake2 import blake2b

    text = "\0".join((str(VERSION), memory.title, memory.body[:body_max_chars], *memory.trigger_phrases))
    return blake2b(text.encode("utf-8", "backslashreplace"), digest_size=12).hexdigest()


def passages(memory: Memory, body_max_chars: int) -> list[str]:
    """Return the texts of a memory that get vectors, each once: the whole, its windows and its trigger phrases.

    >>> from .memory import Memory
    >>> passages(Memory(id="a", category="runbook", title="Release", body="Tag it. Build. Sign. Upload."), 2000)
    ['Release. Tag it. Build. Sign. Upload.', 'Tag it. Build. Sign.', 'Sign. Upload.']
    """
    body = memory.body[:body_max_chars]
    sentences = [sentence for sentence in _SENTENCE_END.split(body) if sentence.strip()]
    last = max(1, len(sentences) - WINDOW + STEP)
    windows = [" ".join(sentences[start : start + WINDOW]) for start in range(0, last, STEP)] if len(sentences) > 1 else []
    return list(dict.fromkeys((f"{memory.title}. {body}", *windows, *memory.trigger_phrases)))


class StoreVectors:
    """A matrix with one row for each passage, and for each entry, by its name, the first row and the number of rows."""

    __slots__ = ("matrix", "spans")

    def __init__(self, matrix: Matrix, spans: Mapping[str, tuple[int, int]]) -> None:
        self.matrix, self.spans = matrix, spans

    def rows(self, name: str) -> Matrix:
        """Return the rows of an entry."""
        start, count = self.spans[name]
        return self.matrix[start : start + count]

    @property
    def everyday(self) -> Matrix:
        """The rows of the everyday prompts, which come first."""
        return self.matrix[: sum(count for name, (_, count) in self.spans.items() if name.startswith(EVERYDAY))]


def read_vectors(root: str, encoder: BertEncoder) -> StoreVectors:
    """Return the vectors kept under a root for this model; none if there is no file that was made for it."""
    import numpy as np

    path = os.path.join(root, OWN, FILE)
    try:
        if os.lstat(path).st_mode & 0o170000 != 0o100000:
            raise OSError(22, "it is not a plain file", path)
        with open(path, "rb") as file:
            line = file.readline(LARGEST_HEADER)
            header = json.loads(line)
            counts = header["entries"]
            total = sum(counts.values())
            if header["made"] != _made(encoder) or any(type(count) is not int or count < 1 for count in counts.values()):
                raise ValueError("it was made for another model")
            if os.fstat(file.fileno()).st_size != len(line) + total * encoder.size * _BYTES:
                raise ValueError("it is not complete")
        matrix = np.memmap(path, np.dtype("<f4"), "r", len(line), (total, encoder.size))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return StoreVectors(np.empty((0, encoder.size), np.float32), {})
    spans, start = {}, 0
    for name, count in counts.items():
        spans[name] = start, count
        start += count
    return StoreVectors(matrix, spans)


def update_vectors(root: str, index: Index, encoder: BertEncoder, *, seconds: float | None = None) -> tuple[StoreVectors, int]:
    """Return the vectors of a store, making what is missing, and how many entries still are; the next call makes those.

    With ``seconds``, no second entry is begun after that long. A folder that cannot be written to costs time, never an answer.
    """
    began = time.monotonic()
    kept = read_vectors(root, encoder)
    everyday = everyday_prompts()
    wanted: dict[str, int] = {f"{EVERYDAY} {start}": start for start in range(0, len(everyday), AT_ONCE)}
    wanted.update((key, place) for place, _, key in index.entries())
    missing = [name for name in wanted if name not in kept.spans]
    made: dict[str, Matrix] = {}
    limit = index.settings.body_max_chars
    for done, name in enumerate(missing):
        if done and seconds is not None and time.monotonic() - began > seconds:
            missing = missing[done:]
            break
        if name.startswith(EVERYDAY):
            made[name] = _encoded(encoder, wanted[name])
            continue
        memory = index.memory(wanted[name])
        # A file that changed since the index was made has another text than the one that was asked for.
        if memory is not None and text_key(memory, limit) == name:
            made[name] = encoder.encode(passages(memory, limit))
    else:
        missing = [name for name in missing if name not in made]
    if made:
        kept = _joined(kept, made, wanted)
        write_vectors(root, encoder, kept)
    return kept, len(missing)


@lru_cache(maxsize=64)
def _encoded(encoder: BertEncoder, start: int) -> Matrix:
    """Return the vectors of some everyday prompts: they are the same in every store that a process opens."""
    return encoder.encode(everyday_prompts()[start : start + AT_ONCE])


def _joined(kept: StoreVectors, made: Mapping[str, Matrix], wanted: Mapping[str, int]) -> StoreVectors:
    """Return old and new entries together in the order of ``wanted``, without those of memories that are gone."""
    import numpy as np

    names = [name for name in wanted if name in made or name in kept.spans]
    parts = [made[name] if name in made else kept.rows(name) for name in names]
    spans, start = {}, 0
    for name, part in zip(names, parts, strict=True):
        spans[name] = start, len(part)
        start += len(part)
    return StoreVectors(np.concatenate(parts), spans)


def write_vectors(root: str, encoder: BertEncoder, vectors: StoreVectors) -> None:
    """Keep the vectors of a store; a folder that cannot be written to keeps none."""
    import numpy as np

    header = {"made": _made(encoder), "entries": {name: count for name, (_, count) in vectors.spans.items()}}
    path = os.path.join(root, OWN, FILE)
    aside = f"{path}.{os.getpid()}.{os.urandom(4).hex()}.tmp"
    try:
        own_folder(root)
        with open(aside, "xb") as file:
            line = json.dumps(header, separators=(",", ":")).encode()
            file.write(line + b" " * (-(len(line) + 1) % _BYTES) + b"\n")
            file.write(np.ascontiguousarray(vectors.matrix, np.dtype("<f4")).data)
        os.replace(aside, path)
    except OSError:
        try:
            os.unlink(aside)
        except OSError:
            pass


def _made(encoder: BertEncoder) -> str:
    from _blake2 import blake2b

    everyday = blake2b("\n".join(everyday_prompts()).encode(), digest_size=8).hexdigest()
    return f"{VERSION} {encoder.key} {everyday}"
