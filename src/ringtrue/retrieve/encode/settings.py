"""What the small files beside a model's weights say about how it wants to be used."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ringtrue.errors import InputError
from ringtrue.retrieve.encode.bert import EXPORT, SPARSE, TOKENS, padding_of, shifted

MEAN, CLS = "mean", "cls"
LONGEST = 512
"""Tokens of a text where a model names no length of its own, however many positions it has."""
_POOLING = {"pooling_mode_mean_tokens": MEAN, "pooling_mode_cls_token": CLS}
_PASSAGE = ("document", "passage", "corpus")


@dataclass(frozen=True)
class Settings:
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


def read_settings(folder: Path, *, max_length: int | None = None) -> Settings:
    """Return the settings of a model's folder; raises InputError naming the file that cannot be read."""
    config = _read(folder / "config.json")
    modules = _modules(folder)
    kinds = [str(module.get("type", "")).rsplit(".", 1)[-1] for module in modules]
    head = SPARSE if "SpladePooling" in kinds else TOKENS if "Pooling" in kinds else None
    known = {"Transformer", "Pooling", "Normalize", "MLMTransformer", "SpladePooling", "Dropout"}
    unknown = next((kind for kind in kinds if kind not in known), None)
    pooling, odd = _pooling(folder, modules, kinds)
    sentence = _read(folder / "sentence_bert_config.json")
    prompts, default = _prompts(folder)
    return Settings(
        length=_length(config, sentence, max_length),
        pooling=pooling,
        head=head,
        padding=padding_of(config),
        lower=sentence.get("do_lower_case") is True,
        prompts=prompts,
        default_prompt=default,
        architectures=tuple(map(str, config.get("architectures") or ())),
        unknown=unknown or odd,
    )


def _length(config: Mapping[str, Any], sentence: Mapping[str, Any], chosen: int | None) -> int:
    positions = config.get("max_position_embeddings")
    if isinstance(positions, int) and shifted(config):
        positions -= padding_of(config) + 1
    said = chosen or sentence.get("max_seq_length")
    if isinstance(said, int):
        return min(said, positions) if isinstance(positions, int) else said
    return min(positions, LONGEST) if isinstance(positions, int) else 256


def _modules(folder: Path) -> list[Mapping[str, Any]]:
    found = _read(folder / "modules.json", kind=list)
    return [module for module in found if isinstance(module, Mapping)]


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


def refuse_unknown(settings: Settings, folder: Path) -> None:
    """Raise InputError where the vectors would be wrong because a step of the model is not known here."""
    if settings.unknown is not None:
        raise InputError(f"{folder}: the model needs the step '{settings.unknown}', known are mean and cls pooling; {EXPORT}")
