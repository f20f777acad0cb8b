"""ONNX models on disk: built once where only weights are there, cached, and run on every core or on the GPU.

A model is a folder with ``tokenizer.json`` and either ``model.onnx`` (also under ``onnx/``) or ``model.safetensors`` with
``config.json``. The same code runs sentence encoders, learned sparse encoders and cross-encoders; they differ in the head.

On the CPU each text is a run of its own on one thread, as many at once as there are cores: as fast as padded batches or faster,
and a text has the same vector, bit for bit, whatever is encoded beside it. A GPU gets batches of similar length.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ringtrue.config import cache_folder, no_telemetry
from ringtrue.errors import InputError, MissingInput
from ringtrue.id_columns import Ints
from ringtrue.retrieve.encode.bert import BUILD, LOGITS, SPARSE, TOKENS, build_from
from ringtrue.retrieve.encode.folder import (
    CLS,
    ONNX,
    SAFETENSORS,
    SMALL,
    ModelSettings,
    find_model,
    read_settings,
    refuse_unknown,
)
from ringtrue.retrieve.encode.vectors import Matrix, unit_rows
from ringtrue.retrieve.library import library
from ringtrue.retrieve.protocol import plain

BATCH_TOKENS = 4096
BLOCK = 2048
"""Texts that are tokenised at once: a million of them never lie in memory as tokens."""
POOLED = "sentence_embedding"
_VECTORS = frozenset({TOKENS, POOLED, "token_embeddings", "pooler_output", "hidden_states"})
_GPU = "CUDAExecutionProvider"
_LOADING = threading.RLock()


@dataclass(frozen=True)
class Model:
    """A model in a folder, ready to be run; ``int8`` takes a quarter of the space and less time for a small loss."""

    folder: Path
    int8: bool = False

    @classmethod
    def named(cls, name: str, *, int8: bool = False) -> Model:
        """Return the model of that name or folder; raises MissingInput with the ways to get it."""
        return cls(find_model(name), int8)

    @cached_property
    def settings(self) -> ModelSettings:
        """What the model's small files say."""
        return read_settings(self.folder)

    @cached_property
    def _weights(self) -> Path:
        found = next((self.folder / part for part in (*ONNX, SAFETENSORS) if (self.folder / part).is_file()), None)
        if found is None:
            raise MissingInput(f"{self.folder}: holds neither model.onnx nor model.safetensors; put one of them there")
        return found

    @cached_property
    def _files_key(self) -> str:
        digest = hashlib.sha256(BUILD.encode())
        weights = (self._weights, self._weights.with_name(f"{self._weights.name}_data"))
        for file in (*(self.folder / part for part in SMALL), *weights):
            if file.is_file():
                with file.open("rb") as stream:
                    digest.update(file.name.encode() + hashlib.file_digest(stream, "sha256").digest())
        return digest.hexdigest()[:16]

    @cached_property
    def key(self) -> str:
        """A hash of weights and settings: vectors of one model never pass for another's."""
        return hashlib.sha256(f"{self._files_key} {self.int8} {self.settings.length}".encode()).hexdigest()[:16]

    @cached_property
    def tokenizer(self) -> Any:
        """The tokenizer of the model, which cuts texts at the model's length."""
        tokenizers = library("tokenizers", "dense")
        file = self.folder / "tokenizer.json"
        if not file.is_file():
            raise MissingInput(f"{file}: the model has no tokenizer; put its tokenizer.json there")
        try:
            tokenizer = tokenizers.Tokenizer.from_file(str(file))
        except Exception as problem:  # the library raises nothing narrower
            raise InputError(
                f"{file}: is not a tokenizer ({_line(problem)}); take the file that came with the model"
            ) from problem
        tokenizer.enable_truncation(self.settings.length)
        tokenizer.no_padding()
        return tokenizer

    @property
    def session(self) -> Any:
        """The running model, on a GPU where ONNX Runtime offers one."""
        with _LOADING:  # two threads that search at once load it once
            if "_session" not in self.__dict__:
                self.__dict__["_session"] = self._open()
            return self.__dict__["_session"]

    def _open(self) -> Any:
        no_telemetry()
        onnxruntime = library("onnxruntime", "dense")
        offered = onnxruntime.get_available_providers()
        # int8 takes its scale from all that runs together: in a batch the neighbours would move a vector by hundredths.
        providers = ("CPUExecutionProvider",) if self.int8 else (_GPU, "CPUExecutionProvider")
        wanted = [name for name in providers if name in offered]
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        file = self._file()
        try:
            return onnxruntime.InferenceSession(str(file), options, providers=wanted)
        except Exception as problem:  # the library raises a class of its own for each way a file can be wrong
            if file.parent != cache_folder() / "models":
                raise InputError(f"{file}: ONNX Runtime cannot load it ({_line(problem)}); export the model again") from problem
        # What was built here may have been damaged since; it is built again, with all that it was made from.
        for made in file.parent.glob(f"{self._files_key}.*"):
            made.unlink(missing_ok=True)
        return onnxruntime.InferenceSession(str(self._file()), options, providers=wanted)

    def _file(self) -> Path:
        file = self._weights
        if file.name == SAFETENSORS:
            file = self._cached("onnx", self._build)
        if self.int8:
            source = file
            file = self._cached("int8.onnx", lambda target: _quantise(source, target))
        return file

    def _cached(self, ending: str, make: Callable[[Path], None]) -> Path:
        place = cache_folder() / "models" / f"{self._files_key}.{ending}"
        if not place.is_file():
            place.parent.mkdir(parents=True, exist_ok=True)
            # Written beside and renamed: a process that dies half-way, or a second one, never leaves half a model.
            with tempfile.TemporaryDirectory(dir=place.parent) as scratch:
                made = Path(scratch) / place.name
                make(made)
                made.replace(place)
        return place

    def _build(self, target: Path) -> None:
        onnx = library("onnx", "dense")
        onnx.save(build_from(self.folder, head=self.settings.head), str(target))

    @cached_property
    def _output(self) -> Any:
        outputs = self.session.get_outputs()
        return next((output for output in outputs if output.name == POOLED), outputs[0])

    @cached_property
    def head(self) -> str:
        """What a row of ``run`` is: ``vectors`` of length 1, ``sparse`` weights of vocabulary entries, or ``logits``."""
        name, saved = self._output.name, " ".join(self.settings.architectures)
        if name == SPARSE:
            return SPARSE
        if name in _VECTORS:
            return "vectors"
        if "ForMaskedLM" in saved or (name == LOGITS and len(self._output.shape) == 3):
            return SPARSE
        return LOGITS if name == LOGITS or "ForSequenceClassification" in saved else "vectors"

    @property
    def length(self) -> int:
        """The most tokens of a text that are read; what is beyond is cut."""
        return self.settings.length

    @cached_property
    def size(self) -> int:
        """The number of values per text."""
        size = self._output.shape[-1] if self._output.shape else None
        return size if isinstance(size, int) else int(self._forward([self.tokenizer.encode("size")]).shape[1])

    def encode(self, texts: Sequence[str], *, query: bool = False) -> Matrix:
        """Return one vector of length 1 per text; raises InputError for a model that makes no vectors."""
        if self.head != "vectors":
            kind, use = ("learned sparse encoder", "splade") if self.head == SPARSE else ("cross-encoder", "rerank")
            raise InputError(f"{self.folder}: is a {kind}, it makes no vectors; use it in {use}(…), or name a sentence encoder")
        return self.run(texts, prompt=self.settings.prompt(query=query))

    def run(self, texts: Sequence[str], pairs: Sequence[str] | None = None, *, prompt: str = "") -> Matrix:
        """Return what the head says of each text (or text pair), in the order given."""
        found = np.empty((len(texts), self.size), np.float32)
        for start in range(0, len(texts), BLOCK):
            block: list[Any] = [prompt + self._text(text) for text in texts[start : start + BLOCK]]
            if pairs is not None:
                block = list(zip(block, map(self._text, pairs[start : start + BLOCK]), strict=True))
            for places, rows in self._rows(self.tokenizer.encode_batch_fast(block)):
                found[start + places] = rows
        if not np.isfinite(found).all():
            row = int(np.flatnonzero(~np.isfinite(found).all(axis=1))[0])
            raise InputError(f"{self.folder}: the model gives no finite numbers for {texts[row]!r:.60}; use float32 weights")
        return found

    def _text(self, text: str) -> str:
        text = plain(text)
        return text.lower() if self.settings.lower else text

    def _rows(self, items: Sequence[Any]) -> Iterator[tuple[Ints, Matrix]]:
        """Yield places and their rows as they get done, the longest texts first."""
        lengths = np.array([len(item) for item in items], np.int64)
        order = np.argsort(-lengths, kind="stable")
        order, empty = order[lengths[order] > 0], order[lengths[order] == 0]
        if len(empty):  # a tokenizer that adds no marks of its own leaves nothing of an empty text
            yield empty, self._finish(np.zeros((len(empty), self.size), np.float32), np.zeros((len(empty), 0), np.int64))
        if _GPU in self.session.get_providers():
            for batch in _batches(order, lengths):
                yield batch, self._forward([items[place] for place in batch])
        elif len(order) == 1:
            yield order, self._forward([items[int(order[0])]])
        elif len(order):
            with ThreadPoolExecutor(min(len(order), _cores())) as pool:
                runs = [pool.submit(self._forward, [items[place]]) for place in order.tolist()]
                try:
                    for number, run in enumerate(runs):
                        yield order[number : number + 1], run.result()
                finally:
                    for run in runs:  # whoever stops half-way waits for what is running, not for what is to come
                        run.cancel()

    def _forward(self, items: Sequence[Any]) -> Matrix:
        width = max(len(item) for item in items)
        ids = np.full((len(items), width), self.settings.padding, np.int64)
        mask, types = np.zeros_like(ids), np.zeros_like(ids)
        for row, item in enumerate(items):
            ids[row, : len(item)] = item.ids
            mask[row, : len(item)] = 1
            types[row, : len(item)] = item.type_ids
        known = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
        feed = {}
        for entry in self.session.get_inputs():
            if entry.name not in known:
                raise InputError(f"{self.folder}: the model wants the input '{entry.name}'; export one with {', '.join(known)}")
            feed[entry.name] = known[entry.name].astype(np.int32) if "int32" in entry.type else known[entry.name]
        (found,) = self.session.run([self._output.name], feed)
        return self._finish(np.asarray(found, np.float32), mask)

    def _finish(self, values: Matrix, mask: Ints) -> Matrix:
        """Return one row per text of what the model said: of tokens, where it speaks of tokens, else of texts."""
        if self.head == LOGITS:
            return values
        if self.head == SPARSE:
            if values.ndim == 2:
                return values
            return np.asarray(np.log1p(np.maximum((values * mask[:, :, None]).max(axis=1), 0.0)), np.float32)
        if values.ndim == 3:
            refuse_unknown(self.settings, self.folder)
            if self.settings.pooling == CLS:
                values = values[:, 0]
            else:
                weights = mask[:, :, None].astype(np.float32)
                values = (values * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1.0)
        return unit_rows(values)


def _cores() -> int:
    """Return how many cores this process may use, which in a container are fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _batches(order: Ints, lengths: Ints) -> Iterator[Ints]:
    """Yield places in batches of similar length, longest first, so that padding costs little and memory peaks at once."""
    start = 0
    while start < len(order):
        count = max(1, BATCH_TOKENS // int(lengths[order[start]]))
        yield order[start : start + count]
        start += count


def _quantise(source: Path, target: Path) -> None:
    quantization = library("onnxruntime.quantization", "dense")
    shapes = library("onnxruntime.quantization.shape_inference", "dense")
    shaped = target.with_name("shaped.onnx")
    shapes.quant_pre_process(str(source), str(shaped), skip_optimization=True, skip_symbolic_shape=True)
    # One scale per column loses far less than one per matrix. Weights of seven bits cannot overflow the sixteen-bit sums of
    # processors without dot products of bytes, which would give each kind of processor vectors of its own.
    kind = quantization.QuantType.QInt8
    quantization.quantize_dynamic(str(shaped), str(target), weight_type=kind, per_channel=True, reduce_range=True)


def _line(problem: Exception) -> str:
    return f"{problem!s:.200}".splitlines()[0] if str(problem) else type(problem).__name__
