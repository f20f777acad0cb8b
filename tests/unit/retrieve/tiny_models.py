"""Model folders small enough to make in a test: a real tokenizer, random weights under the names the real models use.

``tiny_bert(folder)`` writes tokenizer.json, config.json and model.safetensors for a sentence encoder; ``head="mlm"`` for a
learned sparse encoder, ``head="classifier"`` for a cross-encoder. The words of ``WORDS`` are tokens of their own, other
lower-case words fall into letters. Equal seeds give equal files.
"""

from __future__ import annotations

import json
import string
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

HIDDEN, LAYERS, HEADS, WIDE, POSITIONS = 32, 2, 4, 64, 64
WORDS = (
    "pool", "spa", "hotel", "room", "sea", "view", "breakfast", "garden", "quiet", "family", "beach", "dog", "parking",
    "city", "centre", "old", "new", "large", "small", "near", "with", "the", "a", "of", "and", "in", "for", "where",
    "is", "there", "an", "indoor", "heated", "sauna", "children", "bed", "cheap", "price", "wifi", "train", "station",
)  # fmt: skip
Weights = dict[str, NDArray[Any]]


def tiny_bert(
    folder: Path, head: str | None = None, seed: int = 0, *, labels: int = 1, dtype: str = "F32", prefixed: bool | None = None
) -> Path:
    """Write a BERT of 2 layers with 32 dimensions; return its folder."""
    config = {
        "model_type": "bert",
        "architectures": [{None: "BertModel", "classifier": "BertForSequenceClassification", "mlm": "BertForMaskedLM"}[head]],
        "hidden_size": HIDDEN, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "intermediate_size": WIDE,
        "hidden_act": "gelu", "layer_norm_eps": 1e-12, "max_position_embeddings": POSITIONS, "type_vocab_size": 2,
        "pad_token_id": 0,
    }  # fmt: skip
    vocabulary = _vocabulary("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    make = _Random(seed)
    prefix = "bert." if (head is not None if prefixed is None else prefixed) else ""
    _embeddings(make, f"{prefix}embeddings", len(vocabulary), POSITIONS, types=2)
    _bert_layers(make, f"{prefix}encoder.layer")
    if head == "classifier":
        make.linear(f"{prefix}pooler.dense", HIDDEN, HIDDEN)
        make.linear("classifier", HIDDEN, labels)
    elif head == "mlm":
        make.linear("cls.predictions.transform.dense", HIDDEN, HIDDEN)
        make.norm("cls.predictions.transform.LayerNorm")
        make.weights["cls.predictions.bias"] = make.values(len(vocabulary))
    return _write(folder, config, make.weights, vocabulary, ("[CLS]", "[SEP]"), dtype)


def tiny_roberta(
    folder: Path, head: str | None = None, seed: int = 0, *, labels: int = 1, dtype: str = "F32", model_type: str = "roberta"
) -> Path:
    """Write a RoBERTa (or XLM-R): positions start after the padding id, one token type, its own heads."""
    family = {"roberta": "Roberta", "xlm-roberta": "XLMRoberta"}[model_type]
    heads = {None: "Model", "classifier": "ForSequenceClassification", "mlm": "ForMaskedLM"}
    config = {
        "model_type": model_type,
        "architectures": [f"{family}{heads[head]}"],
        "hidden_size": HIDDEN, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "intermediate_size": WIDE,
        "hidden_act": "gelu", "layer_norm_eps": 1e-5, "max_position_embeddings": POSITIONS + 2, "type_vocab_size": 1,
        "pad_token_id": 1,
    }  # fmt: skip
    vocabulary = _vocabulary("<s>", "<pad>", "</s>", "<unk>", "<mask>")
    make = _Random(seed)
    prefix = "roberta." if head else ""
    _embeddings(make, f"{prefix}embeddings", len(vocabulary), POSITIONS + 2, types=1)
    _bert_layers(make, f"{prefix}encoder.layer")
    if head == "classifier":
        make.linear("classifier.dense", HIDDEN, HIDDEN)
        make.linear("classifier.out_proj", HIDDEN, labels)
    elif head == "mlm":
        make.linear("lm_head.dense", HIDDEN, HIDDEN)
        make.norm("lm_head.layer_norm")
        make.weights["lm_head.bias"] = make.values(len(vocabulary))
    return _write(folder, config, make.weights, vocabulary, ("<s>", "</s>"), dtype)


def tiny_distilbert(folder: Path, head: str | None = None, seed: int = 0, *, labels: int = 1, dtype: str = "F32") -> Path:
    """Write a DistilBERT: its own names for everything, no token types."""
    heads = {None: "DistilBertModel", "classifier": "DistilBertForSequenceClassification", "mlm": "DistilBertForMaskedLM"}
    config = {
        "model_type": "distilbert", "architectures": [heads[head]], "dim": HIDDEN, "n_layers": LAYERS, "n_heads": HEADS,
        "hidden_dim": WIDE, "activation": "gelu", "max_position_embeddings": POSITIONS, "pad_token_id": 0,
    }  # fmt: skip
    vocabulary = _vocabulary("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    make = _Random(seed)
    prefix = "distilbert." if head else ""
    _embeddings(make, f"{prefix}embeddings", len(vocabulary), POSITIONS, types=0)
    for number in range(LAYERS):
        layer = f"{prefix}transformer.layer.{number}"
        for name in ("q_lin", "k_lin", "v_lin", "out_lin"):
            make.linear(f"{layer}.attention.{name}", HIDDEN, HIDDEN)
        make.norm(f"{layer}.sa_layer_norm")
        make.linear(f"{layer}.ffn.lin1", HIDDEN, WIDE)
        make.linear(f"{layer}.ffn.lin2", WIDE, HIDDEN)
        make.norm(f"{layer}.output_layer_norm")
    if head == "classifier":
        make.linear("pre_classifier", HIDDEN, HIDDEN)
        make.linear("classifier", HIDDEN, labels)
    elif head == "mlm":
        make.linear("vocab_transform", HIDDEN, HIDDEN)
        make.norm("vocab_layer_norm")
        make.linear("vocab_projector", HIDDEN, len(vocabulary))
    return _write(folder, config, make.weights, vocabulary, ("[CLS]", "[SEP]"), dtype)


class _Random:
    """Random weights, collected under their names."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.weights: Weights = {}

    def values(self, *shape: int, spread: float = 0.3) -> NDArray[np.float32]:
        return (self.rng.standard_normal(shape) * spread).astype(np.float32)

    def linear(self, name: str, inputs: int, outputs: int) -> None:
        self.weights[f"{name}.weight"] = self.values(outputs, inputs)
        self.weights[f"{name}.bias"] = self.values(outputs)

    def norm(self, name: str) -> None:
        self.weights[f"{name}.weight"] = 1.0 + self.values(HIDDEN, spread=0.1)
        self.weights[f"{name}.bias"] = self.values(HIDDEN, spread=0.1)


def _embeddings(make: _Random, prefix: str, words: int, positions: int, *, types: int) -> None:
    make.weights[f"{prefix}.word_embeddings.weight"] = make.values(words, HIDDEN)
    make.weights[f"{prefix}.position_embeddings.weight"] = make.values(positions, HIDDEN)
    if types:
        make.weights[f"{prefix}.token_type_embeddings.weight"] = make.values(types, HIDDEN)
    make.norm(f"{prefix}.LayerNorm")


def _bert_layers(make: _Random, prefix: str) -> None:
    for number in range(LAYERS):
        layer = f"{prefix}.{number}"
        for name in ("self.query", "self.key", "self.value", "output.dense"):
            make.linear(f"{layer}.attention.{name}", HIDDEN, HIDDEN)
        make.norm(f"{layer}.attention.output.LayerNorm")
        make.linear(f"{layer}.intermediate.dense", HIDDEN, WIDE)
        make.linear(f"{layer}.output.dense", WIDE, HIDDEN)
        make.norm(f"{layer}.output.LayerNorm")


def _vocabulary(*special: str) -> dict[str, int]:
    letters = [*string.ascii_lowercase, *string.digits]
    pieces = [*special, *WORDS, *letters, *(f"##{letter}" for letter in letters)]
    return {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}


def _write(
    folder: Path, config: dict[str, Any], weights: Weights, vocabulary: Mapping[str, int], ends: tuple[str, str], dtype: str
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    config["vocab_size"] = len(vocabulary)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    _write_tokenizer(folder, vocabulary, ends)
    write_weights(folder / "model.safetensors", weights, dtype)
    return folder


def _write_tokenizer(folder: Path, vocabulary: Mapping[str, int], ends: tuple[str, str]) -> None:
    from tokenizers import Tokenizer
    from tokenizers.models import WordPiece
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer
    from tokenizers.processors import TemplateProcessing

    first, last = ends
    roberta = first == "<s>"
    tokenizer = Tokenizer(WordPiece(dict(vocabulary), unk_token="<unk>" if roberta else "[UNK]"))
    tokenizer.normalizer = BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    pair = f"{first} $A {last} {last} $B {last}" if roberta else f"{first} $A {last} $B:1 {last}:1"
    special = [(first, vocabulary[first]), (last, vocabulary[last])]
    tokenizer.post_processor = TemplateProcessing(single=f"{first} $A {last}", pair=pair, special_tokens=special)
    tokenizer.save(str(folder / "tokenizer.json"))


def write_weights(file: Path, weights: Weights, dtype: str = "F32") -> None:
    """Write a safetensors file as F32, F16 or BF16, which NumPy has no type for: a length, a table in JSON, the numbers."""
    table: dict[str, Any] = {}
    numbers = bytearray()
    for name, value in weights.items():
        stored: NDArray[Any] = np.ascontiguousarray(value, np.float16 if dtype == "F16" else np.float32)
        if dtype == "BF16":
            stored = (stored.view(np.uint32) >> 16).astype(np.uint16)
        table[name] = {"dtype": dtype, "shape": list(value.shape), "data_offsets": [len(numbers), len(numbers) + stored.nbytes]}
        numbers += stored.tobytes()
    header = json.dumps(table).encode()
    header += b" " * (-len(header) % 8)
    file.write_bytes(len(header).to_bytes(8, "little") + header + bytes(numbers))
