"""Graphs built from weights compute what the architectures say: against a forward pass in NumPy, in double precision."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ringtrue.errors import InputError
from ringtrue.retrieve.encode.bert import build, build_from, head_of, read_weights
from ringtrue.retrieve.encode.model import Model
from unit.retrieve.tiny_models import HEADS, HIDDEN, LAYERS, POSITIONS, tiny_bert, tiny_distilbert, tiny_roberta, write_weights

Array = NDArray[np.float64]
MAKERS: dict[str, Callable[..., Path]] = {"bert": tiny_bert, "roberta": tiny_roberta, "distilbert": tiny_distilbert}
TEXTS = ("pool", "A quiet hotel with a heated indoor pool near the sea", "zebra 42!", "")
_erf = np.vectorize(math.erf)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RINGTRUE_CACHE", str(tmp_path / "cache"))


class Reference:
    """One text at a time, one head at a time, as the papers have it."""

    def __init__(self, folder: Path) -> None:
        from safetensors.numpy import load_file

        self.w = {name: value.astype(np.float64) for name, value in load_file(folder / "model.safetensors").items()}
        self.config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        self.kind = self.config["model_type"].removeprefix("xlm-")
        has_prefix = any(name.startswith(f"{self.kind}.") for name in self.w)
        self.prefix = f"{self.kind}." if has_prefix else ""

    def linear(self, x: Array, name: str) -> Array:
        return x @ self.w[f"{name}.weight"].T + self.w[f"{name}.bias"]

    def norm(self, x: Array, name: str) -> Array:
        mean = x.mean(axis=-1, keepdims=True)
        spread = np.sqrt(((x - mean) ** 2).mean(axis=-1, keepdims=True) + self.config.get("layer_norm_eps", 1e-12))
        return (x - mean) / spread * self.w[f"{name}.weight"] + self.w[f"{name}.bias"]

    def gelu(self, x: Array) -> Array:
        if self.config.get("hidden_act") == "gelu_new":
            return 0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))
        if self.config.get("hidden_act") == "relu":
            return np.maximum(x, 0.0)
        return 0.5 * x * (1.0 + _erf(x / math.sqrt(2.0)))

    def tokens(self, ids: list[int], types: list[int]) -> Array:
        at = f"{self.prefix}embeddings"
        first = 2 if self.kind == "roberta" else 0
        x = self.w[f"{at}.word_embeddings.weight"][ids] + self.w[f"{at}.position_embeddings.weight"][first : first + len(ids)]
        if self.kind != "distilbert":
            x = x + self.w[f"{at}.token_type_embeddings.weight"][types]
        x = self.norm(x, f"{at}.LayerNorm")
        for number in range(LAYERS):
            x = self.distil_layer(x, number) if self.kind == "distilbert" else self.bert_layer(x, number)
        return x

    def bert_layer(self, x: Array, number: int) -> Array:
        at = f"{self.prefix}encoder.layer.{number}"
        parts = (self.linear(x, f"{at}.attention.self.{name}") for name in ("query", "key", "value"))
        x = self.norm(self.linear(attend(*parts), f"{at}.attention.output.dense") + x, f"{at}.attention.output.LayerNorm")
        inner = self.gelu(self.linear(x, f"{at}.intermediate.dense"))
        return self.norm(self.linear(inner, f"{at}.output.dense") + x, f"{at}.output.LayerNorm")

    def distil_layer(self, x: Array, number: int) -> Array:
        at = f"{self.prefix}transformer.layer.{number}"
        parts = (self.linear(x, f"{at}.attention.{name}_lin") for name in "qkv")
        x = self.norm(self.linear(attend(*parts), f"{at}.attention.out_lin") + x, f"{at}.sa_layer_norm")
        inner = self.gelu(self.linear(x, f"{at}.ffn.lin1"))
        return self.norm(self.linear(inner, f"{at}.ffn.lin2") + x, f"{at}.output_layer_norm")

    def pooled(self, x: Array) -> Array:
        mean = x.mean(axis=0)
        return np.asarray(mean / math.sqrt(float(mean @ mean)))

    def sparse(self, x: Array) -> Array:
        table = self.w[f"{self.prefix}embeddings.word_embeddings.weight"]
        if self.kind == "bert":
            x = self.norm(self.gelu(self.linear(x, "cls.predictions.transform.dense")), "cls.predictions.transform.LayerNorm")
            logits = x @ table.T + self.w["cls.predictions.bias"]
        elif self.kind == "roberta":
            x = self.norm(self.gelu(self.linear(x, "lm_head.dense")), "lm_head.layer_norm")
            logits = x @ table.T + self.w["lm_head.bias"]
        else:
            x = self.norm(self.gelu(self.linear(x, "vocab_transform")), "vocab_layer_norm")
            logits = self.linear(x, "vocab_projector")
        return np.asarray(np.log1p(np.maximum(logits, 0.0)).max(axis=0))

    def judged(self, x: Array) -> Array:
        first = x[0]
        if self.kind == "bert":
            return self.linear(np.tanh(self.linear(first, f"{self.prefix}pooler.dense")), "classifier")
        if self.kind == "roberta":
            return self.linear(np.tanh(self.linear(first, "classifier.dense")), "classifier.out_proj")
        return self.linear(np.maximum(self.linear(first, "pre_classifier"), 0.0), "classifier")


def attend(query: Array, key: Array, value: Array) -> Array:
    size = HIDDEN // HEADS
    parts = []
    for head in range(HEADS):
        part = slice(head * size, (head + 1) * size)
        scores = query[:, part] @ key[:, part].T / math.sqrt(size)
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        parts.append(shares / shares.sum(axis=1, keepdims=True) @ value[:, part])
    return np.concatenate(parts, axis=1)


def expected(folder: Path, head: str | None, texts: tuple[str, ...], pairs: tuple[str, ...] | None = None) -> Array:
    model, reference = Model(folder), Reference(folder)
    finish = {None: reference.pooled, "mlm": reference.sparse, "classifier": reference.judged}[head]
    items = [model.tokenizer.encode(*pair) for pair in (zip(texts, pairs, strict=True) if pairs else zip(texts))]
    return np.stack([finish(reference.tokens(item.ids, item.type_ids)) for item in items])


@pytest.mark.parametrize("head", [None, "mlm", "classifier"])
@pytest.mark.parametrize("family", sorted(MAKERS))
def test_a_graph_computes_what_the_architecture_says(tmp_path: Path, family: str, head: str | None) -> None:
    folder = MAKERS[family](tmp_path / "model", head, seed=3)
    found = Model(folder).run(TEXTS)
    np.testing.assert_allclose(found, expected(folder, head, TEXTS), rtol=0, atol=1e-5)
    assert found.std(axis=0).max() > 1e-2, "all texts look alike: the comparison would show nothing"


@pytest.mark.parametrize("family", sorted(MAKERS))
def test_a_pair_of_texts_is_judged_together(tmp_path: Path, family: str) -> None:
    folder = MAKERS[family](tmp_path / "model", "classifier", seed=4, labels=3)
    pairs = tuple(reversed(TEXTS))
    found = Model(folder).run(TEXTS, pairs)
    assert found.shape == (len(TEXTS), 3)
    np.testing.assert_allclose(found, expected(folder, "classifier", TEXTS, pairs), rtol=0, atol=1e-5)
    assert np.abs(found - Model(folder).run(pairs, TEXTS)).max() > 1e-3, "which text comes first must matter"


def test_xlm_roberta_is_read_as_roberta(tmp_path: Path) -> None:
    folder = tiny_roberta(tmp_path / "model", seed=5, model_type="xlm-roberta")
    np.testing.assert_allclose(Model(folder).run(TEXTS), expected(folder, None, TEXTS), rtol=0, atol=1e-5)


@pytest.mark.parametrize("family", sorted(MAKERS))
def test_a_text_may_fill_every_position(tmp_path: Path, family: str) -> None:
    folder = MAKERS[family](tmp_path / "model", seed=6)
    model = Model(folder)
    text = ("pool " * 200,)
    assert len(model.tokenizer.encode(*text)) == POSITIONS
    np.testing.assert_allclose(model.run(text), expected(folder, None, text), rtol=0, atol=1e-5)


@pytest.mark.parametrize("activation", ["gelu_new", "relu"])
def test_other_activations(tmp_path: Path, activation: str) -> None:
    folder = tiny_bert(tmp_path / "model", "mlm", seed=7)
    change(folder, hidden_act=activation)
    np.testing.assert_allclose(Model(folder).run(TEXTS), expected(folder, "mlm", TEXTS), rtol=0, atol=1e-5)


@pytest.mark.parametrize(("dtype", "near"), [("F16", 0.99999), ("BF16", 0.9995)])
@pytest.mark.parametrize("family", sorted(MAKERS))
def test_weights_of_half_precision_become_float32(tmp_path: Path, family: str, dtype: str, near: float) -> None:
    full = Model(MAKERS[family](tmp_path / "full", seed=8)).run(TEXTS)
    half = Model(MAKERS[family](tmp_path / "half", seed=8, dtype=dtype)).run(TEXTS)
    cosine = (full * half).sum(axis=1)
    assert cosine.min() > near
    assert np.abs(full - half).max() > 0, "the weights were not stored in half precision"


def test_bf16_is_the_upper_half_of_a_float(tmp_path: Path) -> None:
    write_weights(tmp_path / "w.safetensors", {"x": np.array([[1.5, -2.0], [0.1, 3e38]], np.float32)}, "BF16")
    found = read_weights(tmp_path / "w.safetensors")["x"]
    np.testing.assert_array_equal(found[0], [1.5, -2.0])
    np.testing.assert_allclose(found, [[1.5, -2.0], [0.1, 3e38]], rtol=1 / 128)


def test_norms_named_gamma_and_beta_are_norms(tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "model", seed=9)
    before = Model(folder).run(TEXTS)
    weights = read_weights(folder / "model.safetensors")
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): value
        for name, value in weights.items()
    }
    assert set(old) != set(weights)
    write_weights(folder / "model.safetensors", old)
    np.testing.assert_array_equal(Model(folder).run(TEXTS), before)


@pytest.mark.parametrize("prefixed", [True, False])
def test_names_with_and_without_the_prefix_are_one_model(tmp_path: Path, prefixed: bool) -> None:
    folder = tiny_bert(tmp_path / "model", seed=10, prefixed=prefixed)
    np.testing.assert_allclose(Model(folder).run(TEXTS), expected(folder, None, TEXTS), rtol=0, atol=1e-5)


def test_a_table_of_words_of_its_own_is_used_where_there_is_one(tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "model", "mlm", seed=11)
    tied = Model(folder).run(TEXTS)
    weights: dict[str, Any] = dict(read_weights(folder / "model.safetensors"))
    weights["cls.predictions.decoder.weight"] = -weights["bert.embeddings.word_embeddings.weight"]
    write_weights(folder / "model.safetensors", weights)
    assert np.abs(Model(folder).run(TEXTS) - tied).max() > 0.1


def test_the_head_is_told_by_the_weights_where_no_class_is_named(tmp_path: Path) -> None:
    for head, wanted in ((None, "last_hidden_state"), ("mlm", "sparse"), ("classifier", "logits")):
        for maker in MAKERS.values():
            folder = maker(tmp_path / f"{head}-{maker.__name__}", head)
            config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
            config.pop("architectures")
            assert head_of(read_weights(folder / "model.safetensors"), config) == wanted


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({"model_type": "t5"}, "'t5'"),
        ({"model_type": "mpnet"}, "'mpnet'"),
        ({"position_embedding_type": "relative_key"}, "relative_key"),
        ({"hidden_act": "silu"}, "'silu'"),
        ({"num_attention_heads": None}, "num_attention_heads"),
    ],
)
def test_another_architecture_is_refused_with_the_cure(tmp_path: Path, changes: dict[str, Any], shown: str) -> None:
    folder = tiny_bert(tmp_path / "model")
    change(folder, **changes)
    with pytest.raises(InputError) as caught:
        build_from(folder)
    message = str(caught.value)
    assert shown in message
    assert str(folder) in message
    assert "export it" in message or "take the file" in message
    assert "\n" not in message


def test_a_missing_weight_is_named(tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "model")
    weights: dict[str, Any] = dict(read_weights(folder / "model.safetensors"))
    del weights["encoder.layer.1.output.dense.bias"]
    with pytest.raises(InputError, match=r"no 'encoder\.layer\.1\.output\.dense\.bias'"):
        build(weights, json.loads((folder / "config.json").read_text(encoding="utf-8")))


def test_weights_too_large_for_one_file_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringtrue.retrieve.encode.bert.LARGEST", 1000)
    with pytest.raises(InputError, match="GB, more than one ONNX file holds; export it"):
        build_from(tiny_bert(tmp_path / "model"))


def test_a_torn_file_is_named(tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "model")
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:1000])
    with pytest.raises(InputError, match=r"model\.safetensors: is not a safetensors file .*; download it again"):
        build_from(folder)
    (folder / "config.json").unlink()
    with pytest.raises(InputError, match=r"config\.json: is not a configuration"):
        build_from(folder)


def change(folder: Path, **changes: Any) -> None:
    config = json.loads((folder / "config.json").read_text(encoding="utf-8")) | changes
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
