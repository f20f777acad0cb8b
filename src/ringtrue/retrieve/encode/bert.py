"""Weights of the BERT family (safetensors) → an ONNX graph, so that an encoder needs no PyTorch.

BERT, RoBERTa with its multilingual kin, and DistilBERT are one architecture under different names; a row of ``_FAMILIES`` holds
the names. Graphs use standard operators only; ONNX Runtime fuses what it can by itself.

Three heads are known: none (vectors of the tokens, which ``model`` pools), a masked-language head (learned sparse encoders: the
largest log(1 + relu) per vocabulary entry), a classifier (cross-encoders: one row of numbers per pair).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ringtrue.errors import InputError, nearest
from ringtrue.retrieve.library import library

if TYPE_CHECKING:
    import onnx

OPSET = 17
BUILD = "2"
"""Raised when a graph for the same weights changes, so that no cached one of before is used."""
LARGEST = 2_000_000_000
"""Bytes that one ONNX file can hold."""
TOKENS, SPARSE, LOGITS = "last_hidden_state", "sparse", "logits"
"""Names of the output: vectors of tokens, weights of vocabulary entries, numbers of a classifier."""
EXPORT = "export it with `optimum-cli export onnx` and put model.onnx in its folder"
_DTYPES = {"F64": np.float64, "F32": np.float32, "F16": np.float16}
_FLOAT, _INT = 1, 7
Array = NDArray[Any]
Weights = Mapping[str, Array]


@dataclass(frozen=True)
class _Family:
    """The names one family gives to the parts that all have."""

    config: tuple[str, str, str, str] = ("hidden_size", "num_attention_heads", "num_hidden_layers", "hidden_act")
    layers: str = "encoder.layer"
    attention: tuple[str, str, str] = ("attention.self.query", "attention.self.key", "attention.self.value")
    mixed: str = "attention.output.dense"
    first_norm: str = "attention.output.LayerNorm"
    wide: str = "intermediate.dense"
    narrow: str = "output.dense"
    last_norm: str = "output.LayerNorm"
    types: bool = True
    shifted: bool = False
    """Whether positions are counted from the padding id + 1 on."""
    # Masked-language head: dense layer, norm, table of words (absent if it is the input's), bias.
    words: tuple[str, str, str, str] = (
        "cls.predictions.transform.dense",
        "cls.predictions.transform.LayerNorm",
        "cls.predictions.decoder.weight",
        "cls.predictions.bias",
    )
    # Classifier: dense layer (with the encoder's prefix where it starts with a dot), what follows it, last layer.
    judge: tuple[str, str, str] = (".pooler.dense", "Tanh", "classifier")


_BERT = _Family()
_ROBERTA = _Family(
    shifted=True,
    words=("lm_head.dense", "lm_head.layer_norm", "lm_head.decoder.weight", "lm_head.bias"),
    judge=("classifier.dense", "Tanh", "classifier.out_proj"),
)
_DISTIL = _Family(
    config=("dim", "n_heads", "n_layers", "activation"),
    layers="transformer.layer",
    attention=("attention.q_lin", "attention.k_lin", "attention.v_lin"),
    mixed="attention.out_lin",
    first_norm="sa_layer_norm",
    wide="ffn.lin1",
    narrow="ffn.lin2",
    last_norm="output_layer_norm",
    types=False,
    words=("vocab_transform", "vocab_layer_norm", "vocab_projector.weight", "vocab_projector.bias"),
    judge=("pre_classifier", "Relu", "classifier"),
)
_FAMILIES = {"bert": _BERT, "roberta": _ROBERTA, "xlm-roberta": _ROBERTA, "camembert": _ROBERTA, "distilbert": _DISTIL}


class _Graph:
    """Collects nodes and weights; every method adds nodes and returns the name of their result."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self.nodes: list[Any] = []
        self.constants: dict[str, Array] = {}

    def constant(self, name: str, value: Array | np.generic) -> str:
        self.constants.setdefault(name, np.asarray(value))
        return name

    def stored(self, name: str) -> Array:
        if name not in self.weights:
            close = nearest(name, self.weights)
            raise InputError(f"the model's weights have no '{name}' (near: {close}); check the file, or {EXPORT}")
        return self.weights[name]

    def weight(self, name: str) -> str:
        return self.constant(name, self.stored(name))

    def node(self, operator: str, *inputs: str, **options: Any) -> str:
        from onnx import helper

        name = f"{operator}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], name=name, **options))
        return name

    def linear(self, value: str, name: str) -> str:
        # The weights are stored for x · Wᵀ; transposing them once here saves a node and time in every run.
        matrix = self.constant(f"{name}.weight.T", np.ascontiguousarray(self.stored(f"{name}.weight").T))
        return self.node("Add", self.node("MatMul", value, matrix), self.weight(f"{name}.bias"))

    def norm(self, value: str, name: str, epsilon: float) -> str:
        return self.node(
            "LayerNormalization", value, self.weight(f"{name}.weight"), self.weight(f"{name}.bias"), axis=-1, epsilon=epsilon
        )

    def number(self, value: float) -> str:
        return self.constant(f"number {value}", np.float32(value))

    def whole(self, *values: int) -> str:
        return self.constant(f"whole {values}", np.array(values, np.int64))

    def activation(self, value: str, kind: str) -> str:
        if kind == "relu":
            return self.node("Relu", value)
        if kind == "gelu":
            inner = self.node("Erf", self.node("Div", value, self.number(float(np.sqrt(2.0)))))
        else:  # the approximation by tanh
            cube = self.node("Mul", self.node("Mul", value, value), value)
            sum_ = self.node("Add", value, self.node("Mul", cube, self.number(0.044715)))
            inner = self.node("Tanh", self.node("Mul", sum_, self.number(float(np.sqrt(2.0 / np.pi)))))
        return self.node("Mul", self.node("Mul", value, self.node("Add", inner, self.number(1.0))), self.number(0.5))


def padding_of(config: Mapping[str, Any]) -> int:
    """Return the id of the padding token, which RoBERTa's kin has at 1 if nothing is said."""
    value = config.get("pad_token_id")
    return value if isinstance(value, int) else int(shifted(config))


def shifted(config: Mapping[str, Any]) -> bool:
    """Tell whether a model counts positions from its padding id + 1 on."""
    return _FAMILIES.get(str(config.get("model_type")), _BERT).shifted


@dataclass(frozen=True)
class _Shape:
    """What config.json says, under the names used here."""

    family: _Family
    hidden: int
    heads: int
    layers: int
    activation: str
    epsilon: float
    padding: int

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> _Shape:
        kind = config.get("model_type")
        if kind not in _FAMILIES:
            raise InputError(f"model_type {kind!r} cannot be built from weights, only {', '.join(_FAMILIES)}; {EXPORT}")
        if config.get("position_embedding_type", "absolute") != "absolute":
            raise InputError(f"position_embedding_type '{config['position_embedding_type']}' cannot be built; {EXPORT}")
        family = _FAMILIES[kind]
        missing = next((name for name in family.config[:3] if not isinstance(config.get(name), int)), None)
        if missing is not None:
            raise InputError(
                f"config.json has no whole number '{missing}', which a {kind} needs; take the file that came with it"
            )
        hidden, heads, layers = (int(config[name]) for name in family.config[:3])
        activation = config.get(family.config[3], "gelu")
        if activation not in ("gelu", "relu", "gelu_new", "gelu_pytorch_tanh"):
            raise InputError(f"{family.config[3]} {activation!r} cannot be built, only gelu, gelu_new and relu; {EXPORT}")
        epsilon = float(config.get("layer_norm_eps", 1e-12))
        return cls(family, hidden, heads, layers, activation, epsilon, padding_of(config))


def head_of(weights: Weights, config: Mapping[str, Any]) -> str:
    """Return which output a model is made for: by the class it was saved from, else by the weights that are there."""
    saved = " ".join(config.get("architectures") or ())
    if "ForMaskedLM" in saved:
        return SPARSE
    if "ForSequenceClassification" in saved:
        return LOGITS
    family = _Shape.of(config).family
    if saved:
        return TOKENS
    if f"{family.words[0]}.weight" in weights:
        return SPARSE
    return LOGITS if f"{family.judge[2]}.weight" in weights else TOKENS


def build(weights: Weights, config: Mapping[str, Any], *, head: str | None = None) -> onnx.ModelProto:
    """Return the ONNX model of a BERT-family encoder; raises InputError with the cure for an architecture that is none."""
    from onnx import helper, numpy_helper

    shape = _Shape.of(config)
    table = next((name for name in weights if name.endswith("embeddings.word_embeddings.weight")), None)
    if table is None:
        raise InputError(f"the model's weights have no 'embeddings.word_embeddings.weight'; check the file, or {EXPORT}")
    prefix = table.removesuffix("embeddings.word_embeddings.weight")
    graph = _Graph(weights)
    hidden = _encoder(graph, shape, prefix)
    head = head or head_of(weights, config)
    size: list[str | int]
    if head == SPARSE:
        output, size = _sparse_head(graph, shape, hidden, table), [int(weights[table].shape[0])]
    elif head == LOGITS:
        output = _classifier_head(graph, shape, hidden, prefix)
        size = [int(weights[f"{shape.family.judge[2]}.weight"].shape[0])]
    else:
        output, size = hidden, ["length", shape.hidden]
    total = sum(value.nbytes for value in graph.constants.values())
    if total > LARGEST:
        raise InputError(f"the weights fill {total / 1e9:.1f} GB, more than one ONNX file holds; {EXPORT}")
    graph.nodes.append(helper.make_node("Identity", [output], [head]))
    names = ("input_ids", "attention_mask", "token_type_ids") if shape.family.types else ("input_ids", "attention_mask")
    inputs = [helper.make_tensor_value_info(name, _INT, ["batch", "length"]) for name in names]
    outputs = [helper.make_tensor_value_info(head, _FLOAT, ["batch", *size])]
    constants = [numpy_helper.from_array(value, name) for name, value in graph.constants.items()]
    return helper.make_model(
        helper.make_graph(graph.nodes, "bert", inputs, outputs, constants),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=9,
        producer_name="ringtrue",
    )


def _embedded(graph: _Graph, shape: _Shape, prefix: str) -> str:
    places = graph.stored(f"{prefix}embeddings.position_embeddings.weight")
    if shape.family.shifted:
        places = np.ascontiguousarray(places[shape.padding + 1 :])
    value = graph.node("Gather", graph.weight(f"{prefix}embeddings.word_embeddings.weight"), "input_ids")
    if shape.family.types:
        kinds = graph.weight(f"{prefix}embeddings.token_type_embeddings.weight")
        value = graph.node("Add", value, graph.node("Gather", kinds, "token_type_ids"))
    length = graph.node("Slice", graph.node("Shape", "input_ids"), graph.whole(1), graph.whole(2))
    here = graph.node("Slice", graph.constant("places", places), graph.whole(0), length, graph.whole(0))
    return graph.norm(graph.node("Add", value, here), f"{prefix}embeddings.LayerNorm", shape.epsilon)


def _encoder(graph: _Graph, shape: _Shape, prefix: str) -> str:
    names, size = shape.family, shape.hidden // shape.heads
    value = _embedded(graph, shape, prefix)
    # Padding gets a score so low that softmax gives it nothing.
    mask = graph.node("Unsqueeze", graph.node("Cast", "attention_mask", to=_FLOAT), graph.whole(1, 2))
    hole = graph.node("Mul", graph.node("Sub", graph.number(1.0), mask), graph.number(-1e9))
    split, join = graph.whole(0, 0, shape.heads, size), graph.whole(0, 0, shape.hidden)
    for number in range(shape.layers):
        layer = f"{prefix}{names.layers}.{number}"
        query, key, content = (
            graph.node("Transpose", graph.node("Reshape", graph.linear(value, f"{layer}.{name}"), split), perm=order)
            for name, order in zip(names.attention, ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]), strict=True)
        )
        near = graph.node("Mul", graph.node("MatMul", query, key), graph.number(float(1.0 / np.sqrt(size))))
        mixed = graph.node("MatMul", graph.node("Softmax", graph.node("Add", near, hole), axis=-1), content)
        mixed = graph.node("Reshape", graph.node("Transpose", mixed, perm=[0, 2, 1, 3]), join)
        value = graph.node("Add", graph.linear(mixed, f"{layer}.{names.mixed}"), value)
        value = graph.norm(value, f"{layer}.{names.first_norm}", shape.epsilon)
        inner = graph.activation(graph.linear(value, f"{layer}.{names.wide}"), shape.activation)
        value = graph.node("Add", graph.linear(inner, f"{layer}.{names.narrow}"), value)
        value = graph.norm(value, f"{layer}.{names.last_norm}", shape.epsilon)
    return value


def _sparse_head(graph: _Graph, shape: _Shape, hidden: str, table: str) -> str:
    dense, norm, words, bias = shape.family.words
    value = graph.activation(graph.linear(hidden, dense), shape.activation)
    value = graph.norm(value, norm, shape.epsilon)
    # Most models store the table of words once, for input and output.
    matrix = np.ascontiguousarray(graph.weights.get(words, graph.weights[table]).T)
    logits = graph.node("Add", graph.node("MatMul", value, graph.constant("vocabulary", matrix)), graph.weight(bias))
    mask = graph.node("Unsqueeze", graph.node("Cast", "attention_mask", to=_FLOAT), graph.whole(2))
    # log(1 + relu) only grows, so the largest is found before it is taken: one row of logarithms instead of one per token.
    best = graph.node("ReduceMax", graph.node("Mul", graph.node("Relu", logits), mask), axes=[1], keepdims=0)
    return graph.node("Log", graph.node("Add", best, graph.number(1.0)))


def _classifier_head(graph: _Graph, shape: _Shape, hidden: str, prefix: str) -> str:
    dense, follows, last = shape.family.judge
    first = graph.node("Gather", hidden, graph.constant("first", np.int64(0)), axis=1)
    name = f"{prefix}{dense[1:]}" if dense.startswith(".") else dense
    return graph.linear(graph.node(follows, graph.linear(first, name)), last)


def read_weights(file: Path) -> dict[str, NDArray[np.float32]]:
    """Return the weights of a safetensors file as float32, whatever they were stored as; raises InputError."""
    safetensors = library("safetensors", "dense")
    try:
        found = safetensors.deserialize(file.read_bytes())
    except safetensors.SafetensorError as problem:
        raise InputError(f"{file}: is not a safetensors file ({problem}); download it again") from problem
    weights = {}
    for name, entry in found:
        kind, data = entry["dtype"], entry["data"]
        if kind == "BF16":  # the upper half of a float32
            values = (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).view(np.float32)
        elif kind in _DTYPES:
            values = np.frombuffer(data, _DTYPES[kind]).astype(np.float32)
        else:
            continue  # whole numbers are counters and positions, never weights
        # Checkpoints of 2018 call the two parts of a norm gamma and beta.
        name = name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
        weights[name] = values.reshape(entry["shape"])
    return weights


def build_from(folder: Path, *, head: str | None = None) -> onnx.ModelProto:
    """Return the model in a folder with config.json and model.safetensors; raises InputError naming the folder."""
    file = folder / "config.json"
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError) as problem:
        raise InputError(
            f"{file}: is not a configuration of a model ({type(problem).__name__}); put the model's there"
        ) from problem
    weights = read_weights(folder / "model.safetensors")
    try:
        return build(weights, config, head=head)
    except InputError as problem:
        raise InputError(f"{folder}: {problem}") from problem
